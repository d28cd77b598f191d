package nuthatch

import "strconv"

// verb is what a request asks for, and so which replies it can have.
type verb uint8

const (
	getValue verb = iota
	getItem
	// getLease asks for an item, or for the right to compute it.
	getLease
	touch
	store
	remove
	// makeStale leaves an item as out of date: the next lease wins the right to renew it.
	makeStale
	count
	// The others are no meta commands, or not about keys: their replies bring no number back.
	nothing
	flush
	login
)

func (v verb) isNumbered() bool {
	return v < nothing
}

// isRead says whether a request may be sent again if its reply did not come: it changes nothing.
func (v verb) isRead() bool {
	return v == getValue || v == getItem || v == nothing
}

// mode says when a value is stored: the protocol's letter, or 0 for always.
type mode byte

const (
	always       mode = 0
	onlyIfNone   mode = 'E'
	onlyIfExists mode = 'R'
)

// request is one request, with the fields that its verb needs.
type request struct {
	verb verb
	key  string
	// value to be stored, or who logs in.
	value []byte
	flags uint32
	mode  mode
	// lifetime is the protocol's number.
	lifetime int64
	// cas: only if the item has this number.
	cas    uint64
	hasCAS bool
	// delta is added, or with isDown subtracted.
	delta  uint64
	isDown bool
	// lease: without an item, an empty one is made for so many seconds.
	lease int64
	// early: with no more than so many seconds left, one is to renew the item. Negative: never.
	early int64
	// unwanted is called with a reply that came after its call had given up, if it is set.
	unwanted func(*reply)
}

// appendTo adds the request to what will be sent. The server gives the number back with what it answers to a meta command, so
// that a reply to another request is noticed.
func (r *request) appendTo(out []byte, number uint16) []byte {
	switch r.verb {
	case getValue, getItem, getLease, touch:
		out = r.appendGet(r.begin(out, "mg "))
	case store:
		return r.appendStore(out, number)
	case remove:
		out = r.appendCAS(r.begin(out, "md "))
	case makeStale:
		out = appendNumber(append(r.begin(out, "md "), " I"...), " T", r.lifetime)
	case count:
		out = append(r.begin(out, "ma "), " v D"...)
		out = strconv.AppendUint(out, r.delta, 10)
		if r.isDown {
			out = append(out, " MD"...)
		}
	case nothing:
		return append(out, "mn\r\n"...)
	case flush:
		return append(out, "flush_all\r\n"...)
	case login:
		out = appendNumber(out, "set login 0 0 ", int64(len(r.value)))
		return appendBlock(append(out, "\r\n"...), r.value)
	}
	return end(out, number)
}

func (r *request) begin(out []byte, command string) []byte {
	out, isEncoded := appendKey(append(out, command...), r.key)
	if isEncoded {
		out = append(out, " b"...)
	}
	return out
}

func (r *request) appendGet(out []byte) []byte {
	switch r.verb {
	case getValue:
		out = append(out, " v"...)
	case getItem:
		out = append(out, " v f c t"...)
	case touch:
		out = appendNumber(out, " T", r.lifetime)
	case getLease:
		out = appendNumber(append(out, " v c"...), " N", r.lease)
		if r.early >= 0 {
			out = appendNumber(out, " R", r.early)
		}
	}
	return out
}

func (r *request) appendStore(out []byte, number uint16) []byte {
	out, isEncoded := appendKey(append(out, "ms "...), r.key)
	out = appendNumber(out, " ", int64(len(r.value)))
	if isEncoded {
		out = append(out, " b"...)
	}
	if r.flags != 0 {
		out = appendNumber(out, " F", int64(r.flags))
	}
	if r.lifetime != 0 {
		out = appendNumber(out, " T", r.lifetime)
	}
	out = r.appendCAS(out)
	if r.mode != always {
		out = append(out, ' ', 'M', byte(r.mode))
	}
	return appendBlock(end(out, number), r.value)
}

func (r *request) appendCAS(out []byte) []byte {
	if !r.hasCAS {
		return out
	}
	return strconv.AppendUint(append(out, " C"...), r.cas, 10)
}

func end(out []byte, number uint16) []byte {
	out = strconv.AppendUint(append(out, " O"...), uint64(number), 16)
	return append(out, "\r\n"...)
}

func appendBlock(out, value []byte) []byte {
	return append(append(out, value...), "\r\n"...)
}

func appendNumber(out []byte, before string, number int64) []byte {
	return strconv.AppendInt(append(out, before...), number, 10)
}
