package nuthatch

import (
	"crypto/tls"
	"fmt"
	"time"
)

// Options say how a client behaves. A field that is zero has its default. The address may have the same, by the names that
// docs/clients.md lists.
type Options struct {
	// Timeout is how long a call may take: a second by default. A context can end it sooner. If it has to wait for a connection
	// first, that comes on top.
	Timeout time.Duration
	// ConnectTimeout is how long a connection may take to be made, with TLS and its login: a second by default.
	ConnectTimeout time.Duration
	// LateMax: a connection whose oldest reply is late by more than this is closed. 3 seconds by default.
	LateMax time.Duration
	// RequestsMax is how many requests may wait for replies on one connection: 4096 by default.
	RequestsMax int
	// BytesMax: a call that finds so many bytes waiting to be sent on its connection waits for room. 1 MiB by default.
	BytesMax int
	// FailWhenFull: a call that finds no room fails with ErrFull, and does not wait.
	FailWhenFull bool
	// ValueMax is the largest value that is sent, or taken from a server: 64 MiB by default.
	ValueMax int
	// RetryLeast is how long no connection is attempted after the first failure: 50 ms by default. It doubles with each failure,
	// and a random part of up to a half is taken off.
	RetryLeast time.Duration
	// RetryMost is the longest of these times: 10 seconds by default.
	RetryMost time.Duration
	// RetryWait is how long calls wait for a connection to a server that has failed, or whose last replies did not come, from the
	// moment when the attempt to make one begins: it goes on without them. 0: until it ends.
	RetryWait time.Duration
	// EjectAfter: after so many failures in a row the server's keys go to the other servers, until it answers again. 0: never,
	// because a server that returns has values that are out of date.
	EjectAfter int
	// Distribution says which server has which keys.
	Distribution Distribution
	// Near: values that Get and GetMulti have read stay in this process for so long, and other clients' changes are seen so much
	// later. 0: they do not.
	Near time.Duration
	// NearBytes is how many bytes of memory they take: 16 MiB by default.
	NearBytes int
	// Login is for a server with -Y.
	Login *Login
	// TLS is for tls:// alone. By default the system's certificates are trusted, or those of ca=FILE in the address.
	TLS *tls.Config
}

// Distribution says which server has which keys.
type Distribution int

const (
	// Ketama is as libmemcached with KETAMA_WEIGHTED, and most clients: each server has some 160 places on a ring, and more of
	// them the more weight it has.
	Ketama Distribution = iota
	// KetamaUnweighted is as libmemcached with KETAMA and its default hash: each server has 100 places.
	KetamaUnweighted
)

// Login is a name and its password.
type Login struct {
	Name, Password string
}

// String does not show the password.
func (l Login) String() string {
	return l.Name + ":…"
}

// GoString does not either.
func (l Login) GoString() string {
	return l.String()
}

// complete puts the defaults in, and refuses what cannot be.
func (o *Options) complete() error {
	for _, one := range []struct {
		name     string
		field    *time.Duration
		standard time.Duration
	}{
		{"timeout", &o.Timeout, time.Second},
		{"connect timeout", &o.ConnectTimeout, time.Second},
		{"late max", &o.LateMax, 3 * time.Second},
		{"retry least", &o.RetryLeast, 50 * time.Millisecond},
		{"retry most", &o.RetryMost, 10 * time.Second},
		{"retry wait", &o.RetryWait, 0},
		{"near", &o.Near, 0},
	} {
		if err := complete(one.name, one.field, one.standard); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		name     string
		field    *int
		standard int
	}{
		{"requests max", &o.RequestsMax, 4096},
		{"bytes max", &o.BytesMax, 1 << 20},
		{"value max", &o.ValueMax, 64 << 20},
		{"eject after", &o.EjectAfter, 0},
		{"near bytes", &o.NearBytes, 16 << 20},
	} {
		if err := complete(one.name, one.field, one.standard); err != nil {
			return err
		}
	}
	if o.Distribution != Ketama && o.Distribution != KetamaUnweighted {
		return failure(ErrAddress, fmt.Sprintf("there is no distribution %d", o.Distribution))
	}
	return nil
}

func complete[N int | time.Duration](name string, field *N, standard N) error {
	if *field < 0 {
		return failure(ErrAddress, fmt.Sprintf("%s: %v is negative", name, *field))
	}
	if *field == 0 {
		*field = standard
	}
	return nil
}
