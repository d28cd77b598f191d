package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	nuthatch "nuthatch.invalid/clients/go"
)

// start starts a program that ends with the test, and waits for its first line, which is an address.
func start(t *testing.T, environment []string, name string) (*exec.Cmd, string) {
	t.Helper()
	command := exec.Command(name)
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
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listens at ")
	if !ok {
		t.Fatal(line)
	}
	return command, address
}

// serveCache starts the server, and returns its socket.
func serveCache(t *testing.T) string {
	t.Helper()
	server := os.Getenv("NUTHATCH")
	if server == "" {
		t.Skip("skipped: NUTHATCH=PROGRAM does not name the server")
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
			return socket
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "example")
	if said, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%s", said)
	}
	return program
}

// Two processes are asked for one page by many at once, and give what one of them has made.
func TestAPageIsMadeOnceForAllProcesses(t *testing.T) {
	socket, program := serveCache(t), build(t)
	pages := make(chan string)
	const requests = 20
	for range 2 {
		_, address := start(t, []string{"NUTHATCH_URL=unix://" + socket, "LISTEN=127.0.0.1:0"}, program)
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

// A program that is told to end gives the page that it is making, and ends well.
func TestAProgramThatEndsAnswersFirst(t *testing.T) {
	socket, program := serveCache(t), build(t)
	command, address := start(t, []string{"NUTHATCH_URL=unix://" + socket, "LISTEN=127.0.0.1:0"}, program)
	page := make(chan string)
	go func() { page <- get(address + "/a/page") }()
	// The item that the computing one makes says that the request is under way.
	client, err := nuthatch.Dial("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := keyOf("/a/page")
	for {
		if _, err := client.Get(context.Background(), key); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if said := <-page; !strings.HasPrefix(said, `"/a/page" made by `) {
		t.Fatal(said)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
}

var goText = regexp.MustCompile("(?s)```go\n(.*?)```")

// The program of docs/go.md is what it says: it is built as that describes, and says what it should.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := goText.FindSubmatch(text)[1]
	program = bytes.ReplaceAll(program, []byte("tcp://127.0.0.1:11211"), []byte("unix://"+serveCache(t)))
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.go"), program, 0o644); err != nil {
		t.Fatal(err)
	}
	var said []byte
	commands := 0
	for _, line := range append(strings.Split(string(text), "\n"), "go vet .", "go run .") {
		if words := strings.Fields(strings.ReplaceAll(line, "/CHECKOUT", checkout)); strings.HasPrefix(line, "go ") && words[1] != "build" {
			command := exec.Command(words[0], words[1:]...)
			command.Dir = folder
			if said, err = command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", line, said)
			}
			commands++
		}
	}
	if commands != 4 || string(said) != "hello\nAda\n" {
		t.Fatalf("%d commands: %s", commands, said)
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
