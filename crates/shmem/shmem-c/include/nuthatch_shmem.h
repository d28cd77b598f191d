/* A cache that the PEs of an OpenSHMEM program share. Generated from crates/shmem/shmem-c: do not edit, see its
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
 * The result of a call. All but the first are negative: the call failed and did nothing. A function that returns a
 * count returns one of these instead when it fails.
 */
typedef enum nuthatch_shmem_status {
    /**
     * The call succeeded.
     */
    NUTHATCH_SHMEM_STATUS_OK = 0,
    /**
     * A pointer that must not be NULL is NULL.
     */
    NUTHATCH_SHMEM_STATUS_NULL_POINTER = -1,
    /**
     * The key does not have 1 to 250 bytes.
     */
    NUTHATCH_SHMEM_STATUS_KEY = -2,
    /**
     * The item is larger than the configuration allows (see `item_size_max`), or a list is longer than memory can be.
     */
    NUTHATCH_SHMEM_STATUS_TOO_LARGE = -3,
    /**
     * The server is full, and nothing may be evicted.
     */
    NUTHATCH_SHMEM_STATUS_OUT_OF_MEMORY = -4,
    /**
     * The value is not a decimal number of 64 bits.
     */
    NUTHATCH_SHMEM_STATUS_NOT_NUMERIC = -5,
    /**
     * The value does not fit into the buffer.
     */
    NUTHATCH_SHMEM_STATUS_BUFFER_TOO_SMALL = -6,
    /**
     * The configuration is not possible, or not the same on all PEs. The reason is on standard error.
     */
    NUTHATCH_SHMEM_STATUS_SETTINGS = -7,
    /**
     * There is no symmetric memory for the store. Standard error says what to do.
     */
    NUTHATCH_SHMEM_STATUS_NO_MEMORY = -8,
    /**
     * Every PE serves in a thread beside the program's, but shmem_init_thread() did not provide SHMEM_THREAD_MULTIPLE.
     */
    NUTHATCH_SHMEM_STATUS_THREADS = -9,
    /**
     * This PE is not one that only serves, so it must not call nuthatch_shmem_serve().
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
 * The configuration of a store: the same on all PEs. Fill it in with nuthatch_shmem_config_default() first.
 */
typedef struct nuthatch_shmem_config {
    /**
     * The number of PEs that do nothing but serve, which are the first ones. 0: every PE serves, in a thread beside
     * the program's.
     */
    size_t servers;
    /**
     * Bytes of memory of each server. Every PE reserves as many bytes of its symmetric memory.
     */
    size_t memory;
    /**
     * Bytes of the largest item: its header, key and value. At most a quarter of `memory`. A server evicts early if
     * `memory` is less than some forty times as much.
     */
    size_t item_size_max;
    /**
     * Entries of each PE's directory of pointers.
     */
    size_t directory;
    /**
     * 0: a full server refuses to store, instead of evicting items.
     */
    int evicts;
} nuthatch_shmem_config;

/**
 * One pair of nuthatch_shmem_multi_set().
 */
typedef struct nuthatch_shmem_pair {
    /**
     * The key.
     */
    const uint8_t *key;
    /**
     * Bytes of the key.
     */
    size_t key_len;
    /**
     * The value.
     */
    const uint8_t *value;
    /**
     * Bytes of the value.
     */
    size_t value_len;
    /**
     * Out: 0 if the pair was stored, or a negative status.
     */
    int status;
} nuthatch_shmem_pair;

/**
 * Items and bytes of all servers, and counts of this PE's operations since it opened the store.
 */
typedef struct nuthatch_shmem_statistics {
    /**
     * Items of all servers; expired ones count until their memory is needed.
     */
    uint64_t items;
    /**
     * Bytes of the blocks of these items.
     */
    uint64_t item_bytes;
    /**
     * Bytes of memory that all servers may use.
     */
    uint64_t memory_limit;
    /**
     * Bytes of memory that all servers use.
     */
    uint64_t memory_used;
    /**
     * Live items that were evicted to make room.
     */
    uint64_t evictions;
    /**
     * Expired and flushed items whose memory was reclaimed.
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
     * Gets of this PE for which its directory did not.
     */
    uint64_t directory_misses;
    /**
     * Gets that this PE answered itself, without a message.
     */
    uint64_t direct_gets;
    /**
     * Sets that this PE carried out itself.
     */
    uint64_t direct_sets;
    /**
     * Operations for which this PE sent a message to a server.
     */
    uint64_t messages;
} nuthatch_shmem_statistics;

/**
 * One key of nuthatch_shmem_multi_get().
 */
typedef struct nuthatch_shmem_item {
    /**
     * The key.
     */
    const uint8_t *key;
    /**
     * Bytes of the key.
     */
    size_t key_len;
    /**
     * The buffer for the value.
     */
    uint8_t *buffer;
    /**
     * Bytes of the buffer.
     */
    size_t capacity;
    /**
     * Out: bytes of the value, also if it does not fit.
     */
    size_t value_len;
    /**
     * Out: 1 for a hit, 0 for a miss, or NUTHATCH_SHMEM_STATUS_BUFFER_TOO_SMALL for a hit that does not fit.
     */
    int found;
} nuthatch_shmem_item;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns a sentence that describes `status`, never NULL. The caller must not free it.
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
 * Sets the environment variables that OpenSHMEM reads when it starts, except for those that the user has set: a
 * symmetric heap for this store and for `more` bytes of the program's, and what Open MPI needs. Call it before
 * shmem_init_thread(). Without it, the user who starts the program must set SHMEM_SYMMETRIC_SIZE (Open MPI 4:
 * SHMEM_SYMMETRIC_HEAP_SIZE).
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
 * after shmem_init_thread(). If a PE has another configuration, the call fails on all PEs, and standard error says in
 * what it differs. If config->servers is 0, shmem_init_thread() must have provided SHMEM_THREAD_MULTIPLE.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a configuration; `store` is NULL or points to a pointer. OpenSHMEM is started, and not
 * ended before the store is closed. If OpenSHMEM was started with less than SHMEM_THREAD_MULTIPLE, only one thread of
 * the PE calls this library.
 */
int nuthatch_shmem_open(const struct nuthatch_shmem_config *config,
                        struct nuthatch_shmem_store **store);

/**
 * Returns 1 on a PE that only serves, which must call nuthatch_shmem_serve(), and 0 on other PEs.
 *
 * # Safety
 * `store` is NULL or open.
 */
int nuthatch_shmem_is_server(const struct nuthatch_shmem_store *store);

/**
 * Serves until every client has closed the store. The caller then closes it too.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open.
 */
int nuthatch_shmem_serve(const struct nuthatch_shmem_store *store);

/**
 * Closes a store. Collective: all PEs call it. The items of the store are lost. Does nothing with NULL. A PE that ends
 * without this call leaves the others waiting, as at any barrier; shmem_global_exit() ends all of them.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open, and no thread uses it during this call or after it.
 */
int nuthatch_shmem_close(struct nuthatch_shmem_store *store);

/**
 * Stores a value with a time to live of `seconds`; 0: until it is evicted.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` and `value` are NULL or have `key_len` and `value_len` bytes.
 */
int nuthatch_shmem_set(const struct nuthatch_shmem_store *store,
                       const uint8_t *key,
                       size_t key_len,
                       const uint8_t *value,
                       size_t value_len,
                       uint32_t seconds);

/**
 * Stores a value as nuthatch_shmem_set() does, unless the key has one.
 *
 * Returns 1 if the value was stored, 0 if the key has a value, or a negative status.
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
 * Stores a value as nuthatch_shmem_set() does, if the key has one.
 *
 * Returns 1 if the value was stored, 0 if the key has none, or a negative status.
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
 * Adds bytes behind the value of a key. The time at which it expires stays the same.
 *
 * Returns 1, 0 if the key has no value, or a negative status.
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
 * Adds bytes before the value of a key. The time at which it expires stays the same.
 *
 * Returns 1, 0 if the key has no value, or a negative status.
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
 * Stores a value if the key still has the value for which nuthatch_shmem_gets() stored `unique`.
 *
 * Returns 1 if the value was stored, 0 if the key has none, NUTHATCH_SHMEM_STATUS_CHANGED if it has another value, or
 * another negative status.
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
 * Stores many values at once, with a time to live of `seconds`; 0: until they are evicted. Requests that can travel
 * together do. The `status` of each pair says whether it was stored.
 *
 * Returns how many pairs were stored, or a negative status: then none was.
 *
 * # Safety
 * `store` is NULL or open; `pairs` is NULL or has `count` pairs, whose keys and values are NULL or have `key_len` and
 * `value_len` bytes.
 */
int nuthatch_shmem_multi_set(const struct nuthatch_shmem_store *store,
                             struct nuthatch_shmem_pair *pairs,
                             size_t count,
                             uint32_t seconds);

/**
 * Sets the time to live of a value to `seconds` from now on; 0: until it is evicted.
 *
 * Returns 1, 0 if the key has no value, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` is NULL or has `key_len` bytes.
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
 * Stores the statistics of all servers, and of this PE's operations, in `*statistics`.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `statistics` is NULL or points to statistics, which may be uninitialised.
 */
int nuthatch_shmem_get_statistics(const struct nuthatch_shmem_store *store,
                                  struct nuthatch_shmem_statistics *statistics);

/**
 * Copies a key's value to `buffer`, and stores its length in `*value_len`, also if it does not fit. Stores in
 * `*unique` the number that tells the value from every other value that the key has or had.
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
 * `store` is NULL or open; `key` is NULL or has `key_len` bytes; `buffer` is NULL or has `capacity` bytes; `value_len`
 * is NULL or points to a number.
 */
int nuthatch_shmem_get(const struct nuthatch_shmem_store *store,
                       const uint8_t *key,
                       size_t key_len,
                       uint8_t *buffer,
                       size_t capacity,
                       size_t *value_len);

/**
 * Gets many keys at once. Requests that can travel together do. The `found` of each item says whether it was a hit.
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
 * Returns 1 if the key had a value, 0 if not, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` is NULL or has `key_len` bytes.
 */
int nuthatch_shmem_delete(const struct nuthatch_shmem_store *store,
                          const uint8_t *key,
                          size_t key_len);

/**
 * Adds to the decimal number that a key has as its value, modulo 2^64, and stores the sum in `*number`.
 *
 * Returns 1, 0 if the key has no value, or a negative status.
 *
 * # Safety
 * `store` is NULL or open; `key` is NULL or has `key_len` bytes; `number` is NULL or points to a number.
 */
int nuthatch_shmem_incr(const struct nuthatch_shmem_store *store,
                        const uint8_t *key,
                        size_t key_len,
                        uint64_t by,
                        uint64_t *number);

/**
 * Subtracts from the decimal number that a key has as its value, down to 0, and stores the rest in `*number`.
 *
 * Returns 1, 0 if the key has no value, or a negative status.
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
