package nuthatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Compute says how a value is computed and kept.
type Compute struct {
	// Lifetime of the value.
	Lifetime time.Duration
	// Lease is how long others wait for the one that computes, in whole seconds, rounded up: 10 seconds by default. Then another
	// one computes, for which they wait as long.
	Lease time.Duration
	// Early: when no more than this is left of the value's lifetime, in whole seconds, one computes it anew, and the others get
	// the old one meanwhile. 0: it is computed when it has expired.
	Early time.Duration
}

const (
	leaseStandard = 10 * time.Second
	// Pauses between looks for another one's value: short ones first.
	pauseLeast = time.Millisecond
	pauseMost  = 50 * time.Millisecond
	// Servers count whole seconds, and may be one late.
	leaseLate = 2 * time.Second
	// A longer lease than a year is one.
	leaseMost = 365 * 24 * time.Hour
)

// GetOrCompute returns the value under a key; if there is none, it is computed and stored. Of all that ask at a time, in this
// process and in others, one computes, and the others wait for it, or get the old value if there is one.
//
// It asks the server, also with shm://: an item that is read out of memory does not say who is to compute it. If the server
// cannot be asked, the value is computed here and not stored. If the computation fails or panics, or takes longer than its lease,
// one of those that wait computes; who has waited for two leases computes, too. An empty value looks like none while somebody
// computes it anew: who asks then, waits. Errors: what compute returned; ErrKey, ErrLifetime, ErrClosed; and the context's.
func (c *Client) GetOrCompute(
	ctx context.Context, key string, how Compute, compute func(context.Context) ([]byte, error),
) ([]byte, error) {
	asked, err := how.request(key)
	if err != nil {
		return nil, err
	}
	// The reply to a call that has given up may say that this client is to compute, for which all others would wait.
	asked.unwanted = func(reply *reply) { c.giveUp(ctx, key, reply) }
	// If one that computes dies, all others but one wait for that one, instead of computing as well.
	until := time.Now().Add(2 * (how.Lease + leaseLate))
	for pause := pauseLeast; time.Now().Before(until); pause = min(pause*2, pauseMost) {
		reply, err := c.ask(ctx, asked)
		if ctx.Err() != nil {
			if err == nil {
				c.giveUp(ctx, key, &reply)
			}
			return nil, late(ctx, MaybeCarriedOut(err))
		}
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		if err != nil {
			break
		}
		switch {
		case reply.won:
			return c.computeFor(ctx, key, how, &reply, compute)
		case reply.hasValue() || !reply.taken:
			return reply.value, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
	return compute(ctx)
}

// hasValue says whether a lease's item is a value. The item that the first miss makes has no bytes.
func (r *reply) hasValue() bool {
	return r.stale || len(r.value) > 0
}

// giveUp lets the next client compute what this one was to compute, whatever became of the context. Who gets an old value
// meanwhile does not wait.
func (c *Client) giveUp(ctx context.Context, key string, won *reply) {
	if won.won && !won.hasValue() {
		_ = c.change(context.WithoutCancel(ctx), request{verb: remove, key: key, cas: won.cas, hasCAS: true})
	}
}

func (h *Compute) request(key string) (request, error) {
	if err := checkKey(key); err != nil {
		return request{}, err
	}
	if h.Lease == 0 {
		h.Lease = leaseStandard
	}
	asked := request{verb: getLease, key: key, early: -1}
	for _, one := range []time.Duration{h.Lifetime, h.Lease, h.Early} {
		if _, err := protocolSeconds(one, time.Now); err != nil {
			return request{}, err
		}
	}
	h.Lease = time.Duration(wholeSeconds(min(h.Lease, leaseMost))) * time.Second
	asked.lease, _ = protocolSeconds(h.Lease, time.Now)
	if h.Early > 0 {
		asked.early = wholeSeconds(h.Early)
	}
	return asked, nil
}

// computeFor computes for all, and stores the value.
func (c *Client) computeFor(
	ctx context.Context, key string, how Compute, won *reply, compute func(context.Context) ([]byte, error),
) ([]byte, error) {
	isStored := false
	// Then others need not wait: also if compute panics.
	defer func() {
		if !isStored {
			c.giveUp(ctx, key, won)
		}
	}()
	value, err := compute(ctx)
	if err != nil {
		return nil, err
	}
	// Whether the server takes it changes nothing about the value. It was computed for others, too, so the context's end does not
	// matter.
	asked := request{key: key, value: value, cas: won.cas, hasCAS: true}
	isStored = c.store(context.WithoutCancel(ctx), asked, how.Lifetime) == nil
	return value, nil
}

// sleep sleeps for a random part of this time, from a half to all of it.
func sleep(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(most/2 + rand.N(most/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return late(ctx, false)
	}
}
