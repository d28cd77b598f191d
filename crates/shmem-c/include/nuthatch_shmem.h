/* A cache that the PEs of an OpenSHMEM program share. Generated from crates/shmem-c: do not edit, see its
 * tests/header.rs.
 *
 * The program starts OpenSHMEM, opens a store on all PEs together, closes it on all, and ends OpenSHMEM. Items may be
 * evicted at any time: a miss is always possible, a wrong value never.
 *
 * Functions return 0 or more on success, and a negative nuthatch_shmem_status on failure; then they
 * changed nothing. What a caller must ensure is under Safety. */

#ifndef NUTHATCH_SHMEM_H
#define NUTHATCH_SHMEM_H

#include <stddef.h>
#include <stdint.h>

/**
 * Why a call failed and did nothing: all but the first are negative. A function that returns a count returns one of
 * these instead.
 */
typedef enum nuthatch_shmem_status {
    /**
     * The call succeeded.
     */
    NUTHATCH_SHMEM_STATUS_OK = 0,
    /**
     * A pointer is NULL that must not be.
     */
    NUTHATCH_SHMEM_STATUS_NULL_POINTER = -1,
    /**
     * A key has 1 to 250 bytes.
     */
    NUTHATCH_SHMEM_STATUS_KEY = -2,
    /**
     * The item is larger than the largest.
     */
    NUTHATCH_SHMEM_STATUS_TOO_LARGE = -3,
    /**
     * The server is full, and nothing of it may go.
     */
    NUTHATCH_SHMEM_STATUS_OUT_OF_MEMORY = -4,
    /**
     * What is there is no decimal number of 64 bits.
     */
    NUTHATCH_SHMEM_STATUS_NOT_NUMERIC = -5,
    /**
     * The value does not fit into the buffer.
     */
    NUTHATCH_SHMEM_STATUS_BUFFER_TOO_SMALL = -6,
    /**
     * Settings that cannot be, described on standard error.
     */
    NUTHATCH_SHMEM_STATUS_SETTINGS = -7,
    /**
     * No symmetric memory for it; what to do is said on standard error.
     */
    NUTHATCH_SHMEM_STATUS_NO_MEMORY = -8,
    /**
     * Servers beside the program want SHMEM_THREAD_MULTIPLE of shmem_init_thread().
     */
    NUTHATCH_SHMEM_STATUS_THREADS = -9,
    /**
     * This PE is no server of its own.
     */
    NUTHATCH_SHMEM_STATUS_NO_SERVER = -10,
    /**
     * A defect of this library, described on standard error.
     */
    NUTHATCH_SHMEM_STATUS_DEFECT = -11,
    /**
     * The key has another value by now.
     */
    NUTHATCH_SHMEM_STATUS_CHANGED = -12,
} nuthatch_shmem_status;

/**
 * A PE's part of a store. Threads of the PE may use it at the same time; they take turns.
 */
typedef struct nuthatch_shmem_store nuthatch_shmem_store;

/**
 * How a store is to be: the same on all PEs. Fill it in with nuthatch_shmem_config_default() first.
 */
typedef struct nuthatch_shmem_config {
    /**
     * PEs that do nothing but serve: the first so many. 0: every PE serves, in a thread beside the program's.
     */
    size_t servers;
    /**
     * Bytes of each server. Every PE sets as much of its symmetric memory aside.
     */
    size_t memory;
    /**
     * Bytes of the largest item: its header, key and value. At most a quarter of the memory; with less than some forty
     * times as much memory a server evicts early.
     */
    size_t item_size_max;
    /**
     * Entries of each PE's directory of pointers.
     */
    size_t directory;
    /**
     * 0: a full server refuses instead of evicting.
     */
    int evicts;
} nuthatch_shmem_config;

/**
 * One pair of nuthatch_shmem_multi_set().
 */
typedef struct nuthatch_shmem_pair {
    /**
     * The key's bytes.
     */
    const uint8_t *key;
    /**
     * How many they are.
     */
    size_t key_len;
    /**
     * The value's bytes.
     */
    const uint8_t *value;
    /**
     * How many they are.
     */
    size_t value_len;
    /**
     * Out: 0 if it was stored, or a negative status.
     */
    int status;
} nuthatch_shmem_pair;

/**
 * What all servers have, in items and bytes, and what this PE has done since it opened the store.
 */
typedef struct nuthatch_shmem_statistics {
    /**
     * Items of all servers; expired ones count until their memory is needed.
     */
    uint64_t items;
    /**
     * Bytes of their blocks.
     */
    uint64_t item_bytes;
    /**
     * Bytes that the servers may use.
     */
    uint64_t memory_limit;
    /**
     * Bytes that they use.
     */
    uint64_t memory_used;
    /**
     * Live items that went to make room.
     */
    uint64_t evictions;
    /**
     * Expired and flushed items whose memory came back.
     */
    uint64_t expired;
    /**
     * Stores that were refused because a server was full.
     */
    uint64_t out_of_memory;
    /**
     * Gets of this PE for which its directory led to the item.
     */
    uint64_t directory_hits;
    /**
     * Gets of this PE for which it did not.
     */
    uint64_t directory_misses;
    /**
     * Gets that this PE answered itself, without a message.
     */
    uint64_t direct_gets;
    /**
     * Sets that it carried out itself.
     */
    uint64_t direct_sets;
    /**
     * Operations for which it asked a server.
     */
    uint64_t messages;
} nuthatch_shmem_statistics;

