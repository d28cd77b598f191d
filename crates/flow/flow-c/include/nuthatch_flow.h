/* A flow cache for packet processing. Generated from crates/flow/flow-c: do not edit, see its
 * tests/header.rs.
 *
 * A table maps the 64-bit hash of a flow to a value: the number of a rule, an index, a pointer. It
 * never grows; an insert always finds a slot and moves no other flow to another bucket.
 *
 * Functions return 0 or more on success, and a negative nuthatch_flow_status on failure; then they
 * changed nothing. NULL is refused where a pointer is needed, and so are numbers that are in no
 * enumeration. What a caller must ensure is under Safety. */

#ifndef NUTHATCH_FLOW_H
#define NUTHATCH_FLOW_H

#include <stddef.h>
#include <stdint.h>

/* For GCC: argument number `array` of a function is an array, of which the function reads (writes) as
 * many elements as argument number `count` says. The compiler then finds arrays that are too short,
 * and does not take an array for uninitialised that is filled in up to a variable count. */
#if defined(__GNUC__) && defined(__has_attribute)
#if __has_attribute(access)
#define NUTHATCH_FLOW_READS(array, count) __attribute__((access(read_only, array, count)))
#define NUTHATCH_FLOW_WRITES(array, count) __attribute__((access(write_only, array, count)))
#endif
#endif
#ifndef NUTHATCH_FLOW_READS
#define NUTHATCH_FLOW_READS(array, count)
#define NUTHATCH_FLOW_WRITES(array, count)
#endif

/**
 * Returns the 64 bits that tables take for a hash of 32 bits, such as a network card computes: the
 * bucket comes from the low bits, and the tag from the high ones. Anybody who knows the card's key
 * can choose flows that collide.
 *
 * The library has the same function as a symbol, for other languages.
 */
static inline uint64_t nuthatch_flow_widen(uint32_t hash)
{
    const uint64_t wide = hash;
    return wide << 32 | hash;
}

/**
 * The result of a call. All but the first are negative: the call failed and did nothing. A function
 * that returns a count returns one of these instead when it fails.
 */
typedef enum nuthatch_flow_status {
    /**
     * The call succeeded.
     */
    NUTHATCH_FLOW_STATUS_OK = 0,
    /**
     * A pointer that must not be NULL is NULL.
     */
    NUTHATCH_FLOW_STATUS_NULL_POINTER = -1,
    /**
     * No such layout.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_LAYOUT = -2,
    /**
     * No such eviction.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_EVICTION = -3,
    /**
     * No such entry.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_ENTRY = -4,
    /**
     * No such insert position.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_INSERT_AT = -5,
    /**
     * A probability is not a number from 0 to 1.
     */
    NUTHATCH_FLOW_STATUS_PROBABILITY = -6,
    /**
     * The eviction does not work on the layout.
     */
    NUTHATCH_FLOW_STATUS_UNSUITED = -7,
    /**
     * Threads cannot share a table of this eviction or entry.
     */
    NUTHATCH_FLOW_STATUS_NOT_SHARED = -8,
    /**
     * More entries than a table may have, which are 2^32.
     */
    NUTHATCH_FLOW_STATUS_TOO_MANY_ENTRIES = -9,
    /**
     * The value has more bits than an entry of this table keeps.
     */
    NUTHATCH_FLOW_STATUS_VALUE_TOO_WIDE = -10,
    /**
     * The system has no memory for the table.
     */
    NUTHATCH_FLOW_STATUS_NO_MEMORY = -11,
    /**
     * The version of an address is neither 4 nor 6.
     */
    NUTHATCH_FLOW_STATUS_ADDRESS_VERSION = -12,
    /**
     * The arrays would not fit into the address space.
     */
    NUTHATCH_FLOW_STATUS_COUNT_TOO_LARGE = -13,
    /**
     * A defect of this library, described on standard error. Destroy the table.
     */
    NUTHATCH_FLOW_STATUS_DEFECT = -14,
    /**
     * The stride is smaller than a 32-bit hash.
     */
    NUTHATCH_FLOW_STATUS_STRIDE = -15,
} nuthatch_flow_status;

