package nuthatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// errLate is why a connection was left.
var errLate = errors.New("it has answered nothing in time")

// link is the way to one server: a connection, and another one after it.
type link struct {
	server  server
	hasTLS  bool
	options *Options
	// life ends with the client, by endLife.
	life    context.Context
	endLife context.CancelFunc
	// present may have ended.
	present atomic.Pointer[connection]

	lock    sync.Mutex
	backoff backoff
	// attempt is under way. nil: none is.
	attempt *attempt
	// reason is why the last attempt failed.
	reason error
}

func newLink(server server, hasTLS bool, options *Options) *link {
	made := &link{server: server, hasTLS: hasTLS, options: options}
	made.life, made.endLife = context.WithCancel(context.Background())
	return made
}

// call sends requests of one verb, and waits for their replies. What the server surely has not carried out, and what changes
// nothing, is sent once more if the connection ends.
func (l *link) call(ctx context.Context, requests ...request) ([]reply, error) {
	replies, err := l.callOnce(ctx, requests)
	if errors.Is(err, ErrLost) && (!MaybeCarriedOut(err) || requests[0].verb.isRead()) {
		return l.callOnce(ctx, requests)
	}
	return replies, err
}

func (l *link) callOnce(ctx context.Context, requests []request) ([]reply, error) {
	if ctx.Err() != nil {
		return nil, l.named(late(ctx, false))
	}
	connection, err := l.connection(ctx)
	if err != nil {
		return nil, err
	}
	replies, err := connection.do(ctx, requests)
	return replies, l.named(err)
}

// named says in an error of one call at which server it happened.
func (l *link) named(err error) error {
	if failed, ok := err.(*Error); ok {
		failed.Server = l.server.place
	}
	return err
}

// attempt is an attempt to connect, and what it came to once it is done.
type attempt struct {
	done       chan struct{}
	connection *connection
	err        error
	// until is how long calls wait for it. Zero: until it is done.
	until time.Time
}

// connection is the present one, or a new one. A call that gives up leaves the attempt to others.
func (l *link) connection(ctx context.Context) (*connection, error) {
	if present := l.alive(); present != nil {
		return present, nil
	}
	attempt, err := l.join()
	if err != nil {
		return nil, err
	}
	var over <-chan time.Time
	if !attempt.until.IsZero() {
		timer := time.NewTimer(time.Until(attempt.until))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		select {
		case <-attempt.done:
			return attempt.connection, attempt.err
		default:
			return nil, l.notYet()
		}
	case <-attempt.done:
		return attempt.connection, attempt.err
	case <-ctx.Done():
		return nil, l.named(late(ctx, false))
	case <-l.life.Done():
		return nil, failure(ErrClosed, "")
	}
}

// alive is the present connection. nil: it has ended.
func (l *link) alive() *connection {
	if present := l.present.Load(); present != nil && !present.isDead.Load() {
		return present
	}
	return nil
}

// join is the attempt to connect that is under way, or a new one.
func (l *link) join() (*attempt, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.life.Err() != nil {
		return nil, failure(ErrClosed, "")
	}
	if l.attempt != nil {
		return l.attempt, nil
	}
	made := &attempt{done: make(chan struct{})}
	if made.connection = l.alive(); made.connection != nil {
		// It was made just now.
		close(made.done)
		return made, nil
	}
	if left := l.backoff.left(time.Now()); left > 0 {
		return nil, l.down(left)
	}
	if l.isInDoubt() && l.options.RetryWait > 0 {
		made.until = time.Now().Add(l.options.RetryWait)
	}
	l.attempt = made
	go l.connect(made)
	return made, nil
}

// isInDoubt says whether an attempt may take all its time: the last one failed, or the last connection was left for a late reply.
func (l *link) isInDoubt() bool {
	if l.backoff.failures > 0 {
		return true
	}
	last := l.present.Load()
	if last == nil || !last.wasLate.Load() {
		return false
	}
	l.reason = errLate
	return true
}

// down is the error of a call that makes no attempt: the next one is after this time. 0: it is under way.
func (l *link) down(left time.Duration) error {
	next := "under way"
	if left > 0 {
		next = "in " + left.Round(time.Millisecond).String()
	}
	detail := fmt.Sprintf("%v; the next attempt is %s", l.reason, next)
	return &Error{Kind: ErrDown, Server: l.server.place, Detail: detail, cause: l.reason}
}

// notYet is the error of a call that waits for the attempt no longer.
func (l *link) notYet() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.life.Err() != nil {
		return failure(ErrClosed, "")
	}
	return l.down(0)
}

// connect makes the attempt.
func (l *link) connect(attempt *attempt) {
	made, err := l.dial()
	l.lock.Lock()
	defer l.lock.Unlock()
	l.attempt = nil
	defer close(attempt.done)
	if err != nil && l.life.Err() != nil {
		attempt.err = failure(ErrClosed, "")
		return
	}
	if err != nil {
		l.reason = err
		now := time.Now()
		l.backoff.failed(now, l.options)
		attempt.err = l.down(l.backoff.left(now))
		return
	}
	l.backoff = backoff{}
	attempt.connection = made
	l.present.Store(made)
	go made.readAll()
	if l.life.Err() != nil {
		made.end(ErrClosed)
	}
}

// dial makes a connection that the server has greeted.
func (l *link) dial() (*connection, error) {
	ctx, cancel := context.WithTimeout(l.life, l.options.ConnectTimeout)
	defer cancel()
	socket, err := l.dialSocket(ctx)
	if err != nil {
		return nil, err
	}
	made := newConnection(socket, l.options)
	until, _ := ctx.Deadline()
	socket.SetDeadline(until)
	// Nobody waits for the greeting of a client that was closed.
	goOn := context.AfterFunc(l.life, func() { made.end(ErrClosed) })
	defer goOn()
	if err := l.greet(made); err != nil {
		socket.Close()
		return nil, err
	}
	socket.SetDeadline(time.Time{})
	return made, nil
}

func (l *link) dialSocket(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, l.server.network, l.server.place)
	if err != nil || !l.hasTLS {
		return socket, err
	}
	config := &tls.Config{}
	if l.options.TLS != nil {
		config = l.options.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = l.server.host
	}
	session := tls.Client(socket, config)
	if err := session.HandshakeContext(ctx); err != nil {
		socket.Close()
		return nil, err
	}
	return session, nil
}

// greet logs in, if there is a login, and asks for a reply that only a server of the meta protocol gives.
func (l *link) greet(made *connection) error {
	greetings := []request{{verb: nothing}}
	if who := l.options.Login; who != nil {
		greetings = []request{{verb: login, value: []byte(who.Name + " " + who.Password)}, {verb: nothing}}
	}
	for _, greeting := range greetings {
		if _, err := made.socket.Write(greeting.appendTo(nil, 0)); err != nil {
			return err
		}
		reply, err := readReply(made.input, l.options.ValueMax)
		if err == nil {
			err = reply.check(greeting.verb, 0)
		}
		if err == nil {
			err = reply.outcome()
		}
		if err != nil && greeting.verb == login {
			return fmt.Errorf("login: %w", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isEjected says whether the server's keys go to others: it failed so often, and nobody else need try it now.
func (l *link) isEjected() bool {
	if l.options.EjectAfter == 0 {
		return false
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	rests := l.attempt != nil || l.backoff.left(time.Now()) > 0
	return l.backoff.failures >= l.options.EjectAfter && rests
}

func (l *link) close() {
	l.lock.Lock()
	l.endLife()
	present := l.present.Load()
	l.lock.Unlock()
	if present != nil {
		present.end(ErrClosed)
	}
}
