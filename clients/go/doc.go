// Package nuthatch is a client of servers that speak memcached's meta protocol: memcached from 1.6 on, and Nuthatch.
//
//	client, err := nuthatch.Dial("tcp://127.0.0.1:11211")
//	err = client.Set(ctx, "user:7", []byte("Ada"), time.Minute)
//	name, err := client.Get(ctx, "user:7")
//
// All goroutines share one [Client]. It has one connection to each server, on which their calls travel together: who finds
// nobody sending, sends at once; who finds somebody sending, leaves its request to them, and all that has been left goes in the
// next write.
//
// A key is any 1 to 250 bytes; with white space or control characters at most 186, because such a key travels in base64.
// A value is any bytes. A lifetime is rounded up to whole seconds; [Forever] is without an end.
//
// How it works, from above:
//
//	client, batch, lease, typed   calls, and what replies mean
//	ring, near                    which server has a key; values that were read a moment ago
//	link, backoff                 a connection, another one after it, pauses in between
//	connection                    who sends, who reads, which call has which reply
//	request, reply                the protocol: to bytes, from bytes
package nuthatch
