package nuthatch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// lineMax is the longest line of a reply, in bytes.
	lineMax = 2048
	// A value of more bytes than these takes memory as its bytes come, and not as its length promises.
	trustedLength = 64 << 10
)

// code is what a reply says.
type code uint8

const (
	// HD
	codeDone code = iota
	// VA
	codeValue
	// EN: a get found nothing.
	codeMiss
	// NF
	codeNotFound
	// NS
	codeNotStored
	// EX: the item has another number.
	codeChanged
	// MN: the reply to a request for nothing.
	codeNothing
	// SERVER_ERROR or CLIENT_ERROR
	codeRefused
	// A line of the older commands.
	codeLine
)

func (c code) String() string {
	return [...]string{"HD", "VA", "EN", "NF", "NS", "EX", "MN", "a refusal", "a line"}[c]
}

// reply is a whole reply.
type reply struct {
	code  code
	value []byte
	// words of the server: why it refused, or a line.
	words string
	flags uint32
	cas   uint64
	// left of the item's lifetime; Forever without an end.
	left time.Duration
	// number of the request.
	number uint16
	// Which of these were there.
	hasCAS, hasLeft, hasNumber bool
	// won: this client is to renew the item. stale: it is out of date. taken: another client is to renew it.
	won, stale, taken bool
}

// readReply reads one reply. After an error nothing that follows can be believed. It takes no more memory than a line of lineMax
// bytes and a value of valueMax.
func readReply(in *bufio.Reader, valueMax int) (reply, error) {
	text, err := readLine(in)
	if err != nil {
		return reply{}, err
	}
	word, rest, _ := bytes.Cut(text, []byte(" "))
	var read reply
	switch string(word) {
	case "VA":
		return readValue(in, text, rest, valueMax)
	case "HD":
		read.code = codeDone
	case "EN":
		read.code = codeMiss
	case "NF":
		read.code = codeNotFound
	case "NS":
		read.code = codeNotStored
	case "EX":
		read.code = codeChanged
	case "MN":
		read.code = codeNothing
	case "SERVER_ERROR", "CLIENT_ERROR":
		return reply{code: codeRefused, words: string(rest)}, nil
	case "OK", "STORED":
		return reply{code: codeLine, words: string(text)}, nil
	case "ERROR":
		// The server did not understand a line, so it takes what follows it, a value, for lines, too.
		return reply{}, unexpected("ERROR: the server does not know the meta commands")
	default:
		return reply{}, odd(text)
	}
	if !read.takeFlags(rest) {
		return reply{}, odd(text)
	}
	return read, nil
}

// readLine reads a line without its end. It is valid until the next read.
func readLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(text) > lineMax {
		return nil, unexpected("a line of over %d bytes", lineMax)
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text[:len(text)-1], []byte("\r")), nil
}

// readValue reads a reply with a value, of whose line the words after VA are given.
func readValue(in *bufio.Reader, text, rest []byte, valueMax int) (reply, error) {
	digits, flags, _ := bytes.Cut(rest, []byte(" "))
	length, ok := decimal(digits, 31)
	read := reply{code: codeValue}
	if !ok || !read.takeFlags(flags) {
		return reply{}, odd(text)
	}
	if length > uint64(valueMax) {
		return reply{}, unexpected("a value of %d bytes, where at most %d are expected", length, valueMax)
	}
	var err error
	if read.value, err = readBytes(in, int(length)); err != nil {
		return reply{}, err
	}
	var ending [2]byte
	if _, err := io.ReadFull(in, ending[:]); err != nil {
		return reply{}, whole(err)
	}
	if ending != [2]byte{'\r', '\n'} {
		return reply{}, unexpected("a value of %d bytes has another length", length)
	}
	return read, nil
}

func readBytes(in *bufio.Reader, length int) ([]byte, error) {
	read := make([]byte, min(length, trustedLength))
	for from := 0; ; {
		if _, err := io.ReadFull(in, read[from:]); err != nil {
			return nil, whole(err)
		}
		if from = len(read); from == length {
			return read, nil
		}
		read = append(read, make([]byte, min(from, length-from))...)
	}
}

