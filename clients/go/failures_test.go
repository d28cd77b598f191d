package nuthatch

// Servers that are dead, slow, half closed, or lie.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pretend is a server of one's own: what it does with each connection, once that has been greeted.
func pretend(t *testing.T, serve func(net.Conn, *bufio.Reader)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer socket.Close()
				in := bufio.NewReader(socket)
				if greeting, err := in.ReadString('\n'); err != nil || greeting != "mn\r\n" {
					return
				}
				io.WriteString(socket, "MN\r\n")
				serve(socket, in)
			}()
		}
	}()
	return "tcp://" + listener.Addr().String()
}

var numberOf = regexp.MustCompile(` O([0-9a-f]+)\r\n`)

// answering is a server that answers each line with this text, in which @ stands for the request's number.
func answering(t *testing.T, text string) string {
	return pretend(t, func(socket net.Conn, in *bufio.Reader) {
		for {
			request, err := in.ReadString('\n')
			if err != nil {
				return
			}
			number := ""
			if found := numberOf.FindStringSubmatch(request); found != nil {
				number = found[1]
			}
			io.WriteString(socket, strings.ReplaceAll(text, "@", number))
		}
	})
}

func TestServerThatIsNotThere(t *testing.T) {
	place := freePlace(t)
	client := dialWith(t, "tcp://"+place, Options{RetryLeast: time.Hour, RetryMost: time.Hour})
	_, err := client.Get(background, "k")
	wants(t, err, ErrDown)
	if MaybeCarriedOut(err) || !strings.Contains(err.Error(), "refused") {
		t.Fatal(err)
	}
	// Somebody listens now, but the pause is not over.
	listener, err := net.Listen("tcp", place)
	check(t, err)
	defer listener.Close()
	_, err = client.Get(background, "k")
	wants(t, err, ErrDown)
	if !strings.Contains(err.Error(), "next attempt is in") {
		t.Fatal(err)
	}
}

// Class of bug: a server that hangs costs somebody the time of a connection at each attempt to reach it again.
func TestNobodyWaitsForAConnectionAfterAFailure(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	// An attempt outlasts the test.
	options := Options{ConnectTimeout: time.Hour, RetryLeast: time.Millisecond, RetryMost: time.Millisecond, RetryWait: time.Millisecond}
	client := dialWith(t, "tcp://"+listener.Addr().String(), options)
	go func() {
		if first, err := listener.Accept(); err == nil {
			first.Close()
		}
	}()
	_, err = client.Get(background, "k")
	wants(t, err, ErrDown)
	for tried := 0; tried < 10; {
		_, err = client.Get(background, "k")
		wants(t, err, ErrDown)
		if strings.HasSuffix(err.Error(), "is under way") {
			tried++
		}
	}
	second, err := listener.Accept()
	check(t, err)
	defer second.Close()
	go func() {
		io.WriteString(second, "MN\r\n")
		for input := bufio.NewReader(second); ; {
			line, err := input.ReadString('\n')
			if err != nil {
				return
			}
			if line != "mn\r\n" {
				io.WriteString(second, "EN\r\n")
			}
		}
	}()
	for errors.Is(err, ErrDown) || err == nil {
		_, err = client.Get(background, "k")
	}
	wants(t, err, ErrNotFound)
}

func TestServerThatReturns(t *testing.T) {
	server := startMemcached(t, "")
	if server == nil {
		t.Skip("skipped: memcached is not installed")
	}
	client := dial(t, "tcp://"+server.place)
	check(t, client.Set(background, "k", []byte("v"), Forever))
	server.stop()
	startMemcached(t, server.place)
	// Nothing is lost by asking a get again: on a new connection.
	_, err := client.Get(background, "k")
	wants(t, err, ErrNotFound)
}

func TestChangeWhoseReplyIsLost(t *testing.T) {
	address := pretend(t, func(_ net.Conn, in *bufio.Reader) { in.ReadString('\n') })
	err := dial(t, address).Set(background, "k", []byte("v"), Forever)
	wants(t, err, ErrLost)
	if !MaybeCarriedOut(err) || !strings.Contains(err.Error(), "may have been carried out") {
		t.Fatal(err)
	}
}

