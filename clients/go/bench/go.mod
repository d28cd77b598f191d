module nuthatch.invalid/clients/go/bench

go 1.23

require (
	// The client of memcached that most programs in Go have.
	github.com/bradfitz/gomemcache v0.0.0-20260422231931-4d751bb6e37c
	// Redis' own client.
	github.com/redis/go-redis/v9 v9.17.0
	nuthatch.invalid/clients/go v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
)

replace nuthatch.invalid/clients/go => ../
