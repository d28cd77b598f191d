package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start starts a program that ends with the test, and waits for its first line.
func start(t *testing.T, environment []string, name string, words ...string) string {
	t.Helper()
	command := exec.Command(name, words...)
	command.Env = append(os.Environ(), environment...)
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	line, _ := bufio.NewReader(output).ReadString('\n')
	return strings.TrimSpace(line)
}

// Two processes are asked for one page by many at once, and give what one of them has made.
func TestAPageIsMadeOnceForAllProcesses(t *testing.T) {
	server := os.Getenv("NUTHATCH")
	if server == "" {
		t.Skip("skipped: NUTHATCH=PROGRAM does not name the server")
	}
	program := filepath.Join(t.TempDir(), "example")
	if said, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%s", said)
	}
	socket := filepath.Join(t.TempDir(), "socket")
	command := exec.Command(server, "-s", socket, "-t", "1", "-m", "64")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	for {
		if connection, err := net.Dial("unix", socket); err == nil {
			connection.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	pages := make(chan string)
	const requests = 20
	for range 2 {
		line := start(t, []string{"NUTHATCH_URL=unix://" + socket, "LISTEN=127.0.0.1:0"}, program)
		address, ok := strings.CutPrefix(line, "listens at ")
		if !ok {
			t.Fatal(line)
		}
		for range requests {
			go func() { pages <- get(address + "/a/page") }()
		}
	}
	first := <-pages
	if !strings.HasPrefix(first, `"/a/page" made by `) {
		t.Fatal(first)
	}
	for range 2*requests - 1 {
		if other := <-pages; other != first {
			t.Fatalf("%q and %q", first, other)
		}
	}
}

func get(address string) string {
	response, err := http.Get(address)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