func TestServerThatIsSilent(t *testing.T) {
	address := pretend(t, func(_ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
	client := dialWith(t, address, Options{Timeout: 50 * time.Millisecond})
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := client.Get(background, "k")
			if !is(err, ErrTimeout) || !is(err, context.DeadlineExceeded) || !MaybeCarriedOut(err) {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	_, err := client.Get(ctx, "k")
	wants(t, err, ErrTimeout)
	gone, cancel := context.WithCancel(background)
	cancel()
	_, err = client.Get(gone, "k")
	wants(t, err, context.Canceled)
	if MaybeCarriedOut(err) {
		t.Fatal(err)
	}
}

// A cancelled context gives up its reply, and not the connection: later calls get their own.
func TestCancelledCallLeavesTheConnection(t *testing.T) {
	begin, connections := make(chan struct{}), atomic.Int32{}
	address := pretend(t, func(socket net.Conn, in *bufio.Reader) {
		connections.Add(1)
		<-begin
		for {
			request, err := in.ReadString('\n')
			if err != nil {
				return
			}
			key := strings.Fields(request)[1]
			fmt.Fprintf(socket, "VA %d O%s\r\n%s\r\n", len(key), numberOf.FindStringSubmatch(request)[1], key)
		}
	})
	client := dial(t, address)
	ctx, cancel := context.WithCancel(background)
	given := make(chan error)
	go func() {
		_, err := client.Get(ctx, "first")
		given <- err
	}()
	until(func() bool { return connections.Load() > 0 })
	time.Sleep(10 * time.Millisecond)
	cancel()
	wants(t, <-given, context.Canceled)
	close(begin)
	for _, key := range []string{"second", "third"} {
		has(t, client, key, key)
	}
	if connections.Load() != 1 {
		t.Fatalf("%d connections", connections.Load())
	}
}

func TestConnectionWhoseRepliesAreTooLateIsClosed(t *testing.T) {
	ended := make(chan struct{}, 100)
	address := pretend(t, func(_ net.Conn, in *bufio.Reader) {
		io.Copy(io.Discard, in)
		ended <- struct{}{}
	})
	client := dialWith(t, address, Options{Timeout: 20 * time.Millisecond, LateMax: 20 * time.Millisecond})
	for isOpen := true; isOpen; {
		_, err := client.Get(background, "k")
		if err == nil {
			t.Fatal("an answer")
		}
		select {
		case <-ended:
			isOpen = false
		default:
		}
	}
}

// What is no reply to the request closes the connection, and is nobody's value.
func TestServersThatLie(t *testing.T) {
	for _, text := range []string{
		"VA 1 O9999\r\nx\r\n",
		"VA 1\r\nx\r\n",
		"VA 2 O@\r\nx\r\n\r\n",
		"VA 1 O@\r\nxy\r\n",
		"VA 99999999999 O@\r\n",
		"VA 100000000 O@\r\n",
		"VA -1 O@\r\n",
		"HD O@\r\n",
		"NS O@\r\n",
		"MN\r\n",
		"OK\r\n",
		"ERROR\r\n",
		"EN O9999\r\n",
		"hello\r\n",
		strings.Repeat("x", 100_000),
		"EN\r\nEN\r\nVA 1 O@\r\nx\r\n",
	} {
		client := dial(t, answering(t, text))
		for range 3 {
			value, err := client.Get(background, "k")
			if err == nil || !(is(err, ErrLost) || is(err, ErrNotFound)) {
				t.Fatalf("%q: %q, %v", text, value, err)
			}
		}
	}
	// A number that is none, and an item without its number.
	_, err := dial(t, answering(t, "VA 1 O@\r\nx\r\n")).Increment(background, "k", 1)
	wants(t, err, ErrUnexpected)
	_, err = dial(t, answering(t, "VA 1 O@\r\nx\r\n")).GetItem(background, "k")
	wants(t, err, ErrUnexpected)
	wants(t, dial(t, answering(t, "VA 1 O@\r\nx\r\n")).Flush(background), ErrUnexpected)
}

func TestServerThatRefuses(t *testing.T) {
	client := dial(t, answering(t, "SERVER_ERROR out of memory\r\n"))
	_, err := client.Get(background, "k")
	wants(t, err, ErrRefused)
	if !strings.Contains(err.Error(), "out of memory") {
		t.Fatal(err)
	}
	// The connection is as good as before.
	_, err = client.Increment(background, "k", 1)
	wants(t, err, ErrRefused)
}

func TestServerThatClosesInTheMiddle(t *testing.T) {
	for _, text := range []string{"", "V", "VA 5 O1\r\n", "VA 5 O1\r\nab"} {
		address := pretend(t, func(socket net.Conn, in *bufio.Reader) {
			in.ReadString('\n')
			io.WriteString(socket, text)
			socket.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, in)
		})
		_, err := dial(t, address).Get(background, "k")
		wants(t, err, ErrLost)
	}
}

func TestServerThatDoesNotGreet(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	client := dialWith(t, "tcp://"+listener.Addr().String(), Options{ConnectTimeout: 20 * time.Millisecond})
	_, err = client.Get(background, "k")
	wants(t, err, ErrDown)
	// Who gives up while others wait for the connection gives it up for itself alone.
	patient := dial(t, "tcp://"+listener.Addr().String())
	ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
	defer cancel()
	_, err = patient.Get(ctx, "k")
	wants(t, err, ErrTimeout)
}

// A server that does not read fills its socket: calls end in time, and there is no more waiting than the options say.
func TestServerThatDoesNotRead(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	address := pretend(t, func(net.Conn, *bufio.Reader) { <-stop })
	client := dialWith(t, address, Options{Timeout: 100 * time.Millisecond, LateMax: time.Hour, BytesMax: 1 << 20})
	large := make([]byte, 8<<20)
	for range 5 {
		wants(t, client.Set(background, "k", large, Forever), ErrTimeout)
	}
	connection := client.links[0].alive()
	connection.lock.Lock()
	defer connection.lock.Unlock()
	if waits := len(connection.out); waits > 1<<20+9<<20 {
		t.Fatalf("%d bytes wait", waits)
	}
}

// A get of many keys gives what came before the server fell silent, closed the connection, or the context ended.
func TestManyKeysOfWhichTheServerAnswersSome(t *testing.T) {
	for _, closes := range []bool{false, true} {
		answered := make(chan struct{}, 10)
		address := pretend(t, func(socket net.Conn, in *bufio.Reader) {
			for range 3 {
				request, err := in.ReadString('\n')
				if err != nil {
					return
				}
				fmt.Fprintf(socket, "VA 1 O%s\r\nx\r\n", numberOf.FindStringSubmatch(request)[1])
			}
			answered <- struct{}{}
			if !closes {
				io.Copy(io.Discard, in)
			}
		})
		client := dial(t, address)
		ctx, cancel := context.WithCancel(background)
		kind := ErrLost
		if !closes {
			kind = context.Canceled
			go func() {
				<-answered
				until(func() bool { return repliesLeft(client) == 2 })
				cancel()
			}()
		}
		found, err := client.GetMulti(ctx, []string{"a", "b", "c", "d", "e"})
		cancel()
		wants(t, err, kind)
		if len(found) != 3 || string(found["c"]) != "x" {
			t.Fatalf("%q", found)
		}
	}
}

func repliesLeft(client *Client) int {
	connection := client.links[0].alive()
	connection.lock.Lock()
	defer connection.lock.Unlock()
	return connection.requests
}

func TestFullQueue(t *testing.T) {
	address := pretend(t, func(_ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
	for _, fails := range []bool{false, true} {
		options := Options{Timeout: 100 * time.Millisecond, LateMax: time.Hour, RequestsMax: 2, FailWhenFull: fails}
		client := dialWith(t, address, options)
		wants(t, client.Set(background, "k", nil, Forever), ErrTimeout)
		wants(t, client.Set(background, "k", nil, Forever), ErrTimeout)
		err := client.Set(background, "k", nil, Forever)
		kind := ErrTimeout
		if fails {
			kind = ErrFull
		}
		wants(t, err, kind)
		if MaybeCarriedOut(err) {
			t.Fatal(err)
		}
	}
}

func TestClosedClient(t *testing.T) {
	address := pretend(t, func(_ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
	client := dial(t, address)
	waits := make(chan error)
	go func() {
		_, err := client.Get(background, "k")
		waits <- err
	}()
	until(func() bool { return client.links[0].alive() != nil })
	client.Close()
	wants(t, <-waits, ErrClosed)
	client.Close()
	_, err := client.Get(background, "k")
	wants(t, err, ErrClosed)
	_, err = client.GetOrCompute(background, "k", Compute{}, nil)
	wants(t, err, ErrClosed)
}

// A call that waits for a connection that is being made is not kept waiting by it, and neither is the goroutine that makes it.
func TestClientThatIsClosedWhileItConnects(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	before := runtime.NumGoroutine()
	client := dialWith(t, "tcp://"+listener.Addr().String(), Options{ConnectTimeout: time.Hour})
	waits := make(chan error)
	go func() {
		_, err := client.Get(background, "k")
		waits <- err
	}()
	socket, err := listener.Accept()
	check(t, err)
	defer socket.Close()
	client.Close()
	wants(t, <-waits, ErrClosed)
	until(func() bool { return runtime.NumGoroutine() <= before })
}

// Each error of a call says at which server it happened, and each one finds its kind and the context's.
func TestErrorsSayWhatHappened(t *testing.T) {
	silent := pretend(t, func(_ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
	closes := pretend(t, func(_ net.Conn, in *bufio.Reader) { in.ReadString('\n') })
	reason := errors.New("the shop is closed")
	because, cancel := context.WithCancelCause(background)
	cancel(reason)
	soon, cancelSoon := context.WithTimeoutCause(background, time.Millisecond, reason)
	defer cancelSoon()
	gone, cancelGone := context.WithCancel(background)
	cancelGone()
	for _, one := range []struct {
		address string
		ctx     context.Context
		options Options
		kinds   []error
	}{
		{silent, background, Options{Timeout: time.Millisecond}, []error{ErrTimeout, context.DeadlineExceeded}},
		{silent, soon, Options{}, []error{ErrTimeout, context.DeadlineExceeded, reason}},
		{silent, because, Options{}, []error{context.Canceled, reason}},
		{silent, gone, Options{}, []error{context.Canceled}},
		{closes, background, Options{}, []error{ErrLost}},
		{answering(t, "SERVER_ERROR full\r\n"), background, Options{}, []error{ErrRefused}},
		{"tcp://" + freePlace(t), background, Options{}, []error{ErrDown}},
	} {
		client := dialWith(t, one.address, one.options)
		place := strings.TrimPrefix(one.address, "tcp://")
		_, got := client.Get(one.ctx, "k")
		_, many := client.GetMulti(one.ctx, []string{"k"})
		for _, err := range []error{got, client.Set(one.ctx, "k", nil, Forever), many, client.Flush(one.ctx)} {
			for _, kind := range one.kinds {
				wants(t, err, kind)
			}
			var failed *Error
			if !errors.As(err, &failed) || failed.Server != place || !strings.Contains(err.Error(), place) {
				t.Errorf("%v: no %s", err, place)
			}
			if is(err, reason) && !strings.Contains(err.Error(), reason.Error()) {
				t.Errorf("%v: no reason", err)
			}
		}
	}
}

// Of several servers' errors one is enough: a change may have been made.
func TestJoinedErrorsMayBeCarriedOut(t *testing.T) {
	address := pretend(t, func(_ net.Conn, in *bufio.Reader) { in.ReadString('\n') })
	client := dial(t, "tcp://"+freePlace(t)+","+strings.TrimPrefix(address, "tcp://"))
	err := client.Flush(background)
	wants(t, err, ErrDown)
	wants(t, err, ErrLost)
	if !MaybeCarriedOut(err) || !MaybeCarriedOut(fmt.Errorf("flush: %w", err)) {
		t.Fatal(err)
	}
	if MaybeCarriedOut(nil) || MaybeCarriedOut(errors.Join(ErrClosed, failure(ErrDown, ""))) {
		t.Fatal("nothing was sent")
	}
}

func TestClosedClientLeavesNoGoroutine(t *testing.T) {
	place := startNuthatch(t).place
	before := runtime.NumGoroutine()
	for range 10 {
		client := dial(t, "tcp://"+place)
		check(t, client.Set(background, "k", make([]byte, 100_000), Forever))
		client.Close()
	}
	until(func() bool { return runtime.NumGoroutine() <= before })
}