/**
 * Which slots may hold a flow.
 */
typedef enum nuthatch_flow_layout {
    /**
     * One bucket of four slots: Open vSwitch's signature cache.
     */
    NUTHATCH_FLOW_LAYOUT_FOUR_WAY = 0,
    /**
     * One bucket of eight slots.
     */
    NUTHATCH_FLOW_LAYOUT_EIGHT_WAY = 1,
    /**
     * Two independent buckets of four slots; no key is ever moved between them.
     */
    NUTHATCH_FLOW_LAYOUT_CUCKOO_LITE = 2,
    /**
     * Eight neighbouring buckets of one slot: like hopscotch hashing, without displacement.
     */
    NUTHATCH_FLOW_LAYOUT_WINDOW = 3,
    /**
     * Two neighbouring buckets of four slots: the paper's 2-4 bounded linear probing.
     */
    NUTHATCH_FLOW_LAYOUT_BLP2X4 = 4,
    /**
     * Two neighbouring buckets of eight slots.
     */
    NUTHATCH_FLOW_LAYOUT_BLP2X8 = 5,
} nuthatch_flow_layout;

/**
 * Which entry is replaced when all slots of a flow are taken.
 */
typedef enum nuthatch_flow_eviction {
    /**
     * A random one.
     */
    NUTHATCH_FLOW_EVICTION_RANDOM = 0,
    /**
     * A random one of the second bucket; needs a layout with two buckets.
     */
    NUTHATCH_FLOW_EVICTION_RANDOM_SECOND = 1,
    /**
     * The least recently used one; 8 more bytes per slot. Not for shared tables.
     */
    NUTHATCH_FLOW_EVICTION_LRU = 2,
    /**
     * A hit moves an entry up by one slot in its bucket; the last one of a random bucket is
     * replaced.
     */
    NUTHATCH_FLOW_EVICTION_BUBBLE = 3,
    /**
     * Probabilistic Bubble LRU: the same, but a hit moves an entry up with the probability
     * `swap_probability`, and a new one is inserted at `insert_at`.
     */
    NUTHATCH_FLOW_EVICTION_PBLRU = 4,
    /**
     * Divide-and-conquer bubble: in a bucket without hits the first entry is replaced, in others the
     * last one; one flag per bucket. Not for shared tables.
     */
    NUTHATCH_FLOW_EVICTION_DC_BUBBLE = 5,
} nuthatch_flow_eviction;

/**
 * What a slot holds.
 */
typedef enum nuthatch_flow_entry {
    /**
     * 4 bytes: 16 bits of the hash, values up to 0xffff. One in some 8,000 lookups of absent flows
     * finds another flow's value: compare the packet with what the value refers to.
     */
    NUTHATCH_FLOW_ENTRY_TAG16 = 0,
    /**
     * 8 bytes: 32 bits of the hash, values up to 0xffffffff.
     */
    NUTHATCH_FLOW_ENTRY_TAG32 = 1,
    /**
     * 16 bytes: the whole hash, any value. Not for shared tables.
     */
    NUTHATCH_FLOW_ENTRY_HASH64 = 2,
} nuthatch_flow_entry;

/**
 * Where in its bucket PBLRU inserts a new flow.
 */
typedef enum nuthatch_flow_insert_at {
    /**
     * Last, in place of the evicted flow: more hits on skewed traffic and during a scan.
     */
    NUTHATCH_FLOW_INSERT_AT_LAST = 0,
    /**
     * Before the last one: a new flow survives one more eviction without a hit. The code of PBLRU's
     * authors uses this, and a swap probability of 1.
     */
    NUTHATCH_FLOW_INSERT_AT_SECOND_TO_LAST = 1,
} nuthatch_flow_insert_at;

/**
 * What an insert did.
 */
typedef enum nuthatch_flow_outcome {
    /**
     * An empty slot was taken.
     */
    NUTHATCH_FLOW_OUTCOME_FILLED = 1,
    /**
     * The flow was in the table, and has a new value.
     */
    NUTHATCH_FLOW_OUTCOME_UPDATED = 2,
    /**
     * All slots were taken: another flow was evicted.
     */
    NUTHATCH_FLOW_OUTCOME_EVICTED = 3,
} nuthatch_flow_outcome;

