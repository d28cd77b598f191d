package nuthatch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var aMinute = Compute{Lifetime: time.Minute}

func computing(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

func TestOfManyGoroutinesOneComputes(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		var computed atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			// A client each, as in processes of their own.
			client := dial(t, address)
			all.Add(1)
			go func() {
				defer all.Done()
				value, err := client.GetOrCompute(background, "k", aMinute, func(context.Context) ([]byte, error) {
					computed.Add(1)
					time.Sleep(100 * time.Millisecond)
					return []byte("computed"), nil
				})
				if err != nil || string(value) != "computed" {
					t.Errorf("%q, %v", value, err)
				}
			}()
		}
		all.Wait()
		if computed.Load() != 1 {
			t.Fatalf("%d have computed", computed.Load())
		}
	})
}

const childAddress = "NUTHATCH_GO_TEST_ADDRESS"

// TestMain runs the tests, or what a process of TestOfManyProcessesOneComputes does.
func TestMain(m *testing.M) {
	if address := os.Getenv(childAddress); address != "" {
		if err := child(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(address string) error {
	client, err := DialWith(address, Options{Timeout: time.Minute, ConnectTimeout: time.Minute})
	if err != nil {
		return err
	}
	for number := range 10 {
		value, err := client.GetOrCompute(background, fmt.Sprintf("k-%d", number), aMinute, func(ctx context.Context) ([]byte, error) {
			if err := client.Add(ctx, "computed", []byte("0"), Forever); err != nil && !errors.Is(err, ErrNotStored) {
				return nil, err
			}
			_, err := client.Increment(ctx, "computed", 1)
			time.Sleep(20 * time.Millisecond)
			return []byte(fmt.Sprint(number)), err
		})
		if err != nil || string(value) != fmt.Sprint(number) {
			return fmt.Errorf("%q, %w", value, err)
		}
	}
	return nil
}

func TestOfManyProcessesOneComputes(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				child := exec.Command(os.Args[0])
				child.Env = append(os.Environ(), childAddress+"="+address)
				if said, err := child.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, said)
				}
			}()
		}
		all.Wait()
		has(t, dial(t, address), "computed", "10")
	})
}

func TestComputationThatFailsLetsTheNextOneCompute(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		how := Compute{Lifetime: time.Minute, Lease: time.Hour}
		none := errors.New("no database")
		_, err := client.GetOrCompute(background, "k", how, func(context.Context) ([]byte, error) { return nil, none })
		wants(t, err, none)
		func() {
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			client.GetOrCompute(background, "k", how, func(context.Context) ([]byte, error) { panic("a fault") })
		}()
		// Nor does one whose context has ended make others wait: what it has computed is stored.
		ctx, cancel := context.WithCancel(background)
		value, err := client.GetOrCompute(ctx, "k", how, func(context.Context) ([]byte, error) {
			cancel()
			return []byte("computed"), nil
		})
		if err != nil || string(value) != "computed" {
			t.Fatalf("%q, %v", value, err)
		}
		has(t, client, "k", "computed")
		// A value that no server takes, too.
		for range 2 {
			large, err := client.GetOrCompute(background, "large", how, func(context.Context) ([]byte, error) { return make([]byte, 5<<20), nil })
			if err != nil || len(large) != 5<<20 {
				t.Fatalf("%d bytes, %v", len(large), err)
			}
		}
	})
}

// Who won and died is waited for until its lease is over.
func TestLeaseEnds(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		how := Compute{Lifetime: time.Minute, Lease: time.Second}
		asked, err := how.request("k")
		check(t, err)
		won, err := client.ask(background, asked)
		if err != nil || !won.won {
			t.Fatalf("%+v, %v", won, err)
		}
		ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
		defer cancel()
		_, err = client.GetOrCompute(ctx, "k", how, computing("none"))
		wants(t, err, context.DeadlineExceeded)
		value, err := client.GetOrCompute(background, "k", how, computing("other"))
		if err != nil || string(value) != "other" {
			t.Fatalf("%q, %v", value, err)
		}
	})
}

// If who won dies, all but one wait for the next one, however late the server's clock ends the lease.
func TestOfThoseThatWaitForADeadOneOneComputes(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		how := Compute{Lifetime: time.Minute, Lease: time.Second}
		asked, err := how.request("k")
		check(t, err)
		won, err := client.ask(background, asked)
		if err != nil || !won.won {
			t.Fatalf("%+v, %v", won, err)
		}
		var computed atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Add(1)
			go func() {
				defer all.Done()
				value, err := client.GetOrCompute(background, "k", how, func(context.Context) ([]byte, error) {
					computed.Add(1)
					time.Sleep(100 * time.Millisecond)
					return []byte("computed"), nil
				})
				if err != nil || string(value) != "computed" {
					t.Errorf("%q, %v", value, err)
				}
			}()
		}
		all.Wait()
		if computed.Load() != 1 {
			t.Fatalf("%d have computed", computed.Load())
		}
	})
}

