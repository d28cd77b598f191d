package nuthatch

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	inputBytes = 16 << 10
	// So many bytes that the server has not answered fit into the socket's buffer on every system: who adds to them sends by
	// itself, because its write does not wait. With more, a goroutine sends, so that a call can end in time.
	sendsItself = 4 << 10
	// A buffer of more bytes than these is not kept.
	keptBytes = 256 << 10
)

// connection is one connection, on which the calls of all goroutines travel.
//
// Invariants, under the lock:
//  1. The calls of pending stand in the order in which their requests were added to out.
//  2. A call in pending has no outcome. It leaves pending as it gets one.
//  3. If out has bytes, somebody sends.
//  4. After death is set, pending and out are empty and stay so.
type connection struct {
	socket  net.Conn
	input   *bufio.Reader
	options *Options
	isDead  atomic.Bool
	// wasLate: it was ended because its oldest reply was too late.
	wasLate atomic.Bool

	lock sync.Mutex
	// out has the bytes that nobody has taken yet to send them; spare is a buffer to take its place.
	out, spare []byte
	isSending  bool
	// How many bytes were ever added to out, taken from it, and answered.
	added, taken, answered uint64
	pending                fifo
	// requests is how many replies the calls of pending still need.
	requests int
	// number is the one that the next request carries.
	number uint16
	// room is closed when there is room again. nil: nobody waits for that.
	room  chan struct{}
	death error
}

// call is one or more requests of one verb, and their replies.
type call struct {
	verb    verb
	replies []reply
	// single is the room for one, which most calls have.
	single [1]reply
	// left is how many replies it still needs, number what the next of them carries.
	left   int
	number uint16
	// Where its bytes begin and end, counted from the first one ever added.
	begins, ends uint64
	since        time.Time
	err          error
	done         chan struct{}
	next         *call
}

// fifo is a queue of calls.
type fifo struct {
	first, last *call
}

func (f *fifo) push(one *call) {
	if f.last == nil {
		f.first = one
	} else {
		f.last.next = one
	}
	f.last = one
}

func (f *fifo) pop() {
	popped := f.first
	f.first, popped.next = popped.next, nil
	if f.first == nil {
		f.last = nil
	}
}

// newConnection works on a connected socket. Whoever made it calls readAll in a goroutine after the greeting.
func newConnection(socket net.Conn, options *Options) *connection {
	return &connection{socket: socket, input: bufio.NewReaderSize(socket, inputBytes), options: options}
}

// do sends requests of one verb, and waits for their replies. With an error it returns the first ones, which came before.
func (c *connection) do(ctx context.Context, requests []request) ([]reply, error) {
	timer := time.NewTimer(c.options.Timeout)
	defer timer.Stop()
	one, err := c.start(ctx, timer.C, requests)
	if err != nil {
		return nil, err
	}
	select {
	case <-one.done:
		return one.replies, one.err
	case <-ctx.Done():
	case <-timer.C:
	}
	c.endIfLate()
	c.lock.Lock()
	wasSent, replies := one.begins < c.taken, one.replies
	c.lock.Unlock()
	// Its requests are sent all the same, and the replies that are still to come dropped.
	if unwanted := requests[0].unwanted; unwanted != nil {
		go func() {
			if <-one.done; one.err == nil {
				unwanted(&one.replies[0])
			}
		}()
	}
	return replies, late(ctx, wasSent)
}

// start adds a call to those that wait, and sees to it that it is sent.
func (c *connection) start(ctx context.Context, timeout <-chan time.Time, requests []request) (*call, error) {
	one := &call{verb: requests[0].verb, left: len(requests), done: make(chan struct{})}
	if one.replies = one.single[:0]; len(requests) > 1 {
		one.replies = make([]reply, 0, len(requests))
	}
	c.lock.Lock()
	for c.death == nil && !c.fits(len(requests)) {
		if err := c.waitForRoom(ctx, timeout); err != nil {
			return nil, err
		}
	}
	if c.death != nil {
		c.lock.Unlock()
		return nil, c.lost(false)
	}
	c.add(one, requests)
	isToSend := !c.isSending
	// Others wait for replies, which come together: so do the next calls of those who get them. Who sends now lets them come, and
	// sends for all. A call alone does not.
	isBusy := c.pending.first != one
	c.isSending = true
	mayWait := c.added-c.answered > sendsItself
	c.lock.Unlock()
	if isToSend && isBusy {
		runtime.Gosched()
	}
	if isToSend && (mayWait || c.send()) {
		go c.sendAll()
	}
	return one, nil
}

