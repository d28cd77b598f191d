#include "bounded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_lcore.h>
#include <rte_random.h>

_Static_assert(BOUNDED_BULK_MAX == RTE_HASH_LOOKUP_BULK_MAX, "the bound is rte_hash's");

#define TRIES 16

struct resident {
    uint8_t key[BOUNDED_KEY_MAX];
    uint32_t hash;
};

/* The table, and the keys in it: `count` of a ring of `room`, from the oldest on. */
struct bounded {
    struct rte_hash *table;
    struct resident *ring;
    uint32_t key_size, room, count, oldest;
    enum bounded_eviction eviction;
};

struct bounded *bounded_create(const char *name, uint32_t entries, uint32_t room,
                               uint32_t key_size, enum bounded_eviction eviction)
{
    const struct rte_hash_parameters parameters = {
        .name = name,
        .entries = entries,
        .key_len = key_size,
        .socket_id = (int)rte_socket_id(),
    };
    if (key_size > BOUNDED_KEY_MAX || room > entries) {
        rte_errno = EINVAL;
        return NULL;
    }
    rte_errno = ENOMEM;
    struct bounded *bounded = malloc(sizeof(*bounded));
    struct resident *ring = malloc((size_t)room * sizeof(*ring));
    struct rte_hash *table = bounded && ring ? rte_hash_create(&parameters) : NULL;
    if (table == NULL) {
        free(ring);
        free(bounded);
        return NULL;
    }
    *bounded = (struct bounded){table, ring, key_size, room, 0, 0, eviction};
    return bounded;
}

void bounded_destroy(struct bounded *bounded)
{
    rte_hash_free(bounded->table);
    free(bounded->ring);
    free(bounded);
}

uint64_t bounded_lookup(const struct bounded *bounded, const void **key, uint32_t *hash,
                        uint32_t count, uint64_t *value)
{
    uint64_t hits = 0;
    void *data[BOUNDED_BULK_MAX];
    rte_hash_lookup_with_hash_bulk_data(bounded->table, key, hash, count, &hits, data);
    for (uint32_t i = 0; i < count; i++)
        value[i] = hits >> i & 1 ? (uintptr_t)data[i] : 0;
    return hits;
}

static struct resident *resident(struct bounded *bounded, uint32_t from_oldest)
{
    const uint64_t at = (uint64_t)bounded->oldest + from_oldest;
    return &bounded->ring[at < bounded->room ? at : at - bounded->room];
}

static void evict(struct bounded *bounded)
{
    struct resident *oldest = resident(bounded, 0);
    if (bounded->eviction == BOUNDED_RANDOM) {
        struct resident *victim = resident(bounded, (uint32_t)rte_rand_max(bounded->count));
        const struct resident leaves = *victim;
        *victim = *oldest;
        *oldest = leaves;
    }
    rte_hash_del_key_with_hash(bounded->table, oldest->key, oldest->hash);
    bounded->oldest = bounded->oldest + 1 < bounded->room ? bounded->oldest + 1 : 0;
    bounded->count--;
}

void bounded_insert(struct bounded *bounded, const void *key, uint32_t hash, uint64_t value)
{
    void *data = (void *)(uintptr_t)value;
    if (rte_hash_lookup_with_hash(bounded->table, key, hash) >= 0) {
        /* It has a place: adding it again changes its value, and needs no room. */
        rte_hash_add_key_with_hash_data(bounded->table, key, hash, data);
        return;
    }
    int tries = TRIES;
    while (bounded->count == bounded->room ||
           rte_hash_add_key_with_hash_data(bounded->table, key, hash, data) != 0) {
        if (bounded->count == 0 || tries-- == 0)
            return;
        evict(bounded);
    }
    struct resident *newest = resident(bounded, bounded->count++);
    memcpy(newest->key, key, bounded->key_size);
    newest->hash = hash;
}
