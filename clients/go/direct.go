//go:build nuthatch_direct

package nuthatch

/*
#cgo pkg-config: nuthatch-client
#include <nuthatch_client.h>
#include <string.h>

// One call from Go for a value that fits into the room: gets it, copies it there, frees it.
static int nuthatch_go_get(const nuthatch_client *client, const uint8_t *key, size_t key_length, int is_whole,
                           uint8_t *room, size_t room_length, nuthatch_client_value *value) {
    int status = is_whole ? nuthatch_client_get_item(client, key, key_length, value)
                          : nuthatch_client_get(client, key, key_length, value);
    if (status == NUTHATCH_CLIENT_STATUS_DONE && value->length <= room_length) {
        // What free leaves is no value. All but the bytes stays.
        nuthatch_client_value found = *value;
        if (found.length > 0)
            memcpy(room, found.data, found.length);
        nuthatch_client_value_free(value);
        found.data = NULL;
        *value = found;
    }
    return status;
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// HasDirect: this program reads servers' memory at shm:// addresses. Without the build tag nuthatch_direct it asks at their or=.
const HasDirect = true

// roomBytes: a longer value costs two calls more into C.
const roomBytes = 4096

const (
	// So many goroutines may wait in C beside those that run. There each takes a thread of the system until it has its answer, and
	// a program of ten thousand threads is ended by Go. Those for whom there is no room ask in Go.
	waitingMost = 64
	// hasClosed is in inside from close on. It is more than ever are in C.
	hasClosed = 1 << 32
)

// direct reads a server's memory, through the C client.
//
// Invariant: who uses the client is counted in inside, and entered it when it was at most insideMost. So after close nobody enters,
// and where it is hasClosed alone, nobody uses the client any more.
type direct struct {
	client     *C.nuthatch_client
	inside     atomic.Int64
	insideMost int64
	// Each happens once.
	closing, destruction sync.Once
}

// room is what C writes to. It has no pointer into Go's memory.
type room struct {
	value C.nuthatch_client_value
	bytes [roomBytes]byte
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// openDirect connects nothing yet.
func openDirect(address *address, options *Options) (*direct, error) {
	text, err := addressForC(address, options)
	if err != nil {
		return nil, err
	}
	words := append([]byte(text), 0)
	made := &direct{insideMost: int64(runtime.GOMAXPROCS(0) + waitingMost)}
	if C.nuthatch_client_connect((*C.char)(unsafe.Pointer(&words[0])), &made.client) < 0 {
		return nil, invalid("%s", C.GoString(C.nuthatch_client_error()))
	}
	return made, nil
}

// addressForC has the options that the C client knows.
func addressForC(address *address, options *Options) (string, error) {
	words := []string{}
	hasLogin := false
	for _, word := range strings.Split(address.rest, "&") {
		hasLogin = hasLogin || strings.HasPrefix(word, "login_file=")
		if word != "" && !strings.HasPrefix(word, "near_") {
			words = append(words, word)
		}
	}
	if options.Login != nil && !hasLogin {
		return "", invalid("shm:// takes its login from login_file=")
	}
	for _, option := range []struct {
		name string
		time time.Duration
	}{{"timeout", options.Timeout}, {"connect_timeout", options.ConnectTimeout}} {
		words = append(words, fmt.Sprintf("%s_ms=%d", option.name, max(option.time.Milliseconds(), 1)))
	}
	return "shm://" + address.memory + "?" + strings.Join(words, "&"), nil
}

// get reads the value under a key, and with isWhole the rest of the item. It returns errNotRead if C cannot say it either.
func (d *direct) get(key string, isWhole bool) (Item, error) {
	if d == nil {
		return Item{}, errNotRead
	}
	if !d.enter() {
		return Item{}, errNotRead
	}
	defer d.leave()
	room := rooms.Get().(*room)
	defer rooms.Put(room)
	wants := C.int(0)
	if isWhole {
		wants = 1
	}
	status := C.nuthatch_go_get(d.client, (*C.uint8_t)(unsafe.StringData(key)), C.size_t(len(key)), wants,
		(*C.uint8_t)(&room.bytes[0]), roomBytes, &room.value)
	switch status {
	case C.NUTHATCH_CLIENT_STATUS_DONE:
		return room.item(), nil
	case C.NUTHATCH_CLIENT_STATUS_NOT_FOUND:
		return Item{}, ErrNotFound
	}
	return Item{}, errNotRead
}

// item copies what C has written.
func (r *room) item() Item {
	found := Item{Flags: uint32(r.value.flags), CAS: uint64(r.value.cas), Left: Forever}
	if seconds := r.value.seconds_left; seconds >= 0 {
		// An item in its last second has a lifetime still.
		found.Left = max(time.Duration(seconds)*time.Second, 1)
	}
	length := int(r.value.length)
	if r.value.data == nil {
		found.Value = append(make([]byte, 0, length), r.bytes[:length]...)
		return found
	}
	found.Value = append(make([]byte, 0, length), unsafe.Slice((*byte)(r.value.data), length)...)
	C.nuthatch_client_value_free(&r.value)
	return found
}

// enter says whether the caller may use the client until it leaves.
func (d *direct) enter() bool {
	if d.inside.Add(1) <= d.insideMost {
		return true
	}
	d.leave()
	return false
}

func (d *direct) leave() {
	if d.inside.Add(-1) == hasClosed {
		d.destruction.Do(func() { C.nuthatch_client_destroy(d.client) })
	}
}

// close waits for nobody: who leaves last ends the client.
func (d *direct) close() {
	if d == nil {
		return
	}
	d.closing.Do(func() {
		d.inside.Add(hasClosed + 1)
		d.leave()
	})
}
