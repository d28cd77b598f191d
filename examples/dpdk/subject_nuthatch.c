#include "subject.h"

#include <stdio.h>

#include <nuthatch_flow.h>

/* Two bytes of tag and two of value, as Open vSwitch's signature cache and the paper's table: the
 * rules check what it says. */
#define ENTRY NUTHATCH_FLOW_ENTRY_TAG16

static const struct {
    const char *name;
    nuthatch_flow_layout layout;
    nuthatch_flow_eviction eviction;
} designs[] = {
    {"4-way, random", NUTHATCH_FLOW_LAYOUT_FOUR_WAY, NUTHATCH_FLOW_EVICTION_RANDOM},
    {"4-way, PBLRU", NUTHATCH_FLOW_LAYOUT_FOUR_WAY, NUTHATCH_FLOW_EVICTION_PBLRU},
    {"8-way, random", NUTHATCH_FLOW_LAYOUT_EIGHT_WAY, NUTHATCH_FLOW_EVICTION_RANDOM},
    {"cuckoo-lite, random", NUTHATCH_FLOW_LAYOUT_CUCKOO_LITE, NUTHATCH_FLOW_EVICTION_RANDOM},
    {"cuckoo-lite, PBLRU", NUTHATCH_FLOW_LAYOUT_CUCKOO_LITE, NUTHATCH_FLOW_EVICTION_PBLRU},
    {"window, random", NUTHATCH_FLOW_LAYOUT_WINDOW, NUTHATCH_FLOW_EVICTION_RANDOM},
    {"2-4 BLP, random", NUTHATCH_FLOW_LAYOUT_BLP2X4, NUTHATCH_FLOW_EVICTION_RANDOM},
    {"2-4 BLP, PBLRU", NUTHATCH_FLOW_LAYOUT_BLP2X4, NUTHATCH_FLOW_EVICTION_PBLRU},
    {"2-8 BLP, PBLRU", NUTHATCH_FLOW_LAYOUT_BLP2X8, NUTHATCH_FLOW_EVICTION_PBLRU},
};

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

bool subject_nuthatch(struct subject *subject, unsigned design, uint32_t entries)
{
    nuthatch_flow_config config;
    nuthatch_flow_config_default(&config);
    config.entries = entries;
    config.entry = ENTRY;
    config.layout = designs[design].layout;
    config.eviction = designs[design].eviction;
    nuthatch_flow_table *table;
    const int status = nuthatch_flow_create(&config, &table);
    if (status < 0) {
        fprintf(stderr, "flow-packets: %s: %s\n", designs[design].name,
                nuthatch_flow_error_string(status));
        return false;
    }
    *subject = (struct subject){designs[design].name, table, lookup, insert, destroy};
    return true;
}
