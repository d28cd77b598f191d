//go:build nuthatch_direct

package nuthatch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// With the tag gets read memory: the server answers none of them.
func TestDirectGetsAskNobody(t *testing.T) {
	server := startNuthatch(t)
	client := dial(t, "shm://"+server.shared+"?or=tcp://"+server.place+"&near_ms=0")
	writer := dial(t, "tcp://"+server.place)
	large := strings.Repeat("x", 3*roomBytes)
	for key, value := range map[string]string{"k": "v", "a b": "w", "empty": "", "large": large} {
		check(t, writer.Set(background, key, []byte(value), Forever))
	}
	// The first get connects.
	has(t, client, "k", "v")
	before := commandsOf(t, server)
	for range 100 {
		has(t, client, "k", "v")
		has(t, client, "a b", "w")
		has(t, client, "empty", "")
		has(t, client, "large", large)
		_, err := client.Get(background, "none")
		wants(t, err, ErrNotFound)
		found, err := client.GetMulti(background, []string{"k", "none", "large"})
		if err != nil || len(found) != 2 {
			t.Fatal(found, err)
		}
	}
	if after := commandsOf(t, server); after != before {
		t.Fatalf("%s after %s", after, before)
	}
	// A change that was answered is seen by the next get.
	check(t, writer.SetItem(background, "k", Item{Value: []byte("new"), Flags: 5}, time.Minute))
	item, err := client.GetItem(background, "k")
	check(t, err)
	if string(item.Value) != "new" || item.Flags != 5 || item.Left <= 0 || item.Left > time.Minute {
		t.Fatalf("%+v", item)
	}
	item.Value = []byte("newer")
	check(t, client.CompareAndSwap(background, "k", item, Forever))
	has(t, client, "k", "newer")
}

// A server that is killed is noticed, and what the memory does not say is asked.
func TestDirectGetsOfAServerThatEnds(t *testing.T) {
	server := startNuthatch(t)
	client := dialWith(t, "shm://"+server.shared+"?or=tcp://"+server.place, Options{Timeout: time.Second})
	check(t, client.Set(background, "k", []byte("v"), Forever))
	has(t, client, "k", "v")
	server.stop()
	until(func() bool {
		value, err := client.Get(background, "k")
		if err == nil && string(value) != "v" {
			t.Fatalf("%q", value)
		}
		return err != nil && !is(err, ErrNotFound)
	})
	client.Close()
	_, err := client.Get(background, "k")
	wants(t, err, ErrClosed)
}

// A server that has stopped keeps goroutines waiting in C, where each takes a thread: no more of them than a few. Close does not wait
// for them, and when they have gone no descriptor is left.
func TestGoroutinesThatWaitInC(t *testing.T) {
	server := startNuthatch(t)
	descriptors := descriptorsOf(t)
	client := dial(t, "shm://"+server.shared+"?or=tcp://"+server.place)
	check(t, client.Set(background, "k", []byte("v"), Forever))
	has(t, client, "k", "v")
	// The memory says of a stale item that the server has to be asked.
	check(t, client.MakeStale(background, "k", Forever))
	before := threadsOf(t)
	signal(t, server, syscall.SIGSTOP, 'T')
	const goroutines = 1000
	ended := make(chan error)
	for range goroutines {
		go func() {
			_, err := client.Get(background, "k")
			ended <- err
		}()
	}
	inC := int(client.direct.insideMost)
	until(func() bool { return repliesLeft(client) == goroutines-inC })
	// Go has some threads of its own.
	if more := threadsOf(t) - before; more > inC+20 {
		t.Fatalf("%d threads more, where %d wait in C", more, inC)
	}
	client.Close()
	for range goroutines - inC {
		wants(t, <-ended, ErrClosed)
	}
	signal(t, server, syscall.SIGCONT, 'S')
	for range inC {
		check(t, <-ended)
	}
	until(func() bool { return descriptorsOf(t) <= descriptors })
}

// signal sends a signal, and waits until the server's process is in this state.
func signal(t *testing.T, server *running, signal syscall.Signal, state rune) {
	t.Helper()
	check(t, server.process.Process.Signal(signal))
	until(func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.process.Process.Pid))
		check(t, err)
		return strings.Contains(string(stat), fmt.Sprintf(") %c ", state))
	})
}

// A context that has ended ends a get, and of many keys those that are left.
func TestDirectGetsHeedTheContext(t *testing.T) {
	server := startNuthatch(t)
	client := dial(t, "shm://"+server.shared+"?or=tcp://"+server.place)
	check(t, client.Set(background, "k", []byte("v"), Forever))
	has(t, client, "k", "v")
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := client.Get(ctx, "k")
	wants(t, err, context.Canceled)
	_, err = client.GetMulti(ctx, []string{"k"})
	wants(t, err, context.Canceled)
}

func threadsOf(t *testing.T) int {
	return entriesOf(t, "/proc/self/task")
}

func descriptorsOf(t *testing.T) int {
	return entriesOf(t, "/proc/self/fd")
}

func entriesOf(t *testing.T, folder string) int {
	t.Helper()
	entries, err := os.ReadDir(folder)
	check(t, err)
	return len(entries)
}

func TestDirectAddresses(t *testing.T) {
	_, err := DialWith("shm:///a?or=tcp://b", Options{Login: &Login{"me", "secret"}})
	wants(t, err, ErrAddress)
	_, err = Dial("shm:///a?or=tcp://b&ca=/nowhere")
	wants(t, err, ErrAddress)
}

// commandsOf is what the server says of the gets that it has answered.
func commandsOf(t *testing.T, server *running) string {
	t.Helper()
	var gets []string
	for _, line := range statsOf(t, server) {
		if strings.HasPrefix(line, "STAT cmd_get ") || strings.HasPrefix(line, "STAT cmd_meta ") {
			gets = append(gets, line)
		}
	}
	if len(gets) == 0 {
		t.Fatal("no statistics of gets")
	}
	return strings.Join(gets, " ")
}

// statsOf are the lines of a server's statistics.
func statsOf(t *testing.T, server *running) (lines []string) {
	t.Helper()
	socket, err := net.Dial("tcp", server.place)
	check(t, err)
	defer socket.Close()
	_, err = io.WriteString(socket, "stats\r\n")
	check(t, err)
	for in := bufio.NewScanner(socket); in.Scan() && in.Text() != "END"; {
		lines = append(lines, in.Text())
	}
	return lines
}

// BenchmarkDirectGet is a get of 32 bytes.
func BenchmarkDirectGet(b *testing.B) {
	server := startNuthatch(b)
	client := dial(b, "shm://"+server.shared+"?or=tcp://"+server.place)
	check(b, client.Set(background, "k", make([]byte, 32), Forever))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := client.Get(background, "k"); err != nil {
			b.Fatal(err)
		}
	}
}