func (c *connection) fits(requests int) bool {
	isAlone := c.requests == 0 && len(c.out) == 0
	return isAlone || (c.requests+requests <= c.options.RequestsMax && len(c.out) < c.options.BytesMax)
}

// waitForRoom gives the lock away and takes it again, but for when it fails.
func (c *connection) waitForRoom(ctx context.Context, timeout <-chan time.Time) error {
	if c.room == nil && !c.options.FailWhenFull {
		c.room = make(chan struct{})
	}
	room := c.room
	c.lock.Unlock()
	if c.options.FailWhenFull {
		c.endIfLate()
		return failure(ErrFull, "")
	}
	select {
	case <-room:
		c.lock.Lock()
		return nil
	case <-ctx.Done():
	case <-timeout:
	}
	c.endIfLate()
	return late(ctx, false)
}

func (c *connection) add(one *call, requests []request) {
	before := len(c.out)
	one.number = c.number
	for i := range requests {
		c.out = requests[i].appendTo(c.out, c.number)
		c.number++
	}
	one.since = time.Now()
	one.begins = c.added
	c.added += uint64(len(c.out) - before)
	one.ends = c.added
	c.requests += one.left
	c.pending.push(one)
}

// sendAll sends until nothing is left.
func (c *connection) sendAll() {
	for c.send() {
	}
}

// send sends what waits, and returns whether there is more. If there is not, nobody sends any more.
func (c *connection) send() bool {
	c.lock.Lock()
	batch := c.out
	c.out, c.spare = c.spare[:0], nil
	c.taken = c.added
	c.wakeIfRoom()
	c.lock.Unlock()
	if _, err := c.socket.Write(batch); err != nil {
		c.end(err)
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if cap(batch) <= keptBytes {
		c.spare = batch
	}
	c.isSending = len(c.out) > 0
	return c.isSending
}

// wakeIfRoom wakes those who wait for room, if there is some.
func (c *connection) wakeIfRoom() {
	if c.room != nil && (c.death != nil || c.fits(1)) {
		close(c.room)
		c.room = nil
	}
}

// readAll hands out replies until the connection ends.
func (c *connection) readAll() {
	for {
		reply, err := readReply(c.input, c.options.ValueMax)
		if err == nil {
			err = c.deliver(reply)
		} else if errors.Is(err, io.EOF) {
			err = errors.New("the server closed it")
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// deliver hands a reply to the oldest call. An error: it cannot be the reply.
func (c *connection) deliver(reply reply) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	one := c.pending.first
	if one == nil {
		return unexpected("%v without a request", reply.code)
	}
	if err := reply.check(one.verb, one.number); err != nil {
		return err
	}
	one.number++
	one.left--
	one.replies = append(one.replies, reply)
	c.requests--
	if one.left == 0 {
		c.pending.pop()
		c.answered = one.ends
		close(one.done)
	}
	c.wakeIfRoom()
	return nil
}

// end closes the connection for this reason. All calls fail, and no more are taken.
func (c *connection) end(reason error) {
	c.lock.Lock()
	if c.death == nil {
		c.die(reason)
	}
	c.lock.Unlock()
	// TLS would say goodbye, and wait for a server that does not read.
	if session, ok := c.socket.(*tls.Conn); ok {
		session.NetConn().Close()
		return
	}
	c.socket.Close()
}

func (c *connection) die(reason error) {
	c.death = reason
	c.isDead.Store(true)
	for one := c.pending.first; one != nil; one = c.pending.first {
		c.pending.pop()
		one.err = c.lost(one.begins < c.taken)
		close(one.done)
	}
	c.requests = 0
	c.out, c.spare = nil, nil
	c.wakeIfRoom()
}

// lost is the error of a call whose connection has ended.
func (c *connection) lost(wasSent bool) error {
	if errors.Is(c.death, ErrClosed) {
		return &Error{Kind: ErrClosed, MaybeCarriedOut: wasSent}
	}
	return &Error{Kind: ErrLost, Detail: c.death.Error(), MaybeCarriedOut: wasSent, cause: c.death}
}

// endIfLate ends the connection if its oldest reply is too late.
func (c *connection) endIfLate() {
	c.lock.Lock()
	oldest := c.pending.first
	var late time.Duration
	if oldest != nil {
		late = time.Since(oldest.since)
	}
	c.lock.Unlock()
	if late > c.options.Timeout+c.options.LateMax {
		c.wasLate.Store(true)
		c.end(fmt.Errorf("no reply for %v", late.Round(time.Millisecond)))
	}
}