/**
 * An exact-match table of connections: a lookup compares the whole five-tuple and never returns the
 * value of another connection. This costs one more cache line per hit and 64 more bytes per flow.
 * One thread at a time uses the table; any thread may call nuthatch_flow_exact_get_stats() at any
 * time.
 */
typedef struct nuthatch_flow_exact nuthatch_flow_exact;

/**
 * A seeded hash function. Many threads may use the same one at the same time.
 */
typedef struct nuthatch_flow_hasher nuthatch_flow_hasher;

/**
 * A flow cache, or one thread's handle of a flow cache that threads share.
 *
 * One thread at a time uses a nuthatch_flow_table, of either kind; any thread may call
 * nuthatch_flow_get_stats() and nuthatch_flow_share() at any time. Threads that work on the same
 * flows have a handle each: nuthatch_flow_create_shared() makes the first and nuthatch_flow_share()
 * the others. These threads may all look up and change flows at the same time.
 */
typedef struct nuthatch_flow_table nuthatch_flow_table;

/**
 * The configuration of a table. Begin with nuthatch_flow_config_default(), so that a field that a
 * later version adds has a value.
 */
typedef struct nuthatch_flow_config {
    /**
     * Slots, at most 2^32; buckets are rounded up to a power of two, at least 8.
     * nuthatch_flow_get_stats() tells how many slots there are.
     */
    uint64_t entries;
    /**
     * The seed of random choices: the same calls on tables with the same seed do the same.
     */
    uint64_t seed;
    /**
     * PBLRU: the probability that a hit moves an entry up, at most 1. 0 selects the best value for
     * the kind of table: 1 for a table of one thread, which gives the most hits, and 1/4 for a
     * shared table, where most hits then write nothing.
     */
    double swap_probability;
    /**
     * One of enum nuthatch_flow_layout.
     */
    uint32_t layout;
    /**
     * One of enum nuthatch_flow_eviction.
     */
    uint32_t eviction;
    /**
     * One of enum nuthatch_flow_entry.
     */
    uint32_t entry;
    /**
     * PBLRU: one of enum nuthatch_flow_insert_at.
     */
    uint32_t insert_at;
} nuthatch_flow_config;

/**
 * The five-tuple of a transport connection. Addresses and ports are in network byte order, as in
 * the packet.
 */
typedef struct nuthatch_flow_tuple {
    /**
     * The source address: all 16 bytes, or the first four for IP version 4.
     */
    uint8_t source[16];
    /**
     * The destination address, likewise.
     */
    uint8_t destination[16];
    /**
     * The source port; 0 in protocols without ports.
     */
    uint16_t source_port;
    /**
     * The destination port; 0 in protocols without ports.
     */
    uint16_t destination_port;
    /**
     * The IP protocol number: 6 is TCP, 17 UDP.
     */
    uint8_t protocol;
    /**
     * The IP version: 4 or 6.
     */
    uint8_t version;
} nuthatch_flow_tuple;

/**
 * What a table counted since it was created.
 */
typedef struct nuthatch_flow_stats {
    /**
     * Flows looked up.
     */
    uint64_t lookups;
    /**
     * Flows that were found; never more than `lookups`.
     */
    uint64_t hits;
    /**
     * Inserts that took an empty slot.
     */
    uint64_t filled;
    /**
     * Inserts that replaced the value of a flow that was in the table.
     */
    uint64_t updated;
    /**
     * Inserts that evicted another flow.
     */
    uint64_t evicted;
    /**
     * Flows that were removed one by one.
     */
    uint64_t removed;
    /**
     * Flows that were removed by nuthatch_flow_forget_value() and nuthatch_flow_clear().
     */
    uint64_t forgotten;
    /**
     * Flows that are in the table now.
     */
    uint64_t occupied;
    /**
     * Slots: the configured entries, rounded up. The few spare slots at the end do not count.
     */
    uint64_t entries;
    /**
     * Bytes of all slots.
     */
    uint64_t bytes;
} nuthatch_flow_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the library that is linked, as "1.2.3". The caller must not free it.
 */
