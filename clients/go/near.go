package nuthatch

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"sync"
	"time"
)

const (
	// The memory that an entry takes beside its key and its value, roughly.
	entryBytes = 200
	// Keys are told apart by so many versions.
	versionsOfKeys = 256
)

// near is the near cache: values that were read stay in this process for a while. nil: there is none.
//
// A value that was being read while this client changed it is not kept: get gives a version, which a change of this key alters,
// and keep takes it back.
type near struct {
	lifetime time.Duration
	bytesMax int
	seed     maphash.Seed

	lock     sync.Mutex
	entries  map[string]*list.Element
	order    list.List // of *entry, the one that was used last in front
	bytes    int
	versions [versionsOfKeys]uint64
}

type entry struct {
	key   string
	value []byte
	until time.Time
}

func (e *entry) bytes() int {
	return len(e.key) + len(e.value) + entryBytes
}

func newNear(options *Options) *near {
	if options.Near == 0 {
		return nil
	}
	made := &near{lifetime: options.Near, bytesMax: options.NearBytes, seed: maphash.MakeSeed()}
	made.entries = make(map[string]*list.Element)
	return made
}

// get returns a copy of the value, or nil, and the key's version.
func (n *near) get(key string) ([]byte, uint64) {
	if n == nil {
		return nil, 0
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	version := *n.version(key)
	element := n.entries[key]
	if element == nil {
		return nil, version
	}
	found := element.Value.(*entry)
	if time.Now().After(found.until) {
		n.remove(element)
		return nil, version
	}
	n.order.MoveToFront(element)
	// Of an empty value, too, it is not nil.
	return append([]byte{}, found.value...), version
}

// keep keeps a copy of a value that was read since get gave this version.
func (n *near) keep(key string, value []byte, version uint64) {
	if n == nil {
		return
	}
	kept := &entry{key: key, value: bytes.Clone(value), until: time.Now().Add(n.lifetime)}
	// A value that takes most of the room is not worth what it displaces.
	if kept.bytes() > n.bytesMax/4 {
		return
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	if *n.version(key) != version {
		return
	}
	if old := n.entries[key]; old != nil {
		n.remove(old)
	}
	n.entries[key] = n.order.PushFront(kept)
	n.bytes += kept.bytes()
	for n.bytes > n.bytesMax {
		n.remove(n.order.Back())
	}
}

// forget is for a key that this client has changed.
func (n *near) forget(key string) {
	if n == nil {
		return
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	*n.version(key)++
	if element := n.entries[key]; element != nil {
		n.remove(element)
	}
}

func (n *near) forgetAll() {
	if n == nil {
		return
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	for i := range n.versions {
		n.versions[i]++
	}
	clear(n.entries)
	n.order.Init()
	n.bytes = 0
}

func (n *near) remove(element *list.Element) {
	removed := n.order.Remove(element).(*entry)
	delete(n.entries, removed.key)
	n.bytes -= removed.bytes()
}

func (n *near) version(key string) *uint64 {
	return &n.versions[maphash.String(n.seed, key)%versionsOfKeys]
}
