package nuthatch

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func is(err, kind error) bool {
	return errors.Is(err, kind)
}

func TestCommands(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		check(t, client.Ping(background))
		_, err := client.Get(background, "k")
		wants(t, err, ErrNotFound)
		wants(t, client.Replace(background, "k", []byte("0"), Forever), ErrNotStored)
		check(t, client.Add(background, "k", []byte("1"), time.Minute))
		wants(t, client.Add(background, "k", []byte("2"), Forever), ErrNotStored)
		has(t, client, "k", "1")
		check(t, client.Replace(background, "k", []byte("two"), Forever))
		has(t, client, "k", "two")
		_, err = client.Increment(background, "k", 1)
		wants(t, err, ErrNotANumber)
		check(t, client.Delete(background, "k"))
		wants(t, client.Delete(background, "k"), ErrNotFound)
		wants(t, client.Touch(background, "k", time.Minute), ErrNotFound)
		check(t, client.Set(background, "k", nil, Forever))
		has(t, client, "k", "")
		check(t, client.Flush(background))
		_, err = client.Get(background, "k")
		wants(t, err, ErrNotFound)
	})
}

func TestNumbers(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		_, err := client.Increment(background, "n", 1)
		wants(t, err, ErrNotFound)
		check(t, client.Set(background, "n", []byte("10"), Forever))
		for _, one := range []struct {
			count func(context.Context, string, uint64) (uint64, error)
			delta uint64
			sum   uint64
		}{
			{client.Increment, 5, 15},
			{client.Decrement, 7, 8},
			{client.Decrement, 9, 0},
			{client.Increment, 1<<64 - 1, 1<<64 - 1},
			{client.Increment, 2, 1},
		} {
			sum, err := one.count(background, "n", one.delta)
			if err != nil || sum != one.sum {
				t.Fatalf("%d, %v in place of %d", sum, err, one.sum)
			}
		}
	})
}

func TestItemsAndCompareAndSwap(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		check(t, client.SetItem(background, "k", Item{Value: []byte("a"), Flags: 1<<32 - 1}, Forever))
		item, err := client.GetItem(background, "k")
		check(t, err)
		if string(item.Value) != "a" || item.Flags != 1<<32-1 || item.CAS == 0 || item.Left != Forever {
			t.Fatalf("%+v", item)
		}
		check(t, client.Touch(background, "k", 100*time.Second))
		touched, err := client.GetItem(background, "k")
		check(t, err)
		if touched.Left <= 0 || touched.Left > 100*time.Second {
			t.Fatalf("%v left", touched.Left)
		}
		touched.Value = []byte("b")
		check(t, client.CompareAndSwap(background, "k", touched, Forever))
		wants(t, client.CompareAndSwap(background, "k", touched, Forever), ErrChanged)
		has(t, client, "k", "b")
		check(t, client.Delete(background, "k"))
		wants(t, client.CompareAndSwap(background, "k", touched, Forever), ErrNotFound)
	})
}

func TestKeysOfAllBytes(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		keys := []string{"a b", " ", "\r\nflush_all\r\n", "\x00", "größe", "\x7f", "\xff\xfe", strings.Repeat("x", KeyMax),
			strings.Repeat(" ", BinaryKeyMax)}
		for _, key := range keys {
			check(t, client.Set(background, key, []byte("value of "+key), time.Minute))
		}
		found, err := client.GetMulti(background, append(keys, "none", keys[0]))
		check(t, err)
		for _, key := range keys {
			has(t, client, key, "value of "+key)
			if string(found[key]) != "value of "+key {
				t.Fatalf("%q has %q", key, found[key])
			}
		}
		if len(found) != len(keys) {
			t.Fatalf("%d values", len(found))
		}
	})
}

// Bad input is refused in words, and nothing is sent.
func TestBadInput(t *testing.T) {
	client := dialWith(t, "tcp://"+freePlace(t), Options{ValueMax: 10})
	for _, key := range []string{"", strings.Repeat("x", KeyMax+1), strings.Repeat(" ", BinaryKeyMax+1)} {
		_, err := client.Get(background, key)
		wants(t, err, ErrKey)
		_, err = client.GetMulti(background, []string{key})
		wants(t, err, ErrKey)
		_, err = client.GetOrCompute(background, key, Compute{}, nil)
		wants(t, err, ErrKey)
		wants(t, client.Set(background, key, nil, Forever), ErrKey)
		wants(t, client.Delete(background, key), ErrKey)
	}
	wants(t, client.Set(background, "k", make([]byte, 11), Forever), ErrValue)
	wants(t, client.Set(background, "k", nil, -1), ErrLifetime)
	wants(t, client.Touch(background, "k", -time.Hour), ErrLifetime)
	wants(t, client.MakeStale(background, "k", -1), ErrLifetime)
	_, err := client.GetOrCompute(background, "k", Compute{Lifetime: -1}, nil)
	wants(t, err, ErrLifetime)
	if MaybeCarriedOut(err) {
		t.Fatal(err)
	}
}