const char *nuthatch_flow_version(void);

/**
 * Fills in a configuration for most uses: 2^20 entries of 32 bits of hash and 32 of value, 2-4
 * bounded linear probing, PBLRU that inserts new flows last, and a random seed.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a nuthatch_flow_config.
 */
int nuthatch_flow_config_default(struct nuthatch_flow_config *config);

/**
 * Returns the name of a layout, such as "blp-2-4", or NULL if there is no layout of this number. The
 * caller must not free it. The program nuthatch-lab uses the same names.
 */
const char *nuthatch_flow_layout_name(uint32_t layout);

/**
 * Stores the layout of this name in `*layout`, which may be the field of a configuration.
 *
 * Returns 0 or a negative status: UNKNOWN_LAYOUT if no layout has this name. Then `*layout` is not
 * touched.
 *
 * # Safety
 * `name` is NULL or a string that ends with 0; `layout` is NULL or points to a number.
 */
int nuthatch_flow_layout_from_name(const char *name, uint32_t *layout);

/**
 * Returns the name of an eviction, such as "pblru", or NULL if there is no eviction of this number.
 * The caller must not free it.
 */
const char *nuthatch_flow_eviction_name(uint32_t eviction);

/**
 * Stores the eviction of this name in `*eviction`, which may be the field of a configuration.
 * PBLRU's parameters are fields of their own.
 *
 * Returns 0 or a negative status: UNKNOWN_EVICTION if no eviction has this name. Then `*eviction` is
 * not touched.
 *
 * # Safety
 * `name` is NULL or a string that ends with 0; `eviction` is NULL or points to a number.
 */
int nuthatch_flow_eviction_from_name(const char *name,
                                     uint32_t *eviction);

/**
 * Returns the name of an entry, bits of hash + bits of value: "16+16", "32+32" or "64+64". Returns
 * NULL if there is no entry of this number. The caller must not free it.
 */
const char *nuthatch_flow_entry_name(uint32_t entry);

/**
 * Stores the entry of this name in `*entry`, which may be the field of a configuration.
 *
 * Returns 0 or a negative status: UNKNOWN_ENTRY if no entry has this name. Then `*entry` is not
 * touched.
 *
 * # Safety
 * `name` is NULL or a string that ends with 0; `entry` is NULL or points to a number.
 */
int nuthatch_flow_entry_from_name(const char *name, uint32_t *entry);

/**
 * Returns the name of an insert position, "last" or "second-to-last", or NULL if there is none of
 * this number. The caller must not free it.
 */
const char *nuthatch_flow_insert_at_name(uint32_t insert_at);

/**
 * Stores the insert position of this name in `*insert_at`, which may be the field of a
 * configuration.
 *
 * Returns 0 or a negative status: UNKNOWN_INSERT_AT if no insert position has this name. Then
 * `*insert_at` is not touched.
 *
 * # Safety
 * `name` is NULL or a string that ends with 0; `insert_at` is NULL or points to a number.
 */
int nuthatch_flow_insert_at_from_name(const char *name, uint32_t *insert_at);

/**
 * Creates an empty table and stores it in `*table`; NULL if it fails. Destroy it after use. The
 * field `entry` of the configuration is not used, and values have 64 bits. `hash_seed` should be
 * random: see nuthatch_flow_random_seed().
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a configuration; `table` is NULL or points to a pointer.
 */
int nuthatch_flow_exact_create(const struct nuthatch_flow_config *config,
                               uint64_t hash_seed,
                               struct nuthatch_flow_exact **table);

/**
 * Frees a table; does nothing with NULL.
 *
 * # Safety
 * `table` is NULL or from nuthatch_flow_exact_create() and not used during this call or after it.
 */
void nuthatch_flow_exact_destroy(struct nuthatch_flow_exact *table);

/**
 * Looks one connection up. If it is there its value is stored in `*value`.
 *
 * Returns 1 if it is there, 0 if not, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `tuple` is NULL or points to a tuple, `value`
 * is NULL or points to a number.
 */
int nuthatch_flow_exact_lookup(struct nuthatch_flow_exact *table,
                               const struct nuthatch_flow_tuple *tuple,
                               uint64_t *value);

