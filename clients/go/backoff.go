package nuthatch

import (
	"math/rand/v2"
	"time"
)

// backoff counts a server's failures in a row, and says when it is tried again.
type backoff struct {
	failures int
	retryAt  time.Time
}

// failed notes an attempt that failed.
func (b *backoff) failed(now time.Time, options *Options) {
	b.failures++
	b.retryAt = now.Add(pause(b.failures, options, rand.Float64()))
}

// left is how long nobody is to try. 0: it is time.
func (b *backoff) left(now time.Time) time.Duration {
	return max(b.retryAt.Sub(now), 0)
}

// pause is the pause after so many failures: doubled with each, and a random part of up to a half taken off, so that many clients
// do not come all at once.
func pause(failures int, options *Options, random float64) time.Duration {
	whole := options.RetryLeast
	for range failures - 1 {
		if whole >= options.RetryMost {
			break
		}
		whole *= 2
	}
	return time.Duration(float64(min(whole, options.RetryMost)) * (1 - random/2))
}
