//go:build nuthatch_direct

package nuthatch

import (
	"bufio"
	"io"
	"net"
	"strings"
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
