#include "measure.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <nuthatch_flow.h>

volatile bool measure_stopped;

/* One hash function for every cache. Its seed is fixed, so that runs can be compared; a switch draws
 * one at random, so that nobody can choose flows that collide. */
static const uint64_t seed = 1;

/* The keys of a burst of packets and their hashes. */
static void read_keys(struct rte_mbuf **packet, unsigned count, struct burst *burst,
                      struct account *account)
{
    burst->count = 0;
    for (unsigned i = 0; i < count; i++)
        if (packet_key(packet[i], &burst->key[burst->count]))
            burst->count++;
        else
            account->others++;
    nuthatch_flow_hash_many(seed, burst->key, sizeof(burst->key[0]), burst->count, burst->hash);
}

/* The verdict for one packet: the rule that the cache named, if it matches, or else the list's. */
static uint32_t judge(struct subject *subject, const struct rules *rules, const struct burst *burst,
                      unsigned at, bool hit, uint64_t value, struct account *account)
{
    const struct flow_key *key = &burst->key[at];
    if (hit && value < rules->count && rule_matches(&rules->rule[value], key)) {
        account->hits++;
        return (uint32_t)value;
    }
    account->mistaken += hit;
    const uint32_t rule = rules_walk(rules, key);
    if (rule != RULE_NONE)
        subject->insert(subject, burst, at, rule);
    return rule;
}

static void handle(struct subject *subject, const struct rules *rules, const struct burst *burst,
                   struct account *account)
{
    uint64_t value[BURST_MAX];
    const uint64_t began = rte_rdtsc();
    const uint64_t hits = subject->lookup(subject, burst, value);
    const uint64_t looked_up = rte_rdtsc();
    for (unsigned i = 0; i < burst->count; i++) {
        const uint32_t rule =
            judge(subject, rules, burst, i, hits >> i & 1, value[i], account);
        if (rule == RULE_NONE)
            account->unmatched++;
        else
            account->actions[rules->rule[rule].action]++;
    }
    account->lookup_ticks += looked_up - began;
    account->verdict_ticks += rte_rdtsc() - looked_up;
}

struct account measure(uint16_t port, struct subject *subject, const struct rules *rules,
                       unsigned burst_size, uint64_t packets, uint64_t ticks)
{
    struct account account = {0};
    struct rte_mbuf *packet[BURST_MAX];
    struct burst burst;
    const uint64_t began = rte_rdtsc(), second = rte_get_tsc_hz();
    uint64_t now = began, last_packet = began;
    while (!measure_stopped && account.packets < packets && now - began < ticks &&
           now - last_packet < second) {
        const unsigned count = rte_eth_rx_burst(port, 0, packet, (uint16_t)burst_size);
        read_keys(packet, count, &burst, &account);
        handle(subject, rules, &burst, &account);
        rte_pktmbuf_free_bulk(packet, count);
        account.packets += count;
        now = rte_rdtsc();
        if (count > 0)
            last_packet = now;
    }
    account.ticks = now - began;
    return account;
}
