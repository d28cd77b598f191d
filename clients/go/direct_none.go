//go:build !nuthatch_direct

package nuthatch

// HasDirect: this program reads servers' memory at shm:// addresses. Without the build tag nuthatch_direct it asks at their or=.
const HasDirect = false

// direct reads a server's memory: not without the build tag nuthatch_direct.
type direct struct{}

func openDirect(*address, *Options) (*direct, error) {
	return nil, nil
}

func (*direct) get(string, bool) (Item, error) {
	return Item{}, errNotRead
}

func (*direct) close() {}