/**
 * Looks any number of connections up in one call, with their cache misses overlapped. `values` and
 * `hits` are filled in as by nuthatch_flow_lookup_many(), and untouched after an error. A tuple
 * whose version is neither 4 nor 6 is an error.
 *
 * Returns how many were found, or a negative status. Without tuples the arrays may be NULL.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; each array is NULL or has its length: `count`
 * tuples, `count` values, and a word of hits for every 64 tuples or part of 64.
 */
NUTHATCH_FLOW_READS(2, 3) NUTHATCH_FLOW_WRITES(4, 3)
int64_t nuthatch_flow_exact_lookup_many(struct nuthatch_flow_exact *table,
                                        const struct nuthatch_flow_tuple *tuples,
                                        size_t count,
                                        uint64_t *values,
                                        uint64_t *hits);

/**
 * Stores a value for a connection, and evicts another one if all slots are taken.
 *
 * Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
 * evicted, and `old` is not NULL, that value is stored in `*old`.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `tuple` is NULL or points to a tuple, `old` is
 * NULL or points to a number.
 */
int nuthatch_flow_exact_insert(struct nuthatch_flow_exact *table,
                               const struct nuthatch_flow_tuple *tuple,
                               uint64_t value,
                               uint64_t *old);

/**
 * Removes a connection. If it was there, and `old` is not NULL, its value is stored in `*old`.
 *
 * Returns 1 if it was there, 0 if not, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `tuple` is NULL or points to a tuple, `old` is
 * NULL or points to a number.
 */
int nuthatch_flow_exact_remove(struct nuthatch_flow_exact *table,
                               const struct nuthatch_flow_tuple *tuple,
                               uint64_t *old);

/**
 * Removes all connections with a value, as when a rule is deleted. Reads the whole table.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses.
 */
int64_t nuthatch_flow_exact_forget_value(struct nuthatch_flow_exact *table, uint64_t value);

/**
 * Removes all connections.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses.
 */
int64_t nuthatch_flow_exact_clear(struct nuthatch_flow_exact *table);

/**
 * Stores what the table counted in `*stats`; only verified hits count as hits, and `bytes` are those
 * of the slots alone. Any thread may call this while another one uses the table, as with
 * nuthatch_flow_get_stats().
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that is not destroyed meanwhile; `stats` is NULL or points to a
 * nuthatch_flow_stats.
 */
int nuthatch_flow_exact_get_stats(const struct nuthatch_flow_exact *table,
                                  struct nuthatch_flow_stats *stats);

/**
 * Creates a hash function and stores it in `*hasher`; NULL if it fails. Destroy it after use. The
 * same seed gives the same hashes in every process. With a seed from nuthatch_flow_random_seed() a
 * sender of packets cannot choose flows that collide in one bucket.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `hasher` is NULL or points to a pointer.
 */
int nuthatch_flow_hasher_create(uint64_t seed, struct nuthatch_flow_hasher **hasher);

/**
 * Frees a hash function; does nothing with NULL.
 *
 * # Safety
 * `hasher` is NULL or from nuthatch_flow_hasher_create() and not used during this call or after it.
 */
void nuthatch_flow_hasher_destroy(struct nuthatch_flow_hasher *hasher);

/**
 * Returns a random number, from the operating system's generator, that a sender of packets cannot
 * predict.
 */
uint64_t nuthatch_flow_random_seed(void);

/**
 * Stores the hashes of `count` connections in `hashes`. If a tuple has a wrong version, the hashes
 * of the tuples before it are stored.
 *
 * Returns 0 or a negative status. Without tuples the arrays may be NULL.
 *
 * # Safety
 * `hasher` is NULL or a hash function; each array is NULL or as long as `count` says.
 */
NUTHATCH_FLOW_READS(2, 3) NUTHATCH_FLOW_WRITES(4, 3)
int nuthatch_flow_hash_tuples(const struct nuthatch_flow_hasher *hasher,
                              const struct nuthatch_flow_tuple *tuples,
                              size_t count,
                              uint64_t *hashes);

