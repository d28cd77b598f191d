// Package frameworks holds conversations of Go's clients and libraries of Redis with a server, at their defaults:
// PORTS="PORT PORT PORT" go test. The first of three servers is the one of all tests but Redlock's.
package frameworks

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redis/cache/v9"
	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	syncpool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

var ctx = context.Background()

func addresses(t *testing.T) []string {
	ports := strings.Fields(os.Getenv("PORTS"))
	if len(ports) != 3 {
		t.Fatal("PORTS does not name three servers")
	}
	for i := range ports {
		ports[i] = "127.0.0.1:" + ports[i]
	}
	return ports
}

func client(t *testing.T, address string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: address})
	t.Cleanup(func() { client.Close() })
	return client
}

func first(t *testing.T) *redis.Client { return client(t, addresses(t)[0]) }

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestGoRedis(t *testing.T) {
	client := first(t)
	fine(t, client.Set(ctx, "k", "v", time.Minute).Err())
	if value, err := client.Get(ctx, "k").Result(); err != nil || value != "v" {
		t.Fatal(value, err)
	}
	if err := client.Get(ctx, "none").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if left := client.TTL(ctx, "k").Val(); left < 58*time.Second || left > time.Minute {
		t.Fatal(left)
	}
	_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.MSet(ctx, "a", 1, "b", 2)
		pipe.IncrBy(ctx, "a", 41)
		return nil
	})
	fine(t, err)
	if values := client.MGet(ctx, "a", "none", "b").Val(); values[0] != "42" || values[1] != nil || values[2] != "2" {
		t.Fatal(values)
	}
	// A transaction over what another has changed is not carried out.
	err = client.Watch(ctx, func(tx *redis.Tx) error {
		fine(t, first(t).Set(ctx, "a", 1, 0).Err())
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "a", 2, 0).Err() })
		return err
	}, "a")
	if !errors.Is(err, redis.TxFailedErr) {
		t.Fatal(err)
	}
}

func TestGoRedisSubscribes(t *testing.T) {
	client := first(t)
	subscribed := client.Subscribe(ctx, "channel")
	defer subscribed.Close()
	_, err := subscribed.Receive(ctx)
	fine(t, err)
	fine(t, client.Publish(ctx, "channel", "news").Err())
	if message := <-subscribed.Channel(); message.Payload != "news" {
		t.Fatal(message)
	}
}

// Rueidis asks for tracking when it connects, unless it is told not to.
func TestRueidis(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses(t)[:1]})
	fine(t, err)
	defer client.Close()
	get := func() rueidis.RedisResult {
		return client.DoCache(ctx, client.B().Get().Key("near").Cache(), time.Minute)
	}
	set := func(value string) {
		fine(t, first(t).Set(ctx, "near", value, time.Minute).Err())
	}
	set("v")
	if value, err := get().ToString(); err != nil || value != "v" {
		t.Fatal(value, err)
	}
	if !get().IsCacheHit() {
		t.Fatal("asked the server again")
	}
	set("w")
	for value := "v"; value != "w"; value, err = get().ToString() {
		fine(t, err)
	}
	compare := rueidis.NewLuaScript("if redis.call('GET',KEYS[1]) == ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end")
	if count, err := compare.Exec(ctx, client, []string{"near"}, []string{"w"}).AsInt64(); err != nil || count != 1 {
		t.Fatal(count, err)
	}
}

func TestCache(t *testing.T) {
	kept := cache.New(&cache.Options{Redis: first(t), LocalCache: cache.NewTinyLFU(100, time.Minute)})
	type thing struct{ Name string }
	fine(t, kept.Set(&cache.Item{Ctx: ctx, Key: "thing", Value: &thing{"nut"}, TTL: time.Hour}))
	var found thing
	fine(t, kept.GetSkippingLocalCache(ctx, "thing", &found))
	if found.Name != "nut" {
		t.Fatal(found)
	}
	fine(t, kept.Once(&cache.Item{Key: "made", Value: &found, Do: func(*cache.Item) (any, error) { return &thing{"acorn"}, nil }}))
	if found.Name != "acorn" {
		t.Fatal(found)
	}
}

func TestRedislock(t *testing.T) {
	locks := redislock.New(first(t))
	lock, err := locks.Obtain(ctx, "redislock", time.Minute, nil)
	fine(t, err)
	if _, err := locks.Obtain(ctx, "redislock", time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Fatal(err)
	}
	fine(t, lock.Refresh(ctx, 2*time.Minute, nil))
	if left, err := lock.TTL(ctx); err != nil || left < time.Minute {
		t.Fatal(left, err)
	}
	fine(t, lock.Release(ctx))
}

// On three servers, one of which has another's lock.
func TestRedsync(t *testing.T) {
	var pools []syncpool.Pool
	for _, address := range addresses(t) {
		pools = append(pools, goredis.NewPool(client(t, address)))
	}
	locks := redsync.New(pools...)
	fine(t, client(t, addresses(t)[2]).Set(ctx, "redsync", "another's", time.Minute).Err())
	held := locks.NewMutex("redsync", redsync.WithTries(1))
	fine(t, held.Lock())
	if err := locks.NewMutex("redsync", redsync.WithTries(1)).Lock(); err == nil {
		t.Fatal("two hold one lock")
	}
	if extended, err := held.Extend(); !extended {
		t.Fatal(err)
	}
	if released, err := held.Unlock(); !released {
		t.Fatal(err)
	}
	if value := client(t, addresses(t)[2]).Get(ctx, "redsync").Val(); value != "another's" {
		t.Fatal(value)
	}
}

// Its script asks for the time, and counts in a way of its own.
func TestRedisRate(t *testing.T) {
	limiter := redis_rate.NewLimiter(first(t))
	for number := range 3 {
		result, err := limiter.Allow(ctx, "user", redis_rate.PerMinute(2))
		fine(t, err)
		if (result.Allowed == 1) != (number < 2) {
			t.Fatal(number, result)
		}
	}
}
