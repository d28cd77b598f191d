package nuthatch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// askKetama asks libmemcached for the servers of 1,000 keys, each by its number: WEIGHTED HOST PORT WEIGHT ….
const askKetama = `
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    memcached_st *all = memcached_create(NULL);
    memcached_behavior_set(all, atoi(words[1]) ? MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED : MEMCACHED_BEHAVIOR_KETAMA, 1);
    memcached_server_st *servers = NULL;
    memcached_return_t error;
    for (int at = 2; at + 2 < count; at += 3)
        servers = memcached_server_list_append_with_weight(servers, words[at], atoi(words[at + 1]), atoi(words[at + 2]), &error);
    if (memcached_server_push(all, servers) != MEMCACHED_SUCCESS) return 1;
    for (int number = 0; number < 1000; number++) {
        char key[32];
        snprintf(key, sizeof key, "key-%d", number);
        printf("%u", memcached_generate_hash(all, key, strlen(key)));
    }
    return 0;
}
`

// distributions are those of the Rust client's test of the same, with the servers of the first 50 keys, as libmemcached has them.
var distributions = []struct{ address, first string }{
	{"127.0.0.1:11211,127.0.0.1:11212,10.0.0.3:11211?distribution=ketama",
		"02210001001211202112010022222012210202001112212000"},
	{"127.0.0.1:11211,127.0.0.1:11212*2,10.0.0.3:11211*5?distribution=ketama",
		"02210002001212202122012222222022210202101122222212"},
	{"a.example:1*7,b.example:2*3,c.example:11211,d.example:4*9,e.example:5?distribution=ketama",
		"31233301431013334033003000330330000030313303011133"},
	{"127.0.0.1:11211,127.0.0.1:11212,10.0.0.3:11211?distribution=ketama_unweighted",
		"20202010102021012000110221120121212110212011202211"},
	{"a.example:1,b.example:2?distribution=ketama_unweighted",
		"10100100000001010001110101101010000110101100011111"},
}

// numbersOf are the servers of 1,000 keys, a digit each.
func numbersOf(t *testing.T, address string) string {
	client := dial(t, "tcp://"+address)
	var numbers strings.Builder
	for number := range 1000 {
		fmt.Fprint(&numbers, client.server(fmt.Sprintf("key-%d", number)))
	}
	return numbers.String()
}

func TestKeysAreWhereOthersPutThem(t *testing.T) {
	for _, one := range distributions {
		if numbers := numbersOf(t, one.address); numbers[:50] != one.first {
			t.Errorf("%s: %s", one.address, numbers[:50])
		}
	}
}

func TestKeysAreWhereLibmemcachedPutsThem(t *testing.T) {
	folder := t.TempDir()
	source, program := filepath.Join(folder, "ketama.c"), filepath.Join(folder, "ketama")
	check(t, os.WriteFile(source, []byte(askKetama), 0o644))
	if err := exec.Command("cc", "-o", program, source, "-lmemcached").Run(); err != nil {
		t.Skip("skipped: libmemcached or a C compiler is not installed")
	}
	for _, one := range distributions {
		places, distribution, _ := strings.Cut(one.address, "?distribution=")
		words := []string{"1"}
		if distribution != "ketama" {
			words[0] = "0"
		}
		for _, place := range strings.Split(places, ",") {
			place, weight, _ := strings.Cut(place+"*1", "*")
			host, port, _ := strings.Cut(place, ":")
			words = append(words, host, port, strings.TrimSuffix(weight, "*1"))
		}
		theirs, err := exec.Command(program, words...).Output()
		check(t, err)
		if ours := numbersOf(t, one.address); ours != string(theirs) {
			t.Errorf("%s: %s in place of %s", one.address, ours[:50], theirs[:50])
		}
	}
}

func TestKeysAreSpreadAndFoundAgain(t *testing.T) {
	var places []string
	for range 3 {
		places = append(places, startNuthatch(t).place)
	}
	for _, distribution := range []string{"ketama", "ketama_unweighted"} {
		client := dial(t, "tcp://"+strings.Join(places, ",")+"?distribution="+distribution)
		shares := map[string]int{}
		var keys []string
		for number := range 1000 {
			key := fmt.Sprintf("%s-%d", distribution, number)
			check(t, client.Set(background, key, []byte(key), Forever))
			shares[client.ServerOf(key)]++
			keys = append(keys, key)
		}
		found, err := client.GetMulti(background, keys)
		if err != nil || len(found) != len(keys) {
			t.Fatalf("%d values, %v", len(found), err)
		}
		for _, place := range places {
			alone, err := dial(t, "tcp://"+place).GetMulti(background, keys)
			if err != nil || len(alone) != shares[place] || len(alone) < 150 {
				t.Fatalf("%d values at %s, %v in place of %d", len(alone), place, err, shares[place])
			}
		}
		check(t, client.Flush(background))
		found, err = client.GetMulti(background, keys)
		if err != nil || len(found) != 0 {
			t.Fatalf("%d values, %v", len(found), err)
		}
	}
}