/**
 * One key of nuthatch_shmem_multi_get().
 */
typedef struct nuthatch_shmem_item {
    /**
     * The key's bytes.
     */
    const uint8_t *key;
    /**
     * How many they are.
     */
    size_t key_len;
    /**
     * Where the value goes.
     */
    uint8_t *buffer;
    /**
     * Bytes that it has.
     */
    size_t capacity;
    /**
     * Out: bytes of the value, also if they do not fit.
     */
    size_t value_len;
    /**
     * Out: 1 for a hit, 0 for a miss, NUTHATCH_SHMEM_STATUS_BUFFER_TOO_SMALL.
     */
    int found;
} nuthatch_shmem_item;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns a sentence for what a function returned, never NULL. It is not to be freed.
 */
const char *nuthatch_shmem_error_string(int status);

/**
 * Stores the defaults in `*config`: every PE serves, 64 MiB each, items of up to 1 MiB.
 *
 * # Safety
 * `config` is NULL or points to a configuration, which may be uninitialised.
 */
int nuthatch_shmem_config_default(struct nuthatch_shmem_config *config);

/**
 * Sets what OpenSHMEM looks at when it starts, where the user has not: a symmetric heap for this store and for
 * `more` bytes of the program's, and what Open MPI needs. Call it before shmem_init_thread(); without it, those who start
 * the program set SHMEM_SYMMETRIC_SIZE (Open MPI 4: SHMEM_SYMMETRIC_HEAP_SIZE) by themselves.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a configuration. No other thread uses the environment meanwhile.
 */
int nuthatch_shmem_prepare(const struct nuthatch_shmem_config *config,
                           size_t more);

/**
 * Opens a store and stores it in `*store`; NULL if it fails. Collective: all PEs call it, with the same configuration,
 * after shmem_init_thread(). With config->servers of 0 that must have given SHMEM_THREAD_MULTIPLE.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a configuration; `store` is NULL or points to a pointer. OpenSHMEM is started, and not
 * ended before the store is closed. If it was started for fewer threads than any, only one thread of the PE calls this
 * library.
 */
int nuthatch_shmem_open(const struct nuthatch_shmem_config *config,
                        struct nuthatch_shmem_store **store);

/**
 * Returns 1 on a PE that is to call nuthatch_shmem_serve(), 0 on others.
 *
 * # Safety
 * `store` is NULL or open.
 */
int nuthatch_shmem_is_server(const struct nuthatch_shmem_store *store);

/**
 * Serves until every client has closed the store. Then close it too.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open.
 */
int nuthatch_shmem_serve(const struct nuthatch_shmem_store *store);

/**
 * Closes a store: collective, and what it held is gone. NULL is closed already. A PE that ends without it leaves the
 * others waiting, as at any barrier; shmem_global_exit() ends all of them.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open, and nobody uses it any more.
 */
int nuthatch_shmem_close(struct nuthatch_shmem_store *store);

/**
 * Stores a value, for so many seconds; 0: until it is evicted.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` and `value` are NULL or have so many bytes.
 */
int nuthatch_shmem_set(const struct nuthatch_shmem_store *store,
                       const uint8_t *key,
                       size_t key_len,
                       const uint8_t *value,
                       size_t value_len,
                       uint32_t seconds);

/**
 * The same, unless the key has a value.
 *
 * Returns 1 if it was stored, 0 if there is a value, or a negative status.
 *
 * # Safety
 * As nuthatch_shmem_set().
 */
int nuthatch_shmem_add(const struct nuthatch_shmem_store *store,
                       const uint8_t *key,
                       size_t key_len,
                       const uint8_t *value,
                       size_t value_len,
                       uint32_t seconds);

/**
 * The same, if the key has a value.
 *
 * Returns 1 if it was stored, 0 if there is none, or a negative status.
 *
 * # Safety
 * As nuthatch_shmem_set().
 */
int nuthatch_shmem_replace(const struct nuthatch_shmem_store *store,
                           const uint8_t *key,
                           size_t key_len,
                           const uint8_t *value,
                           size_t value_len,
                           uint32_t seconds);

/**
 * Adds bytes behind the value of a key, which expires when it did.
 *
 * Returns 1, or 0 if the key is not there, or a negative status.
 *
 * # Safety
 * As nuthatch_shmem_set().
 */
int nuthatch_shmem_append(const struct nuthatch_shmem_store *store,
                          const uint8_t *key,
                          size_t key_len,
                          const uint8_t *bytes,
                          size_t bytes_len);

