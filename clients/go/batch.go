package nuthatch

import (
	"context"
	"errors"
	"sync"
)

// The most requests that travel as one, so that other calls come in between.
const togetherMax = 512

// GetMulti returns the values under these keys: those that there are. All servers are asked at once, each for 512 keys at a time,
// for which it has Options.Timeout. If one of them fails, the values that came before and those of the others are there, and the
// error is that of the one.
func (c *Client) GetMulti(ctx context.Context, keys []string) (map[string][]byte, error) {
	found := make(map[string][]byte, len(keys))
	parts := make(map[int][]request)
	seen := make(map[string]uint64)
	// Until a key could not be read: each of the others may take as long as that one.
	canRead := true
	var failed []error
	for _, key := range keys {
		if _, isAgain := seen[key]; isAgain {
			continue
		}
		if err := checkKey(key); err != nil {
			failed = append(failed, err)
			continue
		}
		known, version := c.near.get(key)
		seen[key] = version
		if known == nil {
			item, err := Item{}, errNotRead
			if canRead {
				item, err = c.readDirect(ctx, key, false)
			}
			if err == errNotRead {
				canRead = false
				server := c.server(key)
				parts[server] = append(parts[server], request{verb: getValue, key: key})
				continue
			}
			if err != nil {
				continue
			}
			known = item.Value
		}
		found[key] = known
	}
	failed = append(failed, c.askAll(ctx, parts, func(key string, value []byte) {
		found[key] = value
		c.near.keep(key, value, seen[key])
	})...)
	return found, errors.Join(failed...)
}

// askAll asks all servers for their parts at once, and gives what there is to take, one at a time.
func (c *Client) askAll(ctx context.Context, parts map[int][]request, take func(string, []byte)) []error {
	var failed []error
	var lock sync.Mutex
	var all sync.WaitGroup
	for server, requests := range parts {
		all.Add(1)
		go func() {
			defer all.Done()
			replies, err := c.links[server].callMany(ctx, requests)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				failed = append(failed, err)
			}
			for i := range replies {
				if err := c.links[server].named(replies[i].outcome()); err == nil {
					take(requests[i].key, replies[i].value)
				} else if !errors.Is(err, ErrNotFound) {
					failed = append(failed, err)
				}
			}
		}()
	}
	all.Wait()
	return failed
}

// callMany asks for any number of requests, as many at a time as may travel together. Of those before an error there are replies.
func (l *link) callMany(ctx context.Context, requests []request) (replies []reply, err error) {
	together := max(min(togetherMax, l.options.RequestsMax/4), 1)
	for len(requests) > 0 && err == nil {
		var some []reply
		part := requests[:min(together, len(requests))]
		some, err = l.call(ctx, part...)
		replies = append(replies, some...)
		requests = requests[len(part):]
	}
	return replies, err
}