func TestKeysOfADeadServerFailOrGoToOthers(t *testing.T) {
	dying := startMemcached(t, "")
	if dying == nil {
		t.Skip("skipped: memcached is not installed")
	}
	address := "tcp://" + dying.place + "," + startNuthatch(t).place + "?retry_least_ms=100&retry_most_ms=100"
	strict, lenient := dial(t, address), dial(t, address+"&eject_after=2")
	var keys, lost []string
	for number := range 100 {
		key := fmt.Sprintf("key-%d", number)
		keys = append(keys, key)
		check(t, lenient.Set(background, key, []byte("old"), Forever))
		if lenient.ServerOf(key) == dying.place {
			lost = append(lost, key)
		}
	}
	dying.stop()
	// One server's failure leaves the others' values.
	var found map[string][]byte
	var err error
	until(func() bool {
		found, err = strict.GetMulti(background, keys)
		return is(err, ErrDown)
	})
	if len(found) != len(keys)-len(lost) || len(lost) == 0 {
		t.Fatalf("%d values without %d", len(found), len(lost))
	}
	until(func() bool { return lenient.Set(background, lost[0], []byte("new"), Forever) == nil })
	// While it is left alone, its keys are others'; when it is tried, who tries it goes on at another one.
	for _, key := range keys {
		check(t, lenient.Set(background, key, []byte("new"), Forever))
		has(t, lenient, key, "new")
	}
	startMemcached(t, dying.place)
	alone := dial(t, "tcp://"+dying.place)
	until(func() bool {
		check(t, lenient.Set(background, lost[0], []byte("back"), Forever))
		_, err := alone.Get(background, lost[0])
		return err == nil
	})
	if lenient.ServerOf(lost[0]) != dying.place {
		t.Fatal("its keys are not its own")
	}
}

func TestNearValues(t *testing.T) {
	server := startNuthatch(t)
	other := dial(t, "tcp://"+server.place)
	near := dial(t, "tcp://"+server.place+"?near_ms=3600000")
	short := dialWith(t, "tcp://"+server.place, Options{Near: time.Millisecond, NearBytes: 10_000})
	check(t, other.Set(background, "k", []byte("1"), Forever))
	has(t, near, "k", "1")
	has(t, short, "k", "1")
	check(t, other.Set(background, "k", []byte("2"), Forever))
	has(t, near, "k", "1")
	found, err := near.GetMulti(background, []string{"k"})
	if err != nil || string(found["k"]) != "1" {
		t.Fatalf("%q, %v", found, err)
	}
	// What a caller does with a value is its own.
	found["k"][0] = 'x'
	has(t, near, "k", "1")
	until(func() bool {
		value, err := short.Get(background, "k")
		return err == nil && string(value) == "2"
	})
	if sum, err := near.Increment(background, "k", 1); sum != 3 || err != nil {
		t.Fatal(sum, err)
	}
	has(t, near, "k", "3")
	check(t, near.Flush(background))
	_, err = near.Get(background, "k")
	wants(t, err, ErrNotFound)
}

func TestNearValuesAreBounded(t *testing.T) {
	kept := newNear(&Options{Near: time.Hour, NearBytes: 10_000})
	for number := range 1000 {
		key := fmt.Sprint(number)
		kept.keep(key, make([]byte, 100), 0)
		if kept.bytes > 10_000 || len(kept.entries) != kept.order.Len() {
			t.Fatalf("%d bytes", kept.bytes)
		}
		if found, _ := kept.get("0"); found == nil {
			t.Fatal("what is used is displaced")
		}
	}
	kept.keep("large", make([]byte, 5000), 0)
	if found, _ := kept.get("large"); found != nil {
		t.Fatal("a value that takes most of the room is kept")
	}
	// What was being read while it was changed is not kept.
	_, version := kept.get("changed")
	kept.forget("changed")
	kept.keep("changed", nil, version)
	if found, _ := kept.get("changed"); found != nil {
		t.Fatal("an old value is kept")
	}
	kept.forgetAll()
	if kept.bytes != 0 || len(kept.entries) != 0 {
		t.Fatalf("%d bytes", kept.bytes)
	}
}
