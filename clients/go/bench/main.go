// The Go client beside others on one server: 64 goroutines' gets, one goroutine's, and where this program is built with the tag
// nuthatch_direct, direct ones.
//
//	go run . [-seconds 2] [-rounds 5] PROGRAM
//
// PROGRAM is the server, which is started with one thread on ports of its own. A table in Markdown comes out: the
// medians of the rounds, least to greatest in brackets.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"

	nuthatch "nuthatch.invalid/clients/go"
)

const keys = 1000

// way is one way to get a value.
type way struct {
	name string
	get  func(key string) ([]byte, error)
}

// found is what one round found of one way.
type found struct {
	// Gets a second, the server's processor time for each, and half of the gets within so long.
	rate     float64
	serverUs float64
	medianUs float64
}

func main() {
	seconds := flag.Float64("seconds", 2, "how long each measurement takes")
	rounds := flag.Int("rounds", 5, "how often each is made")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: bench [-seconds N] [-rounds N] PROGRAM")
	}
	serving, err := serve(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	defer serving.stop()
	ways, err := prepare(serving)
	if err == nil {
		err = run(serving, ways, *rounds, time.Duration(*seconds*float64(time.Second)))
	}
	if err != nil {
		serving.stop()
		log.Fatal(err)
	}
}

func run(serving *server, ways []way, rounds int, length time.Duration) error {
	for _, goroutines := range []int{64, 1} {
		table := make([][]found, len(ways))
		for range rounds {
			for at, way := range ways {
				one, err := measure(serving, way, goroutines, length)
				if err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
				table[at] = append(table[at], one)
			}
		}
		write(ways, table, goroutines)
	}
	return nil
}

func prepare(serving *server) ([]way, error) {
	ctx := context.Background()
	tcp, err := nuthatch.Dial("tcp://" + serving.place)
	if err != nil {
		return nil, err
	}
	shared, err := nuthatch.Dial("shm://" + serving.shared + "?or=tcp://" + serving.place)
	if err != nil {
		return nil, err
	}
	value := []byte("0123456789abcdef0123456789abcdef")
	redisClient := redis.NewClient(&redis.Options{Addr: serving.redis})
	gomemcache := memcache.New(serving.place)
	gomemcache.MaxIdleConns = 64
	for number := range keys {
		err := errors.Join(tcp.Set(ctx, key(number), value, nuthatch.Forever), redisClient.Set(ctx, key(number), value, 0).Err())
		if err != nil {
			return nil, err
		}
	}
	ways := []way{
		{"nuthatch, tcp", func(key string) ([]byte, error) { return tcp.Get(ctx, key) }},
		{"gomemcache, tcp", func(key string) ([]byte, error) {
			item, err := gomemcache.Get(key)
			if err != nil {
				return nil, err
			}
			return item.Value, nil
		}},
		{"go-redis, tcp", func(key string) ([]byte, error) { return redisClient.Get(ctx, key).Bytes() }},
	}
	if nuthatch.HasDirect {
		ways = append(ways, way{"nuthatch, shm", func(key string) ([]byte, error) { return shared.Get(ctx, key) }})
	}
	return ways, nil
}

func key(number int) string {
	return fmt.Sprintf("key-%d", number)
}

func measure(serving *server, way way, goroutines int, length time.Duration) (found, error) {
	names := make([]string, keys)
	for number := range names {
		names[number] = key(number)
	}
	before, err := serving.processorTime()
	if err != nil {
		return found{}, err
	}
	start := time.Now()
	var all sync.WaitGroup
	times := make([][]time.Duration, goroutines)
	failed := make([]error, goroutines)
	for number := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := number; ; i++ {
				begin := time.Now()
				if begin.Sub(start) > length {
					return
				}
				value, err := way.get(names[i%keys])
				if err == nil && len(value) != 32 {
					err = fmt.Errorf("a value of %d bytes", len(value))
				}
				if err != nil {
					failed[number] = err
					return
				}
				times[number] = append(times[number], time.Since(begin))
			}
		}()
	}
	all.Wait()
	took := time.Since(start)
	after, err := serving.processorTime()
	together := slices.Concat(times...)
	slices.Sort(together)
	count := float64(len(together))
	return found{
		rate:     count / took.Seconds(),
		serverUs: float64((after - before).Microseconds()) / count,
		medianUs: float64(together[len(together)/2].Nanoseconds()) / 1000,
	}, errors.Join(append(failed, err)...)
}

func write(ways []way, table [][]found, goroutines int) {
	fmt.Fprintf(os.Stdout, "\n| %d goroutines | gets a second | server's processor a get, us | half within, us |\n|---|---|---|---|\n", goroutines)
	for at, way := range ways {
		column := func(of func(found) float64, form string) string {
			var numbers []float64
			for _, one := range table[at] {
				numbers = append(numbers, of(one))
			}
			slices.Sort(numbers)
			return fmt.Sprintf(form+" ("+form+" to "+form+")", numbers[len(numbers)/2], numbers[0], numbers[len(numbers)-1])
		}
		fmt.Printf("| %s | %s | %s | %s |\n", way.name,
			column(func(f found) float64 { return f.rate }, "%.0f"),
			column(func(f found) float64 { return f.serverUs }, "%.2f"),
			column(func(f found) float64 { return f.medianUs }, "%.3f"))
	}
}
