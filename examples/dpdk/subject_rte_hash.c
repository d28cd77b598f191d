#include "subject.h"

#include <stdio.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_lcore.h>
#include <rte_random.h>

_Static_assert(BURST_MAX <= RTE_HASH_LOOKUP_BULK_MAX, "one call looks a burst up");

/* Tries to add a key to a full table, each after one more key left. */
#define TRIES 16

struct resident {
    struct flow_key key;
    hash_sig_t signature;
};

/* The table, and the keys in it: `count` of a ring of `room`, from the oldest on. */
struct bounded {
    struct rte_hash *hash;
    struct resident *resident;
    uint64_t room, count, oldest;
    enum eviction eviction;
};

static uint64_t lookup(struct subject *subject, const struct burst *burst, uint64_t *value)
{
    struct bounded *table = subject->table;
    const void *key[BURST_MAX];
    hash_sig_t signature[BURST_MAX];
    void *data[BURST_MAX];
    uint64_t hits = 0;
    for (unsigned i = 0; i < burst->count; i++) {
        key[i] = &burst->key[i];
        signature[i] = (hash_sig_t)burst->hash[i];
    }
    rte_hash_lookup_with_hash_bulk_data(table->hash, key, signature, burst->count, &hits, data);
    for (unsigned i = 0; i < burst->count; i++)
        value[i] = (uintptr_t)data[i];
    return hits;
}

static struct resident *resident(struct bounded *table, uint64_t from_oldest)
{
    const uint64_t at = table->oldest + from_oldest;
    return &table->resident[at < table->room ? at : at - table->room];
}

static void evict(struct bounded *table)
{
    struct resident *oldest = resident(table, 0);
    if (table->eviction == EVICT_RANDOM) {
        struct resident *victim = resident(table, rte_rand_max(table->count));
        const struct resident leaves = *victim;
        *victim = *oldest;
        *oldest = leaves;
    }
    rte_hash_del_key_with_hash(table->hash, &oldest->key, oldest->signature);
    table->oldest = table->oldest + 1 < table->room ? table->oldest + 1 : 0;
    table->count--;
}

static void insert(struct subject *subject, const struct burst *burst, unsigned at, uint64_t value)
{
    struct bounded *table = subject->table;
    const struct flow_key *key = &burst->key[at];
    const hash_sig_t signature = (hash_sig_t)burst->hash[at];
    void *data = (void *)(uintptr_t)value;
    /* A flow that came twice in a burst missed twice, and is there by now. */
    if (rte_hash_lookup_with_hash(table->hash, key, signature) >= 0)
        return;
    /* Adding fails before every place is taken, when no path of moves ends at a free one. */
    int tries = TRIES;
    while (table->count == table->room ||
           rte_hash_add_key_with_hash_data(table->hash, key, signature, data) != 0) {
        if (table->count == 0 || tries-- == 0)
            return;
        evict(table);
    }
    *resident(table, table->count++) = (struct resident){*key, signature};
}

static void destroy(struct subject *subject)
{
    struct bounded *table = subject->table;
    rte_hash_free(table->hash);
    free(table->resident);
    free(table);
}

bool subject_rte_hash(struct subject *subject, enum eviction eviction, uint64_t entries)
{
    const char *name = eviction == EVICT_RANDOM ? "rte_hash, random" : "rte_hash, oldest";
    const struct rte_hash_parameters parameters = {
        .name = name,
        .entries = (uint32_t)entries,
        .key_len = sizeof(struct flow_key),
        .socket_id = (int)rte_socket_id(),
    };
    struct bounded *table = calloc(1, sizeof(*table));
    struct resident *resident = calloc(entries, sizeof(*resident));
    struct rte_hash *hash = rte_hash_create(&parameters);
    if (table == NULL || resident == NULL || hash == NULL) {
        fprintf(stderr, "%s: %s\n", name, hash == NULL ? rte_strerror(rte_errno) : "no memory");
        rte_hash_free(hash);
        free(resident);
        free(table);
        return false;
    }
    *table = (struct bounded){hash, resident, entries, 0, 0, eviction};
    *subject = (struct subject){name, table, lookup, insert, destroy};
    return true;
}
