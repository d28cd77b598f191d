/* DPDK's rte_hash as a cache: it has no eviction of its own, so one is put beside it. */

#ifndef BOUNDED_H
#define BOUNDED_H

#include <stdint.h>

/* Keys of up to so many bytes. */
#define BOUNDED_KEY_MAX 40
/* Keys of one bulk lookup: rte_hash's own bound. */
#define BOUNDED_BULK_MAX 64

/* Which key leaves when there is no room for a new one. */
enum bounded_eviction { BOUNDED_OLDEST, BOUNDED_RANDOM };

struct bounded;

/* A table of `entries` places for keys of `key_size` bytes, which holds at most `room` of them, and
 * has a name that no other has. A table filled to its last places searches long for each more, so
 * that `room` is better some less. DPDK's environment must have been started. NULL if the table is
 * not to be had; rte_errno says why. */
struct bounded *bounded_create(const char *name, uint32_t entries, uint32_t room,
                               uint32_t key_size, enum bounded_eviction eviction);
void bounded_destroy(struct bounded *table);

/* Looks up to 64 keys up: a bit for each that is there, and its value. A hash is the low 32 bits of
 * one that the caller made of the key. */
uint64_t bounded_lookup(const struct bounded *table, const void **key, uint32_t *hash,
                        uint32_t count, uint64_t *value);

/* Stores a key, after another left if need be; one that is there gets the new value. After 16 left
 * in vain it gives up: a path of moves may end nowhere although there is room. */
void bounded_insert(struct bounded *table, const void *key, uint32_t hash, uint64_t value);

#endif
