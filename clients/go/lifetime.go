package nuthatch

import (
	"math"
	"time"
)

// Forever is the lifetime of an item without an end.
const Forever time.Duration = 0

const (
	// The protocol takes more seconds than these for a date.
	relativeMax = 30 * 24 * 60 * 60
	// The last date that memcached understands: in January 2038.
	dateMax = math.MaxInt32
)

// protocolSeconds is a lifetime as the protocol's number, rounded up to whole seconds. An end after the last date is no end.
func protocolSeconds(lifetime time.Duration, now func() time.Time) (int64, error) {
	if lifetime < 0 {
		return 0, failure(ErrLifetime, lifetime.String())
	}
	whole := wholeSeconds(lifetime)
	if whole > relativeMax {
		whole += now().Unix()
	}
	if whole > dateMax {
		return 0, nil
	}
	return whole, nil
}

// wholeSeconds rounds up.
func wholeSeconds(length time.Duration) int64 {
	whole := int64(length / time.Second)
	if length%time.Second > 0 {
		whole++
	}
	return whole
}
