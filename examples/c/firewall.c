/* A minimal program with a flow cache in front of a slow decision.
 *
 *     cc firewall.c $(pkg-config --cflags --libs nuthatch-flow) -o firewall && ./firewall */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <nuthatch_flow.h>

#define BURST 32

enum { DENY, ALLOW };

/* Stands for a search of rules that takes long. */
static uint64_t decide(const nuthatch_flow_tuple *packet)
{
    return packet->source[3] % 8 == 0 ? DENY : ALLOW;
}

/* Packet number `number` of a generated traffic of 1,000 connections to one web server. */
static nuthatch_flow_tuple receive(unsigned number)
{
    const unsigned client = number * 7919 % 1000;
    nuthatch_flow_tuple packet = {.version = 4, .protocol = 6};
    const uint8_t source[4] = {10, 0, (uint8_t)(client >> 8), (uint8_t)client};
    memcpy(packet.source, source, sizeof(source));
    memcpy(packet.destination, "\300\0\2\1", 4); /* 192.0.2.1 */
    memcpy(&packet.destination_port, "\001\273", 2); /* 443, in network byte order */
    memcpy(&packet.source_port, source + 2, 2);
    return packet;
}

int main(void)
{
    nuthatch_flow_config config;
    nuthatch_flow_config_default(&config);
    config.entries = 4096;
    nuthatch_flow_table *table;
    nuthatch_flow_hasher *hasher = NULL;
    int status = nuthatch_flow_create(&config, &table);
    if (status == 0)
        status = nuthatch_flow_hasher_create(nuthatch_flow_random_seed(), &hasher);
    if (status != 0) {
        fprintf(stderr, "firewall: %s\n", nuthatch_flow_error_string(status));
        return 1;
    }
    unsigned allowed = 0, decided = 0;
    for (unsigned number = 0; number < 100000; number += BURST) {
        nuthatch_flow_tuple packet[BURST];
        uint64_t hash[BURST], verdict[BURST], hits = 0;
        for (unsigned i = 0; i < BURST; i++)
            packet[i] = receive(number + i);
        nuthatch_flow_hash_tuples(hasher, packet, BURST, hash);
        /* One call looks the burst up; misses are decided and inserted. */
        nuthatch_flow_lookup_many(table, hash, BURST, verdict, &hits);
        for (unsigned i = 0; i < BURST; i++) {
            if (!(hits >> i & 1)) {
                verdict[i] = decide(&packet[i]);
                nuthatch_flow_insert(table, hash[i], verdict[i], NULL);
                decided++;
            }
            allowed += verdict[i] == ALLOW;
        }
    }
    nuthatch_flow_stats stats;
    nuthatch_flow_get_stats(table, &stats);
    printf("%u allowed, %u decided; %" PRIu64 " of %" PRIu64 " lookups hit\n", allowed,
           decided, stats.hits, stats.lookups);
    nuthatch_flow_hasher_destroy(hasher);
    nuthatch_flow_destroy(table);
    return 0;
}
