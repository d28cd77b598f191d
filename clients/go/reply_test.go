package nuthatch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func parse(text string) (reply, error) {
	return readReply(bufio.NewReader(strings.NewReader(text)), 100)
}

func TestReplies(t *testing.T) {
	for text, expected := range map[string]reply{
		"HD\r\n":                       {code: codeDone},
		"HD\n":                         {code: codeDone},
		"EN\r\n":                       {code: codeMiss},
		"NF\r\n":                       {code: codeNotFound},
		"NS \r\n":                      {code: codeNotStored},
		"EX\r\n":                       {code: codeChanged},
		"MN\r\n":                       {code: codeNothing},
		"VA 0\r\n\r\n":                 {code: codeValue, value: []byte{}},
		"VA 4\r\na\r\nb\r\n":           {code: codeValue, value: []byte("a\r\nb")},
		"SERVER_ERROR out of memory\n": {code: codeRefused, words: "out of memory"},
		"CLIENT_ERROR \r\n":            {code: codeRefused},
		"OK\r\n":                       {code: codeLine, words: "OK"},
		"HD t-1 kx s1 h0 y\r\n":        {code: codeDone, hasLeft: true},
		"HD t0\r\n":                    {code: codeDone, hasLeft: true, left: 1},
		"HD t5 O0ab\r\n":               {code: codeDone, hasLeft: true, left: 5 * time.Second, number: 0xab, hasNumber: true},
		"VA 1 f7 c99 W X Z\r\nv\r\n": {code: codeValue, value: []byte("v"), flags: 7, cas: 99, hasCAS: true, won: true, stale: true,
			taken: true},
	} {
		found, err := parse(text)
		if err != nil || !reflect.DeepEqual(found, expected) {
			t.Errorf("%q: %+v, %v", text, found, err)
		}
		for cut := range len(text) {
			if found, err := parse(text[:cut]); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q: %+v, %v", text[:cut], found, err)
			}
		}
	}
}

func TestWhatIsNoReply(t *testing.T) {
	for _, text := range []string{
		"\r\n", "ERROR\r\n", "HELLO\r\n", "VALUE k 0 1\r\n", "VA\r\n", "VA -1\r\n", "VA +1\r\n", "VA x\r\n", "VA 1x\r\n", "VA 101\r\n",
		"VA 99999999999999999999\r\n", "VA 1\r\nabc", "VA 1 fx\r\na\r\n", "HD c-1\r\n", "HD t\r\n", "HD t-2\r\n", "HD O+1\r\n",
		"HD O12345\r\n", "HD f4294967296\r\n", strings.Repeat("x", lineMax+1) + "\n", strings.Repeat("x", 1<<20),
	} {
		if found, err := parse(text); !errors.Is(err, ErrUnexpected) {
			t.Errorf("%q: %+v, %v", text[:min(len(text), 100)], found, err)
		}
	}
}

// A length that is promised takes no memory before the bytes come.
func TestPromisedLength(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readReply(bufio.NewReader(strings.NewReader("VA 1000000000\r\nx")), 1<<30)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Fatalf("%d bytes, %v", after.TotalAlloc-before.TotalAlloc, err)
	}
	long := bytes.Repeat([]byte("0123456789"), 100_000)
	found, err := readReply(bufio.NewReader(strings.NewReader("VA 1000000\r\n"+string(long)+"\r\n")), 1<<20)
	if err != nil || !bytes.Equal(found.value, long) {
		t.Fatalf("%d bytes, %v", len(found.value), err)
	}
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		"HD O1\r\n", "VA 5 f0 c1 t-1 O2 W X Z\r\nhello\r\nEN\r\n", "VA 0\r\n\r\n", "SERVER_ERROR x\r\n", "MN\r\n", "OK\r\nSTORED\r\n",
		"VA 9\r\nhello\r\n", "NS\r\nNF\r\nEX\r\n", "VA 99999999999 O1\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const most = 1000
		atOnce := bufio.NewReader(bytes.NewReader(text))
		byBytes := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(text)))
		for {
			one, err := readReply(atOnce, most)
			other, otherErr := readReply(byBytes, most)
			// However the bytes come, it is the same reply.
			if !reflect.DeepEqual(one, other) || (err == nil) != (otherErr == nil) {
				t.Fatalf("%+v, %v; %+v, %v", one, err, other, otherErr)
			}
			if err != nil {
				return
			}
			if len(one.value) > most || len(one.words) > lineMax {
				t.Fatalf("%d bytes, %d of words", len(one.value), len(one.words))
			}
			// No reply without its number gives a value to a meta command.
			for verb := getValue; verb < nothing; verb++ {
				if err := one.check(verb, one.number); err == nil && one.code == codeValue && !one.hasNumber {
					t.Fatalf("%+v answers %d", one, verb)
				}
			}
		}
	})
}
