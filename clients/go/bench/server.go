package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is a server that runs.
type server struct {
	process              *exec.Cmd
	folder               string
	place, redis, shared string
}

// serve starts the program.
func serve(program string) (*server, error) {
	folder, err := os.MkdirTemp("", "nuthatch-go-bench")
	if err != nil {
		return nil, err
	}
	made := &server{folder: folder, shared: filepath.Join(folder, "shared")}
	if made.place, err = freePlace(); err == nil {
		made.redis, err = freePlace()
	}
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(made.place)
	_, redisPort, _ := net.SplitHostPort(made.redis)
	made.process = exec.Command(program, "-l", "127.0.0.1", "-p", port, "--redis-port", redisPort, "-t", "1", "-m", "64",
		"--shared", made.shared)
	made.process.Stderr = os.Stderr
	if err := made.process.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if socket, err := net.Dial("tcp", made.redis); err == nil {
			return made, socket.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	made.stop()
	return nil, fmt.Errorf("%s does not listen", program)
}

func freePlace() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (s *server) stop() {
	s.process.Process.Kill()
	s.process.Wait()
	os.RemoveAll(s.folder)
}

// processorTime is what the process has used, as Linux counts it: in hundredths of a second.
func (s *server) processorTime() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	// Behind the name, which may have spaces, the 12th and the 13th word.
	_, rest, _ := strings.Cut(string(text), ") ")
	words := strings.Fields(rest)
	user, err := strconv.Atoi(words[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(words[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err
}
