package nuthatch

// Real servers for the tests: Nuthatch, which NUTHATCH=PROGRAM names, and memcached where it is installed.

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var background = context.Background()

// running is a server that ends with the test.
type running struct {
	process *exec.Cmd
	ended   chan struct{}
	// place is HOST:PORT, or the path of a unix socket.
	place string
	// shared is the socket that gives out its memory, if there is one.
	shared string
}

var says = regexp.MustCompile(` at (127\.0\.0\.1:\d+|/\S+?),? *(\(|,|$)`)

// startNuthatch starts Nuthatch at a port of its own choice. The flags may say otherwise.
func startNuthatch(t testing.TB, flags ...string) *running {
	t.Helper()
	program := os.Getenv("NUTHATCH")
	if program == "" {
		t.Skip("skipped: NUTHATCH=PROGRAM does not name the server")
	}
	shared := filepath.Join(t.TempDir(), "shared")
	words := append([]string{"-t", "1", "-m", "64", "--shared", shared}, flags...)
	if !strings.Contains(strings.Join(words, " "), "-s ") {
		words = append(words, "-l", "127.0.0.1", "-p", "0")
	}
	made := &running{process: exec.Command(program, words...), shared: shared}
	output, err := made.process.StderrPipe()
	if err == nil {
		err = made.process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.stop)
	lines := bufio.NewScanner(output)
	for made.place == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "engine ") {
			found := says.FindStringSubmatch(lines.Text())
			if found == nil {
				t.Fatalf("no place in %q", lines.Text())
			}
			made.place = found[1]
		}
	}
	if made.place == "" {
		t.Fatal("the server has not started")
	}
	go io.Copy(io.Discard, output)
	made.watch()
	return made
}

// startMemcached starts memcached at this port, or at a free one if it is empty. nil: it is not installed.
func startMemcached(t *testing.T, place string, flags ...string) *running {
	t.Helper()
	if _, err := exec.LookPath("memcached"); err != nil {
		t.Log("memcached is not installed")
		return nil
	}
	if place == "" {
		place = freePlace(t)
	}
	_, port, _ := net.SplitHostPort(place)
	words := append([]string{"-l", "127.0.0.1", "-p", port, "-u", "nobody", "-t", "1", "-m", "64"}, flags...)
	made := &running{process: exec.Command("memcached", words...), place: place}
	if err := made.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.stop)
	made.watch()
	until(func() bool {
		select {
		case <-made.ended:
			t.Fatal("memcached has ended")
		default:
		}
		socket, err := net.Dial("tcp", place)
		if err == nil {
			socket.Close()
		}
		return err == nil
	})
	return made
}

func (r *running) watch() {
	r.ended = make(chan struct{})
	go func() {
		r.process.Wait()
		close(r.ended)
	}()
}

// stop kills the server.
func (r *running) stop() {
	r.process.Process.Kill()
	if r.ended == nil {
		r.process.Wait()
		return
	}
	<-r.ended
}

// withServers runs a test with each server that there is, and Nuthatch at a shm:// address too.
func withServers(t *testing.T, flags []string, test func(t *testing.T, address string)) {
	t.Run("nuthatch", func(t *testing.T) {
		test(t, "tcp://"+startNuthatch(t, flags...).place)
	})
	t.Run("shm", func(t *testing.T) {
		server := startNuthatch(t, flags...)
		test(t, "shm://"+server.shared+"?or=tcp://"+server.place)
	})
	t.Run("memcached", func(t *testing.T) {
		server := startMemcached(t, "", flags...)
		if server == nil {
			t.Skip("skipped: memcached is not installed")
		}
		test(t, "tcp://"+server.place)
	})
}

func freePlace(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func dial(t testing.TB, address string) *Client {
	t.Helper()
	return dialWith(t, address, Options{})
}

// dialWith makes a client that waits long for a busy machine, unless the options say otherwise.
func dialWith(t testing.TB, address string, options Options) *Client {
	t.Helper()
	if options.Timeout == 0 {
		options.Timeout = time.Minute
	}
	if options.ConnectTimeout == 0 {
		options.ConnectTimeout = time.Minute
	}
	client, err := DialWith(address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// until waits until something is so.
func until(isSo func() bool) {
	for !isSo() {
		time.Sleep(5 * time.Millisecond)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless the error is of this kind.
func wants(t testing.TB, err, kind error) {
	t.Helper()
	if !is(err, kind) {
		t.Fatalf("%v in place of %v", err, kind)
	}
}

// has fails the test unless the key has this value.
func has(t *testing.T, client *Client, key, value string) {
	t.Helper()
	found, err := client.Get(background, key)
	if err != nil || string(found) != value {
		t.Fatalf("%q has %q, %v in place of %q", key, found, err, value)
	}
}
