/* The interface of all flow caches that are measured. */

#ifndef SUBJECT_H
#define SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

/* Largest number of packets in a burst: their hits fit one word. */
#define BURST_MAX 64

/* The keys of a burst and their hashes. */
struct burst {
    struct flow_key key[BURST_MAX];
    uint64_t hash[BURST_MAX];
    unsigned count;
};

/* A flow cache. All get the same hashes; values are rule numbers. */
struct subject {
    const char *name;
    /* The cache's own data; NULL for no cache at all. */
    void *table;
    /* Looks a burst up: returns a bit for each hit, and stores its value. */
    uint64_t (*lookup)(struct subject *subject, const struct burst *burst, uint64_t *value);
    /* Stores the rule of a packet of the burst that missed, or whose value was wrong. */
    void (*insert)(struct subject *subject, const struct burst *burst, unsigned at, uint64_t value);
    void (*destroy)(struct subject *subject);
};

/* No cache: every packet misses. */
void subject_none(struct subject *subject);

/* The designs of this library, in the order of the report. All are compared with the first one.
 * False if a table cannot be created, after a message on stderr. */
unsigned subject_nuthatch_designs(void);
bool subject_nuthatch(struct subject *subject, unsigned which, uint32_t entries);

/* The table that stores whole keys and compares them, like rte_hash. It hashes them itself. */
bool subject_nuthatch_exact(struct subject *subject, uint32_t entries);

/* DPDK's own hash table with as many entries and an eviction added: of the oldest key, or of a random
 * one. The first two evict when 15 of 16 entries are in use. */
bool subject_rte_hash_oldest(struct subject *subject, uint32_t entries);
bool subject_rte_hash_random(struct subject *subject, uint32_t entries);
bool subject_rte_hash_full(struct subject *subject, uint32_t entries);

#endif
