package nuthatch

// Parts that need no server: requests, lifetimes, addresses, pauses.

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRequests(t *testing.T) {
	for _, one := range []struct {
		asked request
		text  string
	}{
		{request{verb: getValue, key: "k"}, "mg k v O1f\r\n"},
		{request{verb: getItem, key: "a b"}, "mg YSBi b v f c t O1f\r\n"},
		{request{verb: getLease, key: "k", lease: 5, early: 9}, "mg k v c N5 R9 O1f\r\n"},
		{request{verb: getLease, key: "k", lease: 5, early: -1}, "mg k v c N5 O1f\r\n"},
		{request{verb: touch, key: "k", lifetime: 60}, "mg k T60 O1f\r\n"},
		{request{verb: store, key: "k", value: []byte("va\r\n")}, "ms k 4 O1f\r\nva\r\n\r\n"},
		{request{verb: store, key: " ", value: []byte("v"), flags: 7, lifetime: 60, cas: 3, hasCAS: true, mode: onlyIfNone},
			"ms IA== 1 b F7 T60 C3 ME O1f\r\nv\r\n"},
		{request{verb: remove, key: "k", cas: 9, hasCAS: true}, "md k C9 O1f\r\n"},
		{request{verb: makeStale, key: "k", lifetime: 30}, "md k I T30 O1f\r\n"},
		{request{verb: count, key: "k", delta: 2, isDown: true}, "ma k v D2 MD O1f\r\n"},
		{request{verb: nothing}, "mn\r\n"},
		{request{verb: flush}, "flush_all\r\n"},
		{request{verb: login, value: []byte("me secret")}, "set login 0 0 9\r\nme secret\r\n"},
	} {
		if text := string(one.asked.appendTo(nil, 0x1f)); text != one.text {
			t.Errorf("%q in place of %q", text, one.text)
		}
	}
}

func TestLifetimes(t *testing.T) {
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	for lifetime, expected := range map[time.Duration]int64{
		Forever:                         0,
		1:                               1,
		1001 * time.Millisecond:         2,
		relativeMax * time.Second:       relativeMax,
		(relativeMax + 1) * time.Second: 1_700_000_000 + relativeMax + 1,
		(dateMax - 1_700_000_000 + 1) * time.Second: 0,
		1<<63 - 1: 0,
	} {
		if number, err := protocolSeconds(lifetime, now); number != expected || err != nil {
			t.Errorf("%v: %d, %v in place of %d", lifetime, number, err, expected)
		}
	}
	_, err := protocolSeconds(-1, now)
	wants(t, err, ErrLifetime)
}

func TestAddresses(t *testing.T) {
	var options Options
	parsed, err := parseAddress("tcp://a:1,b*3,[::1]:2*4,[::2]?timeout_ms=5&requests_max=6&when_full=fail&eject_after=3&value_max=9", &options)
	check(t, err)
	names := ""
	for _, server := range parsed.servers {
		names += server.name() + " " + server.place + "|"
	}
	if names != "a:1 a:1|b b:11211|::1:2 [::1]:2|::2 [::2]:11211|" || parsed.servers[2].weight != 4 || parsed.hasTLS {
		t.Fatal(names)
	}
	if options.Timeout != 5*time.Millisecond || options.RequestsMax != 6 || !options.FailWhenFull || options.EjectAfter != 3 ||
		options.ValueMax != 9 {
		t.Fatalf("%+v", options)
	}
	file := filepath.Join(t.TempDir(), "login")
	check(t, os.WriteFile(file, []byte("me:a:b\r\nmore\n"), 0o600))
	_, err = parseAddress("tls://a?login_file="+file, &options)
	if err != nil || *options.Login != (Login{"me", "a:b"}) {
		t.Fatal(options.Login, err)
	}
}

func TestBadAddresses(t *testing.T) {
	for text, part := range map[string]string{
		"a:11211":       "tcp://",
		"http://a":      "http://",
		"tcp://":        "HOST",
		"tcp://a:b":     "HOST",
		"tcp://a:1:2":   "HOST",
		"tcp://[::1":    "HOST",
		"tcp://a:99999": "HOST",
		"tcp://a/":      "HOST",
		"tcp://a, b":    "HOST",
		"tcp://\ta":     "HOST",
		"tcp://a@b":     "HOST",
		"tcp://[::1/]":  "HOST",
		"tcp://a*0":     "weight",
		"tcp://a*x":     "weight",
		"tcp://" + strings.Repeat("a,", serversMax) + "a": "servers",
		"unix://run": "begins with /",
		"tcp://a*2?distribution=ketama_unweighted": "no weights",
		"tcp://a?distribution=rendezvous":          "ketama",
		"tcp://a?timeout_ms=x":                     "timeout_ms=x",
		"tcp://a?timeout_ms=-1":                    "timeout_ms=-1",
		"tcp://a?timeout=1":                        "\"timeout\"",
		"tcp://a?when_full=no":                     "wait or fail",
		"tcp://a?login_file=/nowhere":              "/nowhere",
		"tls://a?ca=/nowhere":                      "/nowhere",
		"tls://a?cert=/nowhere":                    "/nowhere",
		"unix:///a?or=tcp://a":                     "or= is for shm://",
		"shm:///a?or=tcp://b?timeout_ms=5":         "HOST",
		"shm://a?or=tcp://b":                       "begins with /",
		"shm:///a,/b?or=tcp://b":                   "one path",
		"shm:///a":                                 "or=",
		"shm:///a?or=tcp://b,c":                    "or=",
		"shm:///a?or=tls://b":                      "or=",
	} {
		client, err := Dial(text)
		if !is(err, ErrAddress) || !strings.Contains(err.Error(), part) || client != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	// What was meant to be secret is not sent in the clear.
	for _, text := range []string{"tcp://a", "unix:///a", "shm:///a?or=tcp://b"} {
		_, err := DialWith(text, Options{TLS: &tls.Config{}})
		wants(t, err, ErrAddress)
		if !strings.Contains(err.Error(), "tls://") {
			t.Error(err)
		}
	}
	for _, options := range []Options{{Timeout: -1}, {RequestsMax: -1}, {Distribution: 7}} {
		_, err := DialWith("tcp://a", options)
		wants(t, err, ErrAddress)
	}
}

func TestPauses(t *testing.T) {
	var options Options
	check(t, options.complete())
	for _, one := range []struct {
		failures int
		random   float64
		pause    time.Duration
	}{
		{1, 0, options.RetryLeast},
		{1, 1, options.RetryLeast / 2},
		{3, 0, options.RetryLeast * 4},
		{1 << 30, 0, options.RetryMost},
	} {
		if found := pause(one.failures, &options, one.random); found != one.pause {
			t.Errorf("%+v: %v", one, found)
		}
	}
}