/**
 * Stores the hashes of `count` keys in `hashes`. The keys are `size` bytes each and contiguous;
 * structs must have no padding, or set it to zero: its bytes are hashed as well.
 *
 * Returns 0 or a negative status. Without keys, or with keys of no bytes, their pointer may be
 * NULL.
 *
 * # Safety
 * `hasher` is NULL or a hash function; `keys` is NULL or points to `count` times `size` bytes,
 * `hashes` is NULL or as long as `count` says.
 */
int nuthatch_flow_hash_keys(const struct nuthatch_flow_hasher *hasher,
                            const void *keys,
                            size_t size,
                            size_t count,
                            uint64_t *hashes);

/**
 * Returns a sentence that describes `status`, never NULL. The caller must not free it.
 */
const char *nuthatch_flow_error_string(int status);

/**
 * Creates an empty table and stores it in `*table`; NULL if it fails. Destroy it after use.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a configuration; `table` is NULL or points to a pointer.
 */
int nuthatch_flow_create(const struct nuthatch_flow_config *config,
                         struct nuthatch_flow_table **table);

/**
 * As nuthatch_flow_create(), for a table that threads share: `*table` is its first handle, for the
 * calling thread.
 *
 * Not for the evictions LRU and DC_BUBBLE, nor for the entry HASH64. PBLRU with a swap probability
 * of 1/4, the default here, lets three hits in four leave the table's cache lines unwritten.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * As nuthatch_flow_create().
 */
int nuthatch_flow_create_shared(const struct nuthatch_flow_config *config,
                                struct nuthatch_flow_table **table);

/**
 * Stores another handle of a shared table in `*other`, for another thread; NULL if it fails. Each
 * handle is destroyed by itself, and the table is freed with the last one. Any thread may call this
 * while another one uses `table`.
 *
 * Returns 0 or a negative status: NOT_SHARED for a table from nuthatch_flow_create().
 *
 * # Safety
 * `table` is NULL or a table that is not destroyed meanwhile; `other` is NULL or points to a
 * pointer.
 */
int nuthatch_flow_share(const struct nuthatch_flow_table *table,
                        struct nuthatch_flow_table **other);

/**
 * Frees a table, or a handle of a shared one; does nothing with NULL.
 *
 * # Safety
 * `table` is NULL, or from this library and not used during this call or after it.
 */
void nuthatch_flow_destroy(struct nuthatch_flow_table *table);

/**
 * Looks one flow up. If it is there its value is stored in `*value`; if not, `*value` is not
 * touched.
 *
 * Returns 1 if it is there, 0 if not, or a negative status. nuthatch_flow_lookup_many() is much
 * faster for a burst, and says what a hit changes.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `value` is NULL or points to a number.
 */
int nuthatch_flow_lookup(struct nuthatch_flow_table *table, uint64_t hash, uint64_t *value);

/**
 * Looks any number of flows up in one call, with their cache misses overlapped.
 *
 * Afterwards `values[i]` is the value of `hashes[i]`, or 0, and bit i % 64 of `hits[i / 64]` tells
 * whether it was found; further bits of the last word are 0. After an error `values` and `hits` are
 * untouched: initialise `hits`, or look at the return value first. The arrays must not overlap.
 *
 * A hit changes the table before the caller can verify it: LRU, BUBBLE, PBLRU and DC_BUBBLE move
 * the entry up, or note its use, as soon as a tag matches. An entry of another flow with the same
 * tag is moved up by mistake as well. This costs hits only if it happens often: with the entry
 * TAG16 in one lookup in some 8,000 of absent flows. If the verification fails, insert the flow
 * under its hash: it takes the place of that entry.
 *
 * Returns how many were found, or a negative status. Without flows the arrays may be NULL.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; each array is NULL or has its length: `count`
 * hashes, `count` values, and a word of hits for every 64 flows or part of 64.
 */
NUTHATCH_FLOW_READS(2, 3) NUTHATCH_FLOW_WRITES(4, 3)
int64_t nuthatch_flow_lookup_many(struct nuthatch_flow_table *table,
                                  const uint64_t *hashes,
                                  size_t count,
                                  uint64_t *values,
                                  uint64_t *hits);

