package nuthatch

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

const (
	// The places of a server on the ring, on average, if weights count; and if they do not.
	placesWeighted   = 160
	placesUnweighted = 100
	// One hash makes as many places.
	placesOfHash = 4
)

// place is a place on the ring, and the number of the server that is there.
type place struct {
	at     uint32
	server int
}

// ring says which server has a key: the one at the first place at or above the key's hash. Without places one server has all.
type ring struct {
	hash   func(string) uint32
	places []place
}

func newRing(servers []server, distribution Distribution) ring {
	if len(servers) == 1 {
		return ring{}
	}
	made := ring{hash: md5Of, places: weighted(servers)}
	if distribution == KetamaUnweighted {
		made = ring{hash: oneAtATime, places: unweighted(servers)}
	}
	slices.SortFunc(made.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.server, b.server))
	})
	return made
}

// server is the first server of a key that is not passed over. If all are, it is the first.
func (r ring) server(key string, isPassedOver func(int) bool) int {
	if len(r.places) == 0 {
		return 0
	}
	hash := r.hash(key)
	first, _ := slices.BinarySearchFunc(r.places, hash, func(one place, hash uint32) int {
		return cmp.Compare(one.at, hash)
	})
	for i := range r.places {
		server := r.places[(first+i)%len(r.places)].server
		if isPassedOver == nil || !isPassedOver(server) {
			return server
		}
	}
	return r.places[first%len(r.places)].server
}

func weighted(servers []server) []place {
	var total uint64
	for _, server := range servers {
		total += uint64(server.weight)
	}
	var places []place
	for number, server := range servers {
		// In the arithmetic of libmemcached, which rounds: another one has other places.
		share := float32(server.weight) / float32(total)
		product := float32(float32(share*(placesWeighted/placesOfHash)) * float32(len(servers)))
		hashes := int(math.Floor(float64(product) + 1e-10))
		for index := range hashes {
			hash := md5.Sum([]byte(fmt.Sprintf("%s-%d", server.name(), index)))
			for part := range placesOfHash {
				places = append(places, place{binary.LittleEndian.Uint32(hash[part*4:]), number})
			}
		}
	}
	return places
}

func unweighted(servers []server) []place {
	var places []place
	for number, server := range servers {
		for index := range placesUnweighted {
			places = append(places, place{oneAtATime(fmt.Sprintf("%s-%d", server.name(), index)), number})
		}
	}
	return places
}

func md5Of(key string) uint32 {
	hash := md5.Sum([]byte(key))
	return binary.LittleEndian.Uint32(hash[:])
}

// oneAtATime is Bob Jenkins' hash of this name, which is libmemcached's default.
func oneAtATime(key string) uint32 {
	var hash uint32
	for i := 0; i < len(key); i++ {
		hash += uint32(key[i])
		hash += hash << 10
		hash ^= hash >> 6
	}
	hash += hash << 3
	hash ^= hash >> 11
	return hash + hash<<15
}
