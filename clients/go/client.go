package nuthatch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Client is a client of one server or several, for all goroutines of a program. It connects when a call needs it, and anew when
// a connection ended.
type Client struct {
	options Options
	links   []*link
	ring    ring
	near    *near
	// direct reads a server's memory. nil: there is none to be read.
	direct *direct
}

// Item is a value, and what else the server knows of it.
type Item struct {
	Value []byte
	// Flags are a number that the server keeps with the value, and that means nothing to it.
	Flags uint32
	// CAS is a number that changes with the item, for CompareAndSwap.
	CAS uint64
	// Left of its lifetime. Forever: it has no end.
	Left time.Duration
}

// Dial makes a client of the servers at this address:
//
//   - tcp://HOST[:PORT][*WEIGHT],… one server or several; port 11211 if none is named
//   - tls://… the same under TLS
//   - unix:///PATH a socket in the file system
//   - shm:///PATH?or=unix:///PATH the memory of a server with --shared PATH, if this program is built with the tag
//     nuthatch_direct, and where to ask for all that is not read; without the tag all of it is asked there. or=tcp://HOST:PORT
//     goes as well.
//
// Behind ? there may be options, with & between them, as docs/clients.md lists them. Nothing is connected yet.
// Errors: ErrAddress.
func Dial(address string) (*Client, error) {
	return DialWith(address, Options{})
}