// whole is the error of a reply that ends in its middle.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// takeFlags reads the flags of a reply and passes over unknown ones. False: one of them is malformed.
func (r *reply) takeFlags(text []byte) bool {
	for len(text) > 0 {
		var flag []byte
		flag, text, _ = bytes.Cut(text, []byte(" "))
		if len(flag) > 0 && !r.takeFlag(flag[0], flag[1:]) {
			return false
		}
	}
	return true
}

func (r *reply) takeFlag(name byte, token []byte) (ok bool) {
	var number uint64
	switch name {
	case 'f':
		number, ok = decimal(token, 32)
		r.flags = uint32(number)
	case 'c':
		r.cas, ok = decimal(token, 64)
		r.hasCAS = true
	case 't':
		r.hasLeft = true
		if string(token) == "-1" {
			r.left = Forever
			return true
		}
		number, ok = decimal(token, 32)
		// An item in its last second has a lifetime still.
		r.left = max(time.Duration(number)*time.Second, 1)
	case 'O':
		var parsed uint64
		parsed, ok = unsigned(token, 16, 16)
		r.number, r.hasNumber = uint16(parsed), true
	case 'W':
		r.won, ok = true, true
	case 'X':
		r.stale, ok = true, true
	case 'Z':
		r.taken, ok = true, true
	default:
		ok = true
	}
	return ok
}

func decimal(token []byte, bits int) (uint64, bool) {
	return unsigned(token, 10, bits)
}

// unsigned reads a number of digits alone: no sign.
func unsigned(token []byte, base, bits int) (uint64, bool) {
	if len(token) == 0 || len(token) > 20 || token[0] == '+' || token[0] == '-' {
		return 0, false
	}
	number, err := strconv.ParseUint(string(token), base, bits)
	return number, err == nil
}

func odd(text []byte) error {
	return unexpected("%q", text[:min(len(text), 80)])
}

// check says why a reply cannot be one to a request of this verb and number.
func (r *reply) check(verb verb, number uint16) error {
	if verb.isNumbered() {
		switch {
		case r.hasNumber && r.number != number:
			return unexpected("a reply to request %x in place of %x", r.number, number)
		case !r.hasNumber && (r.code == codeValue || r.code == codeDone):
			return unexpected("a reply without its request's number")
		}
	}
	if r.code != codeRefused && !r.answers(verb) {
		// A value would be long, and is nobody else's business.
		return unexpected("%v %q, which answers another request", r.code, r.words)
	}
	return nil
}

// answers says whether a reply has the code and the details that a request of this verb asks for.
func (r *reply) answers(verb verb) bool {
	switch verb {
	case getValue:
		return r.code == codeValue || r.code == codeMiss
	case getItem:
		return r.code == codeMiss || (r.code == codeValue && r.hasCAS && r.hasLeft)
	case getLease:
		return r.code == codeValue && (r.hasCAS || !r.won)
	case touch:
		return r.code == codeDone || r.code == codeMiss || r.code == codeNotFound
	case store:
		return r.code == codeDone || r.code == codeNotFound || r.code == codeNotStored || r.code == codeChanged
	case remove, makeStale:
		return r.code == codeDone || r.code == codeNotFound || r.code == codeChanged
	case count:
		_, isNumber := r.sum()
		return r.code == codeNotFound || (r.code == codeValue && isNumber)
	case nothing:
		return r.code == codeNothing
	case flush:
		return r.code == codeLine && r.words == "OK"
	case login:
		return r.code == codeLine && r.words == "STORED"
	}
	return false
}

// sum is the number that a count returns. memcached leaves spaces behind one that has become shorter.
func (r *reply) sum() (uint64, bool) {
	return decimal(bytes.TrimRight(r.value, " "), 64)
}

// outcome is what a change came to.
func (r *reply) outcome() error {
	switch r.code {
	case codeMiss, codeNotFound:
		return ErrNotFound
	case codeNotStored:
		return ErrNotStored
	case codeChanged:
		return ErrChanged
	case codeRefused:
		if strings.Contains(r.words, "non-numeric") {
			return ErrNotANumber
		}
		return failure(ErrRefused, r.words)
	}
	return nil
}
