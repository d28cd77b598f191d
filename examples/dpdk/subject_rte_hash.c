#include "subject.h"

#include <stdio.h>

#include <rte_errno.h>

#include "bounded.h"

_Static_assert(BURST_MAX <= BOUNDED_BULK_MAX, "one call looks a burst up");

static uint64_t lookup(struct subject *subject, const struct burst *burst, uint64_t *value)
{
    const void *key[BURST_MAX];
    uint32_t hash[BURST_MAX];
    for (unsigned i = 0; i < burst->count; i++) {
        key[i] = &burst->key[i];
        hash[i] = (uint32_t)burst->hash[i];
    }
    return bounded_lookup(subject->table, key, hash, burst->count, value);
}

static void insert(struct subject *subject, const struct burst *burst, unsigned at, uint64_t value)
{
    bounded_insert(subject->table, &burst->key[at], (uint32_t)burst->hash[at], value);
}

static void destroy(struct subject *subject)
{
    bounded_destroy(subject->table);
}

/* A completely full cuckoo table searches long for a place of each new key: some entries stay free. */
static uint32_t filled_part(uint32_t entries)
{
    return entries - entries / 16;
}

static bool make(struct subject *subject, const char *name, uint32_t entries, uint32_t room,
                 enum bounded_eviction eviction)
{
    void *table = bounded_create(name, entries, room, sizeof(struct flow_key), eviction);
    if (table == NULL)
        fprintf(stderr, "flow-packets: %s: %s\n", name, rte_strerror(rte_errno));
    else
        *subject = (struct subject){name, table, lookup, insert, destroy};
    return table != NULL;
}

bool subject_rte_hash_oldest(struct subject *subject, uint32_t entries)
{
    return make(subject, "rte_hash, oldest", entries, filled_part(entries), BOUNDED_OLDEST);
}

bool subject_rte_hash_random(struct subject *subject, uint32_t entries)
{
    return make(subject, "rte_hash, random", entries, filled_part(entries), BOUNDED_RANDOM);
}

bool subject_rte_hash_full(struct subject *subject, uint32_t entries)
{
    return make(subject, "rte_hash full, random", entries, entries, BOUNDED_RANDOM);
}