// DialWith is Dial with options that the address does not name.
func DialWith(text string, options Options) (*Client, error) {
	parsed, err := parseAddress(text, &options)
	if err == nil {
		err = options.complete()
	}
	if err != nil {
		return nil, err
	}
	client := &Client{options: options, ring: newRing(parsed.servers, options.Distribution), near: newNear(&options)}
	for _, server := range parsed.servers {
		client.links = append(client.links, newLink(server, parsed.hasTLS, &client.options))
	}
	if parsed.memory != "" {
		if client.direct, err = openDirect(&parsed, &options); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// Close ends all connections. Calls that wait fail with ErrClosed, and so do later ones.
func (c *Client) Close() {
	for _, link := range c.links {
		link.close()
	}
	c.direct.close()
	c.near.forgetAll()
}

// Get returns the value under a key, or ErrNotFound. With Options.Near it may be one that this client read a while ago.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	known, seen := c.near.get(key)
	if known != nil {
		return known, nil
	}
	item, err := c.read(ctx, getValue, key)
	if err == nil {
		c.near.keep(key, item.Value, seen)
	}
	return item.Value, err
}

// GetItem returns the item under a key, or ErrNotFound.
func (c *Client) GetItem(ctx context.Context, key string) (Item, error) {
	return c.read(ctx, getItem, key)
}

func (c *Client) read(ctx context.Context, verb verb, key string) (Item, error) {
	if err := checkKey(key); err != nil {
		return Item{}, err
	}
	if item, err := c.readDirect(ctx, key, verb == getItem); err != errNotRead {
		return item, err
	}
	reply, err := c.ask(ctx, request{verb: verb, key: key})
	if err != nil {
		return Item{}, err
	}
	return reply.item(), nil
}

func (r *reply) item() Item {
	return Item{Value: r.value, Flags: r.flags, CAS: r.cas, Left: r.left}
}

// errNotRead: the server has to be asked.
var errNotRead = errors.New("not read")

// readDirect reads the server's memory, or returns errNotRead.
func (c *Client) readDirect(ctx context.Context, key string, isWhole bool) (Item, error) {
	if c.direct == nil || ctx.Err() != nil {
		return Item{}, errNotRead
	}
	item, err := c.direct.get(key, isWhole)
	if err == nil && len(item.Value) > c.options.ValueMax {
		return Item{}, errNotRead
	}
	return item, err
}

// Set stores a value, whatever there was.
func (c *Client) Set(ctx context.Context, key string, value []byte, lifetime time.Duration) error {
	return c.store(ctx, request{key: key, value: value}, lifetime)
}

// SetItem stores an item's value with its flags, whatever there was.
func (c *Client) SetItem(ctx context.Context, key string, item Item, lifetime time.Duration) error {
	return c.store(ctx, request{key: key, value: item.Value, flags: item.Flags}, lifetime)
}

// Add stores a value if there is none, or returns ErrNotStored.
func (c *Client) Add(ctx context.Context, key string, value []byte, lifetime time.Duration) error {
	return c.store(ctx, request{key: key, value: value, mode: onlyIfNone}, lifetime)
}

// Replace stores a value if there is one, or returns ErrNotStored.
func (c *Client) Replace(ctx context.Context, key string, value []byte, lifetime time.Duration) error {
	return c.store(ctx, request{key: key, value: value, mode: onlyIfExists}, lifetime)
}

// CompareAndSwap stores an item's value and flags if nobody has changed the item since GetItem gave it, or returns ErrChanged or
// ErrNotFound.
func (c *Client) CompareAndSwap(ctx context.Context, key string, item Item, lifetime time.Duration) error {
	return c.store(ctx, request{key: key, value: item.Value, flags: item.Flags, cas: item.CAS, hasCAS: true}, lifetime)
}

func (c *Client) store(ctx context.Context, asked request, lifetime time.Duration) (err error) {
	asked.verb = store
	if asked.lifetime, err = protocolSeconds(lifetime, time.Now); err != nil {
		return err
	}
	return c.change(ctx, asked)
}

// Increment adds to a number, which is stored as decimal digits, and returns the sum. It wraps around at 2^64. Errors:
// ErrNotFound, ErrNotANumber.
func (c *Client) Increment(ctx context.Context, key string, delta uint64) (uint64, error) {
	return c.count(ctx, request{verb: count, key: key, delta: delta})
}

// Decrement subtracts from a number, down to 0, and returns what is left. Errors: ErrNotFound, ErrNotANumber.
func (c *Client) Decrement(ctx context.Context, key string, delta uint64) (uint64, error) {
	return c.count(ctx, request{verb: count, key: key, delta: delta, isDown: true})
}

func (c *Client) count(ctx context.Context, asked request) (uint64, error) {
	defer c.near.forget(asked.key)
	reply, err := c.ask(ctx, asked)
	if err != nil {
		return 0, err
	}
	sum, _ := reply.sum()
	return sum, nil
}

// Touch gives an item a new lifetime, or returns ErrNotFound.
func (c *Client) Touch(ctx context.Context, key string, lifetime time.Duration) error {
	seconds, err := protocolSeconds(lifetime, time.Now)
	if err != nil {
		return err
	}
	return c.change(ctx, request{verb: touch, key: key, lifetime: seconds})
}

// Delete removes an item, or returns ErrNotFound.
func (c *Client) Delete(ctx context.Context, key string) error {
	return c.change(ctx, request{verb: remove, key: key})
}

// MakeStale keeps an item as out of date for this long. Of those that ask with GetOrCompute, one computes it anew, and the others
// get the old value meanwhile. The server takes a Get, a GetItem or a Touch that comes first for the one that computes: such a key
// is for GetOrCompute alone.
func (c *Client) MakeStale(ctx context.Context, key string, lifetime time.Duration) error {
	seconds, err := protocolSeconds(lifetime, time.Now)
	if err != nil {
		return err
	}
	return c.change(ctx, request{verb: makeStale, key: key, lifetime: seconds})
}

// Flush removes all items of all servers. All are asked, and all errors returned.
func (c *Client) Flush(ctx context.Context) error {
	defer c.near.forgetAll()
	return c.each(ctx, request{verb: flush})
}

// Ping asks all servers for a reply, and returns all errors.
func (c *Client) Ping(ctx context.Context) error {
	return c.each(ctx, request{verb: nothing})
}

func (c *Client) each(ctx context.Context, asked request) error {
	failed := make([]error, len(c.links))
	var all sync.WaitGroup
	for number, link := range c.links {
		all.Add(1)
		go func() {
			defer all.Done()
			replies, err := link.call(ctx, asked)
			if err == nil {
				err = link.named(replies[0].outcome())
			}
			failed[number] = err
		}()
	}
	all.Wait()
	return errors.Join(failed...)
}

// ServerOf is the place of the server that has the key now.
func (c *Client) ServerOf(key string) string {
	return c.links[c.server(key)].server.place
}

func (c *Client) server(key string) int {
	if c.options.EjectAfter == 0 {
		return c.ring.server(key, nil)
	}
	return c.ring.server(key, func(server int) bool { return c.links[server].isEjected() })
}

func (c *Client) change(ctx context.Context, asked request) error {
	// Also if it failed: it may have been carried out.
	defer c.near.forget(asked.key)
	_, err := c.ask(ctx, asked)
	return err
}

// ask carries out a request at its key's server. Errors also say what a change came to.
func (c *Client) ask(ctx context.Context, asked request) (reply, error) {
	if err := checkKey(asked.key); err != nil {
		return reply{}, err
	}
	if len(asked.value) > c.options.ValueMax {
		return reply{}, invalidValue(len(asked.value), c.options.ValueMax)
	}
	server := c.server(asked.key)
	replies, err := c.links[server].call(ctx, asked)
	for range len(c.links) - 1 {
		// It was tried, and by this failure has no keys any more. Nothing was sent, so the next one has the key.
		next := server
		if errors.Is(err, ErrDown) {
			next = c.server(asked.key)
		}
		if next == server {
			break
		}
		server = next
		replies, err = c.links[server].call(ctx, asked)
	}
	if err != nil {
		return reply{}, err
	}
	return replies[0], c.links[server].named(replies[0].outcome())
}
