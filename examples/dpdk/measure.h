/* Packets through one flow cache, with a clock in hand. */

#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include <nuthatch_flow.h>

#include "rules.h"
#include "subject.h"

/* What packets come from and go through, but for the cache. */
struct path {
    uint16_t port;
    /* Packets in a burst at most. */
    uint32_t burst;
    const nuthatch_flow_hasher *hasher;
    const struct rules *rules;
};

/* What a run of packets came to. */
struct account {
    uint64_t packets;
    /* Packets that the cache answered, and rightly. */
    uint64_t hits;
    /* Packets for which it named a rule that does not match: two flows that look alike to it. */
    uint64_t mistaken;
    /* Packets of IPv6. */
    uint64_t ipv6;
    /* Packets that are no IP, or cut short: let go without a look. */
    uint64_t others;
    uint64_t actions[ACTIONS];
    /* Packets that match no rule; they are not remembered, and dropped. */
    uint64_t unmatched;
    /* Ticks of the time-stamp counter for the bulk lookups, and for what follows them: checking
     * hits, walking the rules and remembering what missed. Of `timed` packets: bursts are left out
     * in which the thread was interrupted. */
    uint64_t lookup_ticks, verdict_ticks, timed;
    /* Ticks' worth of processor time for everything. On a core that does nothing else, as a poll
     * loop should have, it is all of the time. */
    uint64_t ticks;
};

/* Set by a signal: runs end early. */
extern volatile bool measure_stopped;

/* Takes bursts from a port until `packets` came, or until none came for a second: a port at memory
 * speed does not pause. */
struct account measure(const struct path *path, struct subject *subject, uint64_t packets);

#endif