// Who gives up before it learns that it is to compute lets the next one compute, instead of all waiting for its lease's end.
func TestLeaseThatNobodyWaitsForIsGivenUp(t *testing.T) {
	asked, answer, given := make(chan struct{}), make(chan struct{}), make(chan string)
	address := pretend(t, func(socket net.Conn, in *bufio.Reader) {
		for {
			request, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(request, "md ") {
				given <- request
				return
			}
			asked <- struct{}{}
			<-answer
			fmt.Fprintf(socket, "VA 0 c7 W O%s\r\n\r\n", numberOf.FindStringSubmatch(request)[1])
		}
	})
	ctx, cancel := context.WithCancel(background)
	client, ended := dial(t, address), make(chan error)
	go func() {
		_, err := client.GetOrCompute(ctx, "k", aMinute, computing("none"))
		ended <- err
	}()
	<-asked
	cancel()
	wants(t, <-ended, context.Canceled)
	answer <- struct{}{}
	if request := <-given; !strings.HasPrefix(request, "md k C7 ") {
		t.Fatal(request)
	}
}

func TestLongLeases(t *testing.T) {
	for lease, expected := range map[time.Duration]time.Duration{
		0: leaseStandard, 1: time.Second, 1001 * time.Millisecond: 2 * time.Second, 1<<63 - 1: leaseMost,
	} {
		how := Compute{Lease: lease}
		if _, err := how.request("k"); err != nil || how.Lease != expected {
			t.Errorf("%v: %v, %v", lease, how.Lease, err)
		}
	}
}

func TestStaleValueIsGivenToAllButTheOneThatComputes(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client, other := dial(t, address), dial(t, address)
		for _, one := range []struct {
			key  string
			how  Compute
			make func(key string) error
		}{
			{"stale", aMinute, func(key string) error {
				return errors.Join(client.Set(background, key, []byte("old"), time.Minute), client.MakeStale(background, key, time.Minute))
			}},
			{"early", Compute{Lifetime: time.Minute, Early: 30 * time.Second}, func(key string) error {
				return client.Set(background, key, []byte("old"), 20*time.Second)
			}},
		} {
			check(t, one.make(one.key))
			twoCompute := func(context.Context) ([]byte, error) { return nil, errors.New("two compute") }
			value, err := client.GetOrCompute(background, one.key, one.how, func(ctx context.Context) ([]byte, error) {
				meanwhile, err := other.GetOrCompute(ctx, one.key, one.how, twoCompute)
				if err != nil || string(meanwhile) != "old" {
					t.Errorf("%q, %v", meanwhile, err)
				}
				return []byte("new"), nil
			})
			if err != nil || string(value) != "new" {
				t.Fatalf("%s: %q, %v", one.key, value, err)
			}
			value, err = other.GetOrCompute(background, one.key, one.how, twoCompute)
			if err != nil || string(value) != "new" {
				t.Fatalf("%s: %q, %v", one.key, value, err)
			}
		}
	})
}

func TestWithoutAServerTheValueIsComputed(t *testing.T) {
	client := dial(t, "tcp://"+freePlace(t))
	value, err := client.GetOrCompute(background, "k", aMinute, computing("here"))
	if err != nil || string(value) != "here" {
		t.Fatalf("%q, %v", value, err)
	}
}

type user struct {
	Name string
	Age  int
}

func TestTypedValues(t *testing.T) {
	withServers(t, nil, func(t *testing.T, address string) {
		client := dial(t, address)
		users := JSON[user](client)
		ada := user{"Ada", 36}
		_, err := users.Get(background, "ada")
		wants(t, err, ErrNotFound)
		wants(t, users.Replace(background, "ada", ada, Forever), ErrNotStored)
		check(t, users.Add(background, "ada", ada, Forever))
		check(t, users.Set(background, "ada", ada, Forever))
		found, err := users.Get(background, "ada")
		if err != nil || found != ada {
			t.Fatalf("%+v, %v", found, err)
		}
		grace, err := users.GetOrCompute(background, "grace", aMinute, func(context.Context) (user, error) { return user{"Grace", 85}, nil })
		if err != nil || grace.Name != "Grace" {
			t.Fatalf("%+v, %v", grace, err)
		}
		check(t, client.Set(background, "bad", []byte("{"), Forever))
		check(t, client.Set(background, "empty", nil, Forever))
		_, err = users.Get(background, "bad")
		wants(t, err, ErrValue)
		_, err = users.Get(background, "empty")
		wants(t, err, ErrNotFound)
		all, err := users.GetMulti(background, []string{"ada", "grace", "bad", "empty", "none"})
		wants(t, err, ErrValue)
		if len(all) != 2 || all["ada"] != ada || all["grace"] != grace {
			t.Fatalf("%+v", all)
		}
		wants(t, JSON[func()](client).Set(background, "f", nil, Forever), ErrValue)
	})
}