/**
 * As nuthatch_flow_lookup_many(), for hashes of 32 bits that are fields of the structs of an array:
 * hash number i is at `hashes` + i * `stride` bytes, and is widened as by nuthatch_flow_widen(). For
 * an array `packet` of structs with a field `hash`, pass `&packet[0].hash` and `sizeof(packet[0])`.
 * The hashes need not be aligned.
 *
 * Returns how many were found, or a negative status: STRIDE if `stride` is below 4,
 * COUNT_TOO_LARGE if the hashes would take more than half the address space.
 *
 * # Safety
 * As nuthatch_flow_lookup_many(); `hashes` is NULL or points into an array in which there are four
 * bytes at each of the `count` places.
 */
NUTHATCH_FLOW_WRITES(5, 4)
int64_t nuthatch_flow_lookup_strided(struct nuthatch_flow_table *table,
                                     const void *hashes,
                                     size_t stride,
                                     size_t count,
                                     uint64_t *values,
                                     uint64_t *hits);

/**
 * Prefetches the cache lines that a lookup or an insert of this flow will read. Call it as soon as
 * the hash is known, some hundred nanoseconds before the lookup. It changes and counts nothing.
 * nuthatch_flow_lookup_many() prefetches by itself for all but the first flows.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses.
 */
int nuthatch_flow_prefetch(const struct nuthatch_flow_table *table, uint64_t hash);

/**
 * As nuthatch_flow_prefetch(), for many flows: as many as the processor can fetch at a time, some 10
 * to 40 lines. The processor may drop requests beyond that, or wait for them.
 *
 * Returns 0 or a negative status. Without flows the array may be NULL.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `hashes` is NULL or as long as `count` says.
 */
NUTHATCH_FLOW_READS(2, 3)
int nuthatch_flow_prefetch_many(const struct nuthatch_flow_table *table,
                                const uint64_t *hashes,
                                size_t count);

/**
 * As nuthatch_flow_prefetch_many(), for hashes of 32 bits that are fields of structs, which are
 * passed as to nuthatch_flow_lookup_strided().
 *
 * Returns 0, or a negative status as nuthatch_flow_lookup_strided() does.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `hashes` is NULL or points into an array in
 * which there are four bytes at each of the `count` places.
 */
int nuthatch_flow_prefetch_strided(const struct nuthatch_flow_table *table,
                                   const void *hashes,
                                   size_t stride,
                                   size_t count);

/**
 * Stores a value for a flow, and evicts another flow if all slots are taken: it always finds a
 * slot, and no other flow moves to another bucket. Does nothing if the value is wider than an entry
 * keeps.
 *
 * Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
 * evicted, and `old` is not NULL, that value is stored in `*old`.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `old` is NULL or points to a number.
 */
int nuthatch_flow_insert(struct nuthatch_flow_table *table,
                         uint64_t hash,
                         uint64_t value,
                         uint64_t *old);

/**
 * Removes a flow. If it was there, and `old` is not NULL, its value is stored in `*old`.
 *
 * Returns 1 if it was there, 0 if not, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses; `old` is NULL or points to a number.
 */
int nuthatch_flow_remove(struct nuthatch_flow_table *table, uint64_t hash, uint64_t *old);

/**
 * Removes all flows with a value, as when a rule is deleted. Reads the whole table. Flows that other
 * threads insert with this value meanwhile may stay.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses.
 */
int64_t nuthatch_flow_forget_value(struct nuthatch_flow_table *table,
                                   uint64_t value);

/**
 * Removes all flows.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that no other thread uses.
 */
int64_t nuthatch_flow_clear(struct nuthatch_flow_table *table);

/**
 * Stores what the table counted in `*stats`; for a shared one, what all its handles counted.
 *
 * Any thread may call this while another one uses the table. Each number is then read by itself: the
 * numbers may be some operations apart from each other, but none decreases between two calls of a
 * thread.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that is not destroyed meanwhile; `stats` is NULL or points to a
 * nuthatch_flow_stats.
 */
int nuthatch_flow_get_stats(const struct nuthatch_flow_table *table,
                            struct nuthatch_flow_stats *stats);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUTHATCH_FLOW_H */
