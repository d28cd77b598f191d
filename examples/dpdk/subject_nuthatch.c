#include "subject.h"

#include <stdio.h>

#include <nuthatch_flow.h>

/* Two bytes of tag and two of value, as in Open vSwitch's signature cache and the paper's table: the
 * rules verify hits. */
#define ENTRY NUTHATCH_FLOW_ENTRY_TAG16

/* Where PBLRU inserts a new flow; random eviction does not use this. */
#define LAST NUTHATCH_FLOW_INSERT_AT_LAST
#define SECOND_TO_LAST NUTHATCH_FLOW_INSERT_AT_SECOND_TO_LAST

static const struct design {
    const char *name;
    nuthatch_flow_layout layout;
    nuthatch_flow_eviction eviction;
    nuthatch_flow_insert_at insert_at;
} designs[] = {
    {"4-way, random", NUTHATCH_FLOW_LAYOUT_FOUR_WAY, NUTHATCH_FLOW_EVICTION_RANDOM, LAST},
    {"4-way, PBLRU", NUTHATCH_FLOW_LAYOUT_FOUR_WAY, NUTHATCH_FLOW_EVICTION_PBLRU, LAST},
    {"8-way, random", NUTHATCH_FLOW_LAYOUT_EIGHT_WAY, NUTHATCH_FLOW_EVICTION_RANDOM, LAST},
    {"cuckoo-lite, random", NUTHATCH_FLOW_LAYOUT_CUCKOO_LITE, NUTHATCH_FLOW_EVICTION_RANDOM, LAST},
    {"cuckoo-lite, PBLRU", NUTHATCH_FLOW_LAYOUT_CUCKOO_LITE, NUTHATCH_FLOW_EVICTION_PBLRU, LAST},
    {"window, random", NUTHATCH_FLOW_LAYOUT_WINDOW, NUTHATCH_FLOW_EVICTION_RANDOM, LAST},
    {"2-4 BLP, random", NUTHATCH_FLOW_LAYOUT_BLP2X4, NUTHATCH_FLOW_EVICTION_RANDOM, LAST},
    {"2-4 BLP, PBLRU", NUTHATCH_FLOW_LAYOUT_BLP2X4, NUTHATCH_FLOW_EVICTION_PBLRU, LAST},
    /* As in the code of its authors. */
    {"2-4 BLP, PBLRU 2nd last", NUTHATCH_FLOW_LAYOUT_BLP2X4, NUTHATCH_FLOW_EVICTION_PBLRU,
     SECOND_TO_LAST},
    {"2-8 BLP, PBLRU", NUTHATCH_FLOW_LAYOUT_BLP2X8, NUTHATCH_FLOW_EVICTION_PBLRU, LAST},
};

/* The same random choices in every run, so that runs can be compared. */
static nuthatch_flow_config config_of(uint32_t entries)
{
    nuthatch_flow_config config;
    nuthatch_flow_config_default(&config);
    config.entries = entries;
    config.seed = 1;
    return config;
}

static uint64_t lookup(struct subject *subject, const struct burst *burst, uint64_t *value)
{
    uint64_t hits = 0;
    nuthatch_flow_lookup_many(subject->table, burst->hash, burst->count, value, &hits);
    return hits;
}

static void insert(struct subject *subject, const struct burst *burst, unsigned at, uint64_t value)
{
    nuthatch_flow_insert(subject->table, burst->hash[at], value, NULL);
}

static void destroy(struct subject *subject)
{
    nuthatch_flow_destroy(subject->table);
}

unsigned subject_nuthatch_designs(void)
{
    return sizeof(designs) / sizeof(designs[0]);
}

static bool made(const char *name, int status)
{
    if (status < 0)
        fprintf(stderr, "flow-packets: %s: %s\n", name, nuthatch_flow_error_string(status));
    return status >= 0;
}

bool subject_nuthatch(struct subject *subject, unsigned which, uint32_t entries)
{
    const struct design *design = &designs[which];
    nuthatch_flow_config config = config_of(entries);
    nuthatch_flow_table *table;
    config.entry = ENTRY;
    config.layout = design->layout;
    config.eviction = design->eviction;
    config.insert_at = design->insert_at;
    if (!made(design->name, nuthatch_flow_create(&config, &table)))
        return false;
    *subject = (struct subject){design->name, table, lookup, insert, destroy};
    return true;
}

static uint64_t exact_lookup(struct subject *subject, const struct burst *burst, uint64_t *value)
{
    nuthatch_flow_tuple tuple[BURST_MAX];
    uint64_t hits = 0;
    for (unsigned i = 0; i < burst->count; i++)
        tuple[i] = burst->key[i].tuple;
    nuthatch_flow_exact_lookup_many(subject->table, tuple, burst->count, value, &hits);
    return hits;
}

static void exact_insert(struct subject *subject, const struct burst *burst, unsigned at,
                         uint64_t value)
{
    nuthatch_flow_exact_insert(subject->table, &burst->key[at].tuple, value, NULL);
}

static void exact_destroy(struct subject *subject)
{
    nuthatch_flow_exact_destroy(subject->table);
}

bool subject_nuthatch_exact(struct subject *subject, uint32_t entries)
{
    const char *name = "exact 2-4 BLP, PBLRU";
    const nuthatch_flow_config config = config_of(entries);
    nuthatch_flow_exact *table;
    if (!made(name, nuthatch_flow_exact_create(&config, 1, &table)))
        return false;
    *subject = (struct subject){name, table, exact_lookup, exact_insert, exact_destroy};
    return true;
}
