/* Measures packets through one flow cache. */

#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include <nuthatch_flow.h>

#include "rules.h"
#include "subject.h"

/* The source of packets, and everything that they pass except for the cache. */
struct path {
    uint16_t port;
    /* Largest number of packets in a burst. */
    uint32_t burst;
    const nuthatch_flow_hasher *hasher;
    const struct rules *rules;
};

/* The results of a run. */
struct account {
    uint64_t packets;
    /* Packets whose rule the cache had. */
    uint64_t hits;
    /* Packets for which the cache had a rule that does not match: two flows with one tag. */
    uint64_t mistaken;
    /* Packets of IPv6. */
    uint64_t ipv6;
    /* Packets that are not IP, or truncated: not looked up. */
    uint64_t others;
    uint64_t actions[ACTIONS];
    /* Packets that match no rule; they are dropped, and nothing is inserted. */
    uint64_t unmatched;
    /* Ticks of the time-stamp counter for the bulk lookups, and for what follows them: verifying
     * hits, searching the rules and inserting. Of `timed` packets, without the bursts in which the
     * thread was interrupted. */
    uint64_t lookup_ticks, verdict_ticks, timed;
    /* Processor time of everything, in ticks. On a core without other work, as a poll loop should
     * have, this is the elapsed time. */
    uint64_t ticks;
};

/* Set by a signal handler: runs end early. */
extern volatile bool measure_stopped;

/* Receives bursts until `packets` have come, or none came for a second: a port at memory speed does
 * not pause. */
struct account measure(const struct path *path, struct subject *subject, uint64_t packets);

#endif
