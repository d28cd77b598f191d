/* A flow cache in a packet loop: bursts of 0 to 32 packets, whose 32-bit hashes a network card stored
 * in the packets' metadata. A design may be named on the command line.
 *
 *     cc burst.c $(pkg-config --cflags --libs nuthatch-flow) -o burst && ./burst cuckoo-lite random
 *
 * Compiles without a warning by -O2 -Wall -Wextra: no array is cleared for the compiler's sake. */

#include <inttypes.h>
#include <stdio.h>

#include <nuthatch_flow.h>

#define BURST 32
#define CLIENTS 3000
#define RULES 8

struct packet {
    uint16_t length;
    uint16_t port;
    uint32_t client;
    /* From the card; 0 for what it does not hash, such as ARP. */
    uint32_t hash;
};

struct counts {
    unsigned packets, classified, wrong, by_rule[RULES];
};

/* A made-up burst; its length is only known at run time. */
static unsigned receive(unsigned number, struct packet *packet)
{
    const unsigned count = number * 7 % (BURST + 1);
    for (unsigned i = 0; i < count; i++) {
        const uint32_t client = (number * 31 + i) * 7919u % CLIENTS;
        packet[i] = (struct packet){
            .length = 64,
            .port = (uint16_t)(client % 5 == 0 ? 22 : 443),
            .client = client,
            .hash = client % 50 == 0 ? 0 : client * 0x9e3779b9u,
        };
    }
    return count;
}

/* The rule that a packet matches. Stands for a search that takes long. */
static uint64_t classify(const struct packet *packet)
{
    return (packet->client ^ packet->port) % RULES;
}

/* What is done with a packet after the lookup. The cache compares a part of the hash only, so its rule
 * is verified. Inserting the right one replaces an entry that was wrong. */
static void handle(nuthatch_flow_table *table, const struct packet *packet, int hit, uint64_t rule,
                   struct counts *counts)
{
    if (!hit || rule != classify(packet)) {
        counts->wrong += hit != 0;
        counts->classified++;
        rule = classify(packet);
        nuthatch_flow_insert(table, nuthatch_flow_widen(packet->hash), rule, NULL);
    }
    counts->packets++;
    counts->by_rule[rule]++;
}

/* All packets of a burst: the hashes are read from where they are. */
static int handle_all(nuthatch_flow_table *table, const struct packet *packet, unsigned count,
                      struct counts *counts)
{
    uint64_t rule[BURST], hits;
    const int64_t found = nuthatch_flow_lookup_strided(table, &packet[0].hash, sizeof(packet[0]),
                                                       count, rule, &hits);
    if (found < 0)
        return (int)found;
    for (unsigned i = 0; i < count; i++)
        handle(table, &packet[i], hits >> i & 1, rule[i], counts);
    return 0;
}

/* Only the packets with a hash: these are gathered first, and may be none. */
static int handle_hashed(nuthatch_flow_table *table, const struct packet *packet, unsigned count,
                         struct counts *counts)
{
    uint64_t hash[BURST], rule[BURST], hits;
    unsigned index[BURST], hashed = 0;
    for (unsigned i = 0; i < count; i++)
        if (packet[i].hash != 0) {
            hash[hashed] = nuthatch_flow_widen(packet[i].hash);
            index[hashed++] = i;
        }
    const int64_t found = nuthatch_flow_lookup_many(table, hash, hashed, rule, &hits);
    if (found < 0)
        return (int)found;
    for (unsigned i = 0; i < hashed; i++)
        handle(table, &packet[index[i]], hits >> i & 1, rule[i], counts);
    return 0;
}

/* Two buffers: the cache lines of the next burst are fetched while this one is handled. */
static int run(nuthatch_flow_table *table, unsigned bursts, struct counts *counts)
{
    struct packet packet[2][BURST];
    unsigned count[2] = {receive(0, packet[0])};
    int status = 0;
    for (unsigned number = 0; number < bursts && status == 0; number++) {
        const unsigned now = number % 2, next = 1 - now;
        count[next] = receive(number + 1, packet[next]);
        nuthatch_flow_prefetch_strided(table, &packet[next][0].hash, sizeof(packet[next][0]),
                                       count[next]);
        status = (number / 2 % 2 == 0 ? handle_all : handle_hashed)(table, packet[now], count[now],
                                                                   counts);
    }
    return status;
}

static int fail(const char *what, int status)
{
    fprintf(stderr, "burst: %s: %s\n", what, nuthatch_flow_error_string(status));
    return 1;
}

int main(int words, char **word)
{
    nuthatch_flow_config config;
    nuthatch_flow_table *table;
    nuthatch_flow_stats stats;
    struct counts counts = {0};
    nuthatch_flow_config_default(&config);
    config.entries = 2048;
    int status = words > 1 ? nuthatch_flow_layout_from_name(word[1], &config.layout) : 0;
    if (status < 0)
        return fail(word[1], status);
    status = words > 2 ? nuthatch_flow_eviction_from_name(word[2], &config.eviction) : 0;
    if (status < 0)
        return fail(word[2], status);
    status = nuthatch_flow_create(&config, &table);
    if (status < 0)
        return fail("no table", status);
    status = run(table, 20000, &counts);
    nuthatch_flow_get_stats(table, &stats);
    nuthatch_flow_destroy(table);
    if (status < 0)
        return fail("lookup", status);
    printf("%s, %s: %u packets, %u classified; %" PRIu64 " of %" PRIu64 " lookups hit, %u wrong\n",
           nuthatch_flow_layout_name(config.layout), nuthatch_flow_eviction_name(config.eviction),
           counts.packets, counts.classified, stats.hits, stats.lookups, counts.wrong);
    return 0;
}