/**
 * Adds bytes before the value of a key, which expires when it did.
 *
 * Returns 1, or 0 if the key is not there, or a negative status.
 *
 * # Safety
 * As nuthatch_shmem_set().
 */
int nuthatch_shmem_prepend(const struct nuthatch_shmem_store *store,
                           const uint8_t *key,
                           size_t key_len,
                           const uint8_t *bytes,
                           size_t bytes_len);

/**
 * Stores a value if the key's is still the one that nuthatch_shmem_gets() gave `unique` with.
 *
 * Returns 1 if it was stored, 0 if the key is not there, NUTHATCH_SHMEM_STATUS_CHANGED if it has another value, or another
 * negative status.
 *
 * # Safety
 * As nuthatch_shmem_set().
 */
int nuthatch_shmem_compare_and_set(const struct nuthatch_shmem_store *store,
                                   const uint8_t *key,
                                   size_t key_len,
                                   uint64_t unique,
                                   const uint8_t *value,
                                   size_t value_len,
                                   uint32_t seconds);

/**
 * Stores many values at once, for so many seconds; 0: until they are evicted. What can travel together does. Each pair
 * tells what became of it.
 *
 * Returns how many were stored, or a negative status: then none was.
 *
 * # Safety
 * `store` is NULL or open; `pairs` is NULL or has `count` pairs, whose keys and values are NULL or have so many bytes.
 */
int nuthatch_shmem_multi_set(const struct nuthatch_shmem_store *store,
                             struct nuthatch_shmem_pair *pairs,
                             size_t count,
                             uint32_t seconds);

/**
 * Gives a value another time to live, in seconds from now on; 0: until it is evicted.
 *
 * Returns 1, or 0 if the key is not there, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` is NULL or has so many bytes.
 */
int nuthatch_shmem_touch(const struct nuthatch_shmem_store *store,
                         const uint8_t *key,
                         size_t key_len,
                         uint32_t seconds);

/**
 * Removes everything, for all PEs.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open.
 */
int nuthatch_shmem_flush(const struct nuthatch_shmem_store *store);

/**
 * Stores in `*statistics` what all servers have, and what this PE has done.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `statistics` is NULL or points to statistics, which may be uninitialised.
 */
int nuthatch_shmem_get_statistics(const struct nuthatch_shmem_store *store,
                                  struct nuthatch_shmem_statistics *statistics);

/**
 * Copies a key's value to `buffer`, and stores its length in `*value_len`, also if it does not fit, and in `*unique` the
 * number that tells it from every other value that the key has or had.
 *
 * Returns 1 for a hit, 0 for a miss, or a negative status.
 *
 * # Safety
 * As nuthatch_shmem_get(); `unique` is NULL or points to a number.
 */
int nuthatch_shmem_gets(const struct nuthatch_shmem_store *store,
                        const uint8_t *key,
                        size_t key_len,
                        uint8_t *buffer,
                        size_t capacity,
                        size_t *value_len,
                        uint64_t *unique);

/**
 * Copies a key's value to `buffer`, and stores its length in `*value_len`, also if it does not fit.
 *
 * Returns 1 for a hit, 0 for a miss, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` is NULL or has so many bytes; `buffer` is NULL or has `capacity` bytes; `value_len` is
 * NULL or points to a number.
 */
int nuthatch_shmem_get(const struct nuthatch_shmem_store *store,
                       const uint8_t *key,
                       size_t key_len,
                       uint8_t *buffer,
                       size_t capacity,
                       size_t *value_len);

/**
 * Gets many keys at once: what can travel together does. Each item tells what became of it.
 *
 * Returns the number of hits, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `items` is NULL or has `count` items, whose keys and buffers are as for nuthatch_shmem_get().
 */
int nuthatch_shmem_multi_get(const struct nuthatch_shmem_store *store,
                             struct nuthatch_shmem_item *items,
                             size_t count);

/**
 * Removes a key.
 *
 * Returns 1 if it was there, 0 if not, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` is NULL or has so many bytes.
 */
int nuthatch_shmem_delete(const struct nuthatch_shmem_store *store,
                          const uint8_t *key,
                          size_t key_len);

/**
 * Adds to the decimal number that a key has as its value, modulo 2^64, and stores the sum in `*number`.
 *
 * Returns 1, or 0 if the key is not there, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` is NULL or has so many bytes; `number` is NULL or points to a number.
 */
int nuthatch_shmem_incr(const struct nuthatch_shmem_store *store,
                        const uint8_t *key,
                        size_t key_len,
                        uint64_t by,
                        uint64_t *number);

/**
 * Subtracts from the decimal number that a key has as its value, down to 0, and stores the rest in `*number`.
 *
 * Returns 1, or 0 if the key is not there, or a negative status.
 *
 * # Safety
 * As nuthatch_shmem_incr().
 */
int nuthatch_shmem_decr(const struct nuthatch_shmem_store *store,
                        const uint8_t *key,
                        size_t key_len,
                        uint64_t by,
                        uint64_t *number);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUTHATCH_SHMEM_H */