func TestLargeValues(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		large := strings.Repeat("0123456789abcdef", 60_000)
		check(t, client.Set(background, "large", []byte(large), Forever))
		has(t, client, "large", large)
		err := client.Set(background, "larger", make([]byte, 5<<20), Forever)
		wants(t, err, ErrRefused)
		has(t, client, "large", large)
		// A client that takes less closes the connection.
		small := dialWith(t, address, Options{ValueMax: 100})
		_, err = small.Get(background, "large")
		wants(t, err, ErrUnexpected)
	})
}

func TestLifetimesEnd(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		check(t, client.Set(background, "k", []byte("v"), time.Nanosecond))
		until(func() bool {
			_, err := client.Get(background, "k")
			return is(err, ErrNotFound)
		})
		// More than thirty days is a date, for the protocol.
		check(t, client.Set(background, "long", []byte("v"), 40*24*time.Hour))
		item, err := client.GetItem(background, "long")
		check(t, err)
		// memcached's clock has seconds that begin at another moment.
		if item.Left < 39*24*time.Hour || item.Left > 40*24*time.Hour+2*time.Second {
			t.Fatalf("%v left", item.Left)
		}
	})
}

// Calls of many goroutines travel on one connection, and each gets its own reply.
func TestManyGoroutinesOnOneConnection(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		var all sync.WaitGroup
		for number := range 64 {
			all.Add(1)
			go func() {
				defer all.Done()
				for turn := range 50 {
					key, value := fmt.Sprintf("k-%d", number), fmt.Sprintf("v-%d-%d", number, turn)
					if err := client.Set(background, key, []byte(value), Forever); err != nil {
						t.Error(err)
						return
					}
					found, err := client.Get(background, key)
					if err != nil || string(found) != value {
						t.Errorf("%q, %v in place of %q", found, err, value)
						return
					}
				}
			}()
		}
		all.Wait()
	})
}

func TestMoreKeysThanTravelTogether(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dialWith(t, address, Options{RequestsMax: 50, BytesMax: 1000})
		var keys []string
		for number := range 2000 {
			keys = append(keys, fmt.Sprintf("key-%d", number))
			check(t, client.Set(background, keys[number], []byte(keys[number]), Forever))
		}
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				found, err := client.GetMulti(background, keys)
				if err != nil || len(found) != len(keys) {
					t.Errorf("%d values, %v", len(found), err)
				}
				for key, value := range found {
					if key != string(value) {
						t.Errorf("%q has %q", key, value)
					}
				}
			}()
		}
		all.Wait()
	})
}

func TestUnixSocket(t *testing.T) {
	server := startNuthatch(t, "-s", filepath.Join(t.TempDir(), "socket"))
	client := dial(t, "unix://"+server.place)
	check(t, client.Set(background, "k", []byte("v"), Forever))
	has(t, client, "k", "v")
}

func TestLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	check(t, os.WriteFile(file, []byte("me:secret\n"), 0o644))
	// memcached is another user.
	for folder := filepath.Dir(file); folder != os.TempDir(); folder = filepath.Dir(folder) {
		check(t, os.Chmod(folder, 0o755))
	}
	withServers(t, []string{"-Y", file}, func(t *testing.T, address string) {
		mark := "?"
		if strings.Contains(address, "?") {
			mark = "&"
		}
		client := dial(t, address+mark+"login_file="+file)
		check(t, client.Set(background, "k", []byte("v"), Forever))
		has(t, client, "k", "v")
		if strings.HasPrefix(address, "shm") {
			return
		}
		check(t, dialWith(t, address, Options{Login: &Login{"me", "secret"}}).Ping(background))
		for _, login := range []*Login{nil, {"me", "wrong"}} {
			err := dialWith(t, address, Options{Login: login}).Ping(background)
			wants(t, err, ErrDown)
			if strings.Contains(err.Error(), "wrong") {
				t.Fatal(err)
			}
		}
	})
	if said := fmt.Sprintf("%v %+v %#v", Login{"me", "secret"}, &Login{"me", "secret"}, Login{"me", "secret"}); strings.Contains(said, "secret") {
		t.Fatal(said)
	}
}

func TestTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert"), filepath.Join(folder, "key")
	writeCertificate(t, cert, key)
	server := startNuthatch(t, "-Z", "-o", "ssl_chain_cert="+cert+",ssl_key="+key)
	client := dial(t, "tls://"+server.place+"?ca="+cert)
	large := strings.Repeat("x", 500_000)
	check(t, client.Set(background, "k", []byte(large), Forever))
	has(t, client, "k", large)
	// Without ca= the system's certificates are trusted, and this is none of them.
	wants(t, dial(t, "tls://"+server.place).Ping(background), ErrDown)
	wants(t, dial(t, "tcp://"+server.place).Ping(background), ErrDown)
}

// writeCertificate writes a certificate for 127.0.0.1 that has signed itself, and its key.
func writeCertificate(t *testing.T, cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, &template, &secret.PublicKey, secret)
	check(t, err)
	secretBytes, err := x509.MarshalPKCS8PrivateKey(secret)
	check(t, err)
	check(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	check(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secretBytes}), 0o600))
}
