/* What is measured: a flow cache, in front of the rules. */

#ifndef SUBJECT_H
#define SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

/* Packets in a burst at most, so that a burst's hits fit one word. */
#define BURST_MAX 64

/* A burst's keys and their hashes, side by side. */
struct burst {
    struct flow_key key[BURST_MAX];
    uint64_t hash[BURST_MAX];
    unsigned count;
};

/* A flow cache. They get the same hashes, made outside; values are rule numbers. */
struct subject {
    const char *name;
    /* What the next two work on; NULL for no cache at all. */
    void *table;
    /* Looks a whole burst up: a bit for each hit, and its value. */
    uint64_t (*lookup)(struct subject *subject, const struct burst *burst, uint64_t *value);
    /* Remembers a rule for a packet of the burst that missed, or whose value was wrong. */
    void (*insert)(struct subject *subject, const struct burst *burst, unsigned at, uint64_t value);
    void (*destroy)(struct subject *subject);
};

/* No cache: every packet misses. */
void subject_none(struct subject *subject);

/* The designs of this library, in the order they are measured. The first is what others are
 * compared with. False if a table cannot be had: stderr says why. */
unsigned subject_nuthatch_designs(void);
bool subject_nuthatch(struct subject *subject, unsigned which, uint32_t entries);

/* The one that keeps whole keys and compares them, as rte_hash does. It hashes for itself. */
bool subject_nuthatch_exact(struct subject *subject, uint32_t entries);

/* DPDK's own hash table with as many places, and an eviction put beside it: the key that leaves is
 * the oldest, or a random one. The first two evict when 15 of 16 places are taken. */
bool subject_rte_hash_oldest(struct subject *subject, uint32_t entries);
bool subject_rte_hash_random(struct subject *subject, uint32_t entries);
bool subject_rte_hash_full(struct subject *subject, uint32_t entries);

#endif
