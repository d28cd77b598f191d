#include "measure.h"

#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

volatile bool measure_stopped;

/* A burst that took longer than at this rate was interrupted by another thread. */
#define BURSTS_A_SECOND 1000

/* The keys of a burst of packets and their hashes. */
static void read_keys(struct rte_mbuf **packet, unsigned count, const nuthatch_flow_hasher *hasher,
                      struct burst *burst, struct account *account)
{
    burst->count = 0;
    for (unsigned i = 0; i < count; i++) {
        struct flow_key *key = &burst->key[burst->count];
        if (packet_key(packet[i], key)) {
            burst->count++;
            account->ipv6 += key->tuple.version == 6;
        } else
            account->others++;
    }
    nuthatch_flow_hash_keys(hasher, burst->key, sizeof(burst->key[0]), burst->count, burst->hash);
}

/* The rule for one packet: the cache's, if it matches, or else the one that the list has. */
static uint32_t judge(struct subject *subject, const struct rules *rules, const struct burst *burst,
                      unsigned at, bool hit, uint64_t value, struct account *account)
{
    const struct flow_key *key = &burst->key[at];
    if (hit && value < rules->count && rule_matches(&rules->rule[value], key)) {
        account->hits++;
        return (uint32_t)value;
    }
    account->mistaken += hit;
    const uint32_t rule = rules_search(rules, key);
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
    const uint64_t ended = rte_rdtsc();
    if (ended - began < rte_get_tsc_hz() / BURSTS_A_SECOND) {
        account->lookup_ticks += looked_up - began;
        account->verdict_ticks += ended - looked_up;
        account->timed += burst->count;
    }
}

/* The processor time of this thread, in ticks. */
static uint64_t processor_ticks(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    const double seconds = (double)used.tv_sec + (double)used.tv_nsec / 1e9;
    return (uint64_t)(seconds * (double)rte_get_tsc_hz());
}

struct account measure(const struct path *path, struct subject *subject, uint64_t packets)
{
    struct account account = {0};
    struct rte_mbuf *packet[BURST_MAX];
    struct burst burst;
    const uint64_t second = rte_get_tsc_hz(), used = processor_ticks();
    uint64_t now = rte_rdtsc(), last_packet = now;
    while (!measure_stopped && account.packets < packets && now - last_packet < second) {
        const unsigned count = rte_eth_rx_burst(path->port, 0, packet, (uint16_t)path->burst);
        read_keys(packet, count, path->hasher, &burst, &account);
        handle(subject, path->rules, &burst, &account);
        rte_pktmbuf_free_bulk(packet, count);
        account.packets += count;
        now = rte_rdtsc();
        if (count > 0)
            last_packet = now;
    }
    account.ticks = processor_ticks() - used;
    return account;
}
