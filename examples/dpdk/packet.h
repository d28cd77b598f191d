/* From a frame to the key of its flow. */

#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include <nuthatch_flow.h>

struct rte_mbuf;

/* What makes two packets one flow: the five-tuple, filled up with zeros to whole words and without
 * padding, so that a key can be hashed and compared as bytes. */
struct flow_key {
    nuthatch_flow_tuple tuple;
    uint8_t zero[2];
};

#define KEY_WORDS 5

_Static_assert(sizeof(struct flow_key) == KEY_WORDS * sizeof(uint64_t), "a key has no padding");

/* Reads the key of an IPv4 or IPv6 packet, behind any number of VLAN tags in its first segment.
 * Ports are zero where there are none to be trusted: protocols without ports, and fragments. Of
 * IPv6 the protocol is the one behind the extension headers that every router may skip. False if it
 * is neither, or is cut short: nothing is read beyond its first segment. */
bool packet_key(const struct rte_mbuf *packet, struct flow_key *key);

#endif
