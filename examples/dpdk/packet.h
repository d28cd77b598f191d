/* Parses the key of a packet's flow. */

#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include <nuthatch_flow.h>

struct rte_mbuf;

/* The key of a flow: the five-tuple, extended by zeros to whole words and without padding, so that it
 * can be hashed and compared as bytes. */
struct flow_key {
    nuthatch_flow_tuple tuple;
    uint8_t zero[2];
};

#define KEY_WORDS 5

_Static_assert(sizeof(struct flow_key) == KEY_WORDS * sizeof(uint64_t), "a key has no padding");

/* Parses the key of an IPv4 or IPv6 packet, after any number of VLAN tags. Ports are zero for
 * protocols without ports, and for fragments. The protocol of IPv6 is the one after hop-by-hop
 * options, routing, destination options and fragment headers. False if the packet is neither, or is
 * truncated: nothing is read beyond its first segment. */
bool packet_key(const struct rte_mbuf *packet, struct flow_key *key);

#endif
