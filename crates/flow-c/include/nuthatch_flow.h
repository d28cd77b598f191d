/* A flow cache for packet paths. Made from crates/flow-c: do not edit, see its tests/header.rs.
 *
 * A table maps the 64-bit hash of a flow to a value: the number of a rule, an index, a pointer. It
 * never grows; an insert always finds a place and moves no other flow to another bucket.
 *
 * Functions return 0 or more if they did what was asked, and a negative nuthatch_flow_status if not;
 * then they changed nothing. NULL is refused where it makes no sense, numbers that are not in an
 * enumeration too. What is asked of the caller stands under Safety. */

#ifndef NUTHATCH_FLOW_H
#define NUTHATCH_FLOW_H

#include <stddef.h>
#include <stdint.h>

/**
 * Why a call did nothing: all but the first are negative. A function that returns a number of
 * things returns one of these instead, if it failed.
 */
typedef enum nuthatch_flow_status {
    /**
     * It was done.
     */
    NUTHATCH_FLOW_STATUS_OK = 0,
    /**
     * A pointer is NULL that must not be.
     */
    NUTHATCH_FLOW_STATUS_NULL_POINTER = -1,
    /**
     * There is no such layout.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_LAYOUT = -2,
    /**
     * There is no such eviction.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_EVICTION = -3,
    /**
     * There is no such entry.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_ENTRY = -4,
    /**
     * There is no such place to insert at.
     */
    NUTHATCH_FLOW_STATUS_UNKNOWN_INSERT_AT = -5,
    /**
     * A probability is not a number from 0 to 1.
     */
    NUTHATCH_FLOW_STATUS_PROBABILITY = -6,
    /**
     * The layout and the eviction do not go together.
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
     * The system refused the memory.
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
     * Two buckets of four slots, anywhere; nothing is ever kicked out.
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
 * Who leaves when all slots of a flow are taken.
 */
typedef enum nuthatch_flow_eviction {
    /**
     * Any of them, all alike.
     */
    NUTHATCH_FLOW_EVICTION_RANDOM = 0,
    /**
     * Any slot of the second bucket; needs a layout with two.
     */
    NUTHATCH_FLOW_EVICTION_RANDOM_SECOND = 1,
    /**
     * The one whose last hit is longest ago; 8 more bytes a slot. Not for shared tables.
     */
    NUTHATCH_FLOW_EVICTION_LRU = 2,
    /**
     * A hit always moves a flow up in its bucket; the last of a random bucket leaves.
     */
    NUTHATCH_FLOW_EVICTION_BUBBLE = 3,
    /**
     * Probabilistic Bubble LRU: a hit moves a flow up with `swap_probability`; the last of a
     * random bucket leaves, and the new flow comes in at `insert_at`.
     */
    NUTHATCH_FLOW_EVICTION_PBLRU = 4,
    /**
     * Divide-and-conquer bubble, with a flag a bucket. Not for shared tables.
     */
    NUTHATCH_FLOW_EVICTION_DC_BUBBLE = 5,
} nuthatch_flow_eviction;

/**
 * What a slot holds.
 */
typedef enum nuthatch_flow_entry {
    /**
     * 4 bytes: 16 bits of the hash, values up to 0xffff. One lookup in some 8,000 of a flow that
     * is not there finds another's value: compare the packet with what the value names.
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
 * Where in its bucket PBLRU puts a new flow.
 */
typedef enum nuthatch_flow_insert_at {
    /**
     * In the place of the flow that leaves: keeps more hits on skewed traffic and under a scan.
     */
    NUTHATCH_FLOW_INSERT_AT_LAST = 0,
    /**
     * Above the last: a new flow survives one more eviction without a hit. PBLRU as its authors'
     * code has it is this and a swap probability of 1.
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
     * The flow was there, and has a new value.
     */
    NUTHATCH_FLOW_OUTCOME_UPDATED = 2,
    /**
     * All slots were taken: another flow left.
     */
    NUTHATCH_FLOW_OUTCOME_EVICTED = 3,
} nuthatch_flow_outcome;

/**
 * An exact-match table of connections: it answers with a connection's own value or not at all, for
 * one more cache line a lookup and 64 more bytes a flow. One thread at a time uses it.
 */
typedef struct nuthatch_flow_exact nuthatch_flow_exact;

/**
 * A hash function. Threads may use one at the same time.
 */
typedef struct nuthatch_flow_hasher nuthatch_flow_hasher;

/**
 * A flow cache, or one thread's part in a flow cache that threads share.
 *
 * One thread at a time uses a nuthatch_flow_table, whichever it is. Threads that work on the same
 * flows have one each: nuthatch_flow_create_shared() makes the first and nuthatch_flow_share() the
 * others. They may all look up and change flows at the same time.
 */
typedef struct nuthatch_flow_table nuthatch_flow_table;

/**
 * What a table shall be. Begin with nuthatch_flow_config_default(), so that a field that a later
 * version adds has a value.
 */
typedef struct nuthatch_flow_config {
    /**
     * Slots at least, up to 2^32; rounded up to a power of two of buckets, at least 8 buckets.
     * nuthatch_flow_get_stats() tells how many there are.
     */
    uint64_t entries;
    /**
     * What random choices follow from: the same calls on tables of the same seed do the same.
     */
    uint64_t seed;
    /**
     * PBLRU: how probably a hit moves a flow up, at most 1. 0 means what suits the table: 1 in a
     * table of one thread, which keeps most hits, and 1/4 in one that threads share, where most
     * hits then write nothing.
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
 * What names a transport connection. Addresses and ports are in network byte order, as they lie in
 * the packet.
 */
typedef struct nuthatch_flow_tuple {
    /**
     * Where the packet comes from: 16 bytes, or of version 4 the first four.
     */
    uint8_t source[16];
    /**
     * Where it goes, likewise.
     */
    uint8_t destination[16];
    /**
     * The sender's port; 0 in protocols without ports.
     */
    uint16_t source_port;
    /**
     * The receiver's port; 0 in protocols without ports.
     */
    uint16_t destination_port;
    /**
     * The IP protocol number: 6 is TCP, 17 UDP.
     */
    uint8_t protocol;
    /**
     * The version of IP: 4 or 6.
     */
    uint8_t version;
} nuthatch_flow_tuple;

/**
 * What a table counts, since it was made.
 */
typedef struct nuthatch_flow_stats {
    /**
     * Flows looked up.
     */
    uint64_t lookups;
    /**
     * Flows that were found.
     */
    uint64_t hits;
    /**
     * Inserts that took an empty slot.
     */
    uint64_t filled;
    /**
     * Inserts that replaced the value of a flow that was there.
     */
    uint64_t updated;
    /**
     * Inserts that drove another flow out.
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
     * Flows that are there now.
     */
    uint64_t occupied;
    /**
     * Slots, as rounded up; not counting the few behind the last bucket.
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
 * Returns the version of the library that is linked, as "1.2.3". It is not to be freed.
 */
const char *nuthatch_flow_version(void);

/**
 * Fills in a table for most: 2^20 entries of 32 bits of hash and 32 of value, 2-4 bounded linear
 * probing, PBLRU that puts new flows last, and a random seed.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a nuthatch_flow_config.
 */
int nuthatch_flow_config_default(struct nuthatch_flow_config *config);

/**
 * Makes an empty table and stores it in `*table`; NULL if it fails. Destroy it after use. The
 * entry of the configuration does not matter, values may be any; `hash_seed` is best random.
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
 * `table` is NULL or from nuthatch_flow_exact_create(), nobody uses it, and nobody will again.
 */
void nuthatch_flow_exact_destroy(struct nuthatch_flow_exact *table);

/**
 * Looks one connection up. If it is there its value is stored in `*value`.
 *
 * Returns 1 if it is there, 0 if not, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses; `tuple` is NULL or points to a tuple, `value`
 * is NULL or points to a number.
 */
int nuthatch_flow_exact_lookup(struct nuthatch_flow_exact *table,
                               const struct nuthatch_flow_tuple *tuple,
                               uint64_t *value);

/**
 * Looks any number of connections up in one call, with their cache misses overlapped. Values and
 * hits are as those of nuthatch_flow_lookup_many(). Does nothing if a tuple's version is wrong.
 *
 * Returns how many were there, or a negative status. Without tuples the arrays may be NULL.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses; each array is NULL or as long as said:
 * `count` tuples, `count` values, and a word of hits for every 64 begun.
 */
int64_t nuthatch_flow_exact_lookup_many(struct nuthatch_flow_exact *table,
                                        const struct nuthatch_flow_tuple *tuples,
                                        size_t count,
                                        uint64_t *values,
                                        uint64_t *hits);

/**
 * Remembers a value for a connection. It always finds a place.
 *
 * Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
 * driven out, and `old` is not NULL, that value is stored in `*old`.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses; `tuple` is NULL or points to a tuple, `old` is
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
 * `table` is NULL or a table that nobody else uses; `tuple` is NULL or points to a tuple, `old` is
 * NULL or points to a number.
 */
int nuthatch_flow_exact_remove(struct nuthatch_flow_exact *table,
                               const struct nuthatch_flow_tuple *tuple,
                               uint64_t *old);

/**
 * Removes all connections with a value, as when a rule dies. Reads the whole table.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses.
 */
int64_t nuthatch_flow_exact_forget_value(struct nuthatch_flow_exact *table, uint64_t value);

/**
 * Removes all connections.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses.
 */
int64_t nuthatch_flow_exact_clear(struct nuthatch_flow_exact *table);

/**
 * Stores what the table counted in `*stats`; only verified hits are hits, and the bytes are those
 * of the slots alone.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that nobody else changes; `stats` is NULL or points to counts.
 */
int nuthatch_flow_exact_get_stats(const struct nuthatch_flow_exact *table,
                                  struct nuthatch_flow_stats *stats);

/**
 * Makes a hash function and stores it in `*hasher`; NULL if it fails. Destroy it after use.
 * The same seed gives the same hashes in every process. With one from nuthatch_flow_random_seed()
 * nobody who sends packets can choose flows that fall into one bucket.
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
 * `hasher` is NULL or from nuthatch_flow_hasher_create(), nobody uses it, and nobody will again.
 */
void nuthatch_flow_hasher_destroy(struct nuthatch_flow_hasher *hasher);

/**
 * Returns a number that nobody outside the process can foresee, from the operating system.
 */
uint64_t nuthatch_flow_random_seed(void);

/**
 * Stores the hashes of `count` connections in `hashes`. If the version of one is wrong, those
 * before it have their hashes.
 *
 * Returns 0 or a negative status. Without tuples the arrays may be NULL.
 *
 * # Safety
 * `hasher` is NULL or a hash function; each array is NULL or as long as `count` says.
 */
int nuthatch_flow_hash_tuples(const struct nuthatch_flow_hasher *hasher,
                              const struct nuthatch_flow_tuple *tuples,
                              size_t count,
                              uint64_t *hashes);

/**
 * Stores the hashes of `count` keys in `hashes`. The keys are any bytes, `size` of them each, and
 * lie one behind the other; there may be no padding in them in which two equal keys differ.
 *
 * Returns 0 or a negative status. Without keys, or with keys of no bytes, their pointer may be
 * NULL.
 *
 * # Safety
 * `hasher` is NULL or a hash function; `keys` is NULL or leads to `count` times `size` bytes,
 * `hashes` is NULL or as long as `count` says.
 */
int nuthatch_flow_hash_keys(const struct nuthatch_flow_hasher *hasher,
                            const void *keys,
                            size_t size,
                            size_t count,
                            uint64_t *hashes);

/**
 * Returns 64 bits for a table of a 32-bit hash, such as a network card computes. Whoever knows the
 * card's key can choose flows that collide.
 */
uint64_t nuthatch_flow_widen(uint32_t hash);

/**
 * Returns a sentence for what a function returned, never NULL. It is not to be freed.
 */
const char *nuthatch_flow_error_string(int status);

/**
 * Makes an empty table and stores it in `*table`; NULL if it fails. Destroy it after use.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `config` is NULL or points to a configuration; `table` is NULL or points to a pointer.
 */
int nuthatch_flow_create(const struct nuthatch_flow_config *config,
                         struct nuthatch_flow_table **table);

/**
 * The same for a table that threads share, with the calling thread's part in it.
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
 * Stores another part in a shared table in `*other`, for another thread; NULL if it fails. Each
 * part is destroyed for itself, and the flows go with the last.
 *
 * Returns 0 or a negative status: NOT_SHARED for a table from nuthatch_flow_create().
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses; `other` is NULL or points to a pointer.
 */
int nuthatch_flow_share(const struct nuthatch_flow_table *table,
                        struct nuthatch_flow_table **other);

/**
 * Frees a table, or a thread's part in one; does nothing with NULL.
 *
 * # Safety
 * `table` is NULL or from this library, nobody uses it, and nobody will again.
 */
void nuthatch_flow_destroy(struct nuthatch_flow_table *table);

/**
 * Looks one flow up. If it is there its value is stored in `*value`.
 *
 * Returns 1 if it is there, 0 if not, or a negative status. Bursts are looked up much faster by
 * nuthatch_flow_lookup_many().
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses; `value` is NULL or points to a number.
 */
int nuthatch_flow_lookup(struct nuthatch_flow_table *table, uint64_t hash, uint64_t *value);

/**
 * Looks any number of flows up in one call, with their cache misses overlapped.
 *
 * Afterwards `values[i]` is the value of `hashes[i]`, or 0, and bit i % 64 of `hits[i / 64]` tells
 * whether it was there; further bits of the last word are 0. The arrays must not overlap.
 *
 * Returns how many were there, or a negative status. Without flows the arrays may be NULL.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses; each array is NULL or as long as said:
 * `count` hashes, `count` values, and a word of hits for every 64 begun.
 */
int64_t nuthatch_flow_lookup_many(struct nuthatch_flow_table *table,
                                  const uint64_t *hashes,
                                  size_t count,
                                  uint64_t *values,
                                  uint64_t *hits);

/**
 * Remembers a value for a flow. It always finds a place, and no other flow moves to another
 * bucket. Does nothing if the value is wider than an entry keeps.
 *
 * Returns one of enum nuthatch_flow_outcome, or a negative status. If a value was replaced or
 * driven out, and `old` is not NULL, that value is stored in `*old`.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses; `old` is NULL or points to a number.
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
 * `table` is NULL or a table that nobody else uses; `old` is NULL or points to a number.
 */
int nuthatch_flow_remove(struct nuthatch_flow_table *table, uint64_t hash, uint64_t *old);

/**
 * Removes all flows with a value, as when a rule dies. Reads the whole table. Other threads go on
 * meanwhile: what they insert with that value may stay.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses.
 */
int64_t nuthatch_flow_forget_value(struct nuthatch_flow_table *table, uint64_t value);

/**
 * Removes all flows.
 *
 * Returns how many there were, or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that nobody else uses.
 */
int64_t nuthatch_flow_clear(struct nuthatch_flow_table *table);

/**
 * Stores what the table counted in `*stats`; in a shared one, what all threads did.
 *
 * Returns 0 or a negative status.
 *
 * # Safety
 * `table` is NULL or a table that nobody else changes; `stats` is NULL or points to counts.
 */
int nuthatch_flow_get_stats(const struct nuthatch_flow_table *table,
                            struct nuthatch_flow_stats *stats);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUTHATCH_FLOW_H */
