/* From a frame to the key of its flow. */

#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;

/* What makes two packets one flow: 16 bytes without padding, all of them in network byte order, so
 * that a key can be hashed and compared as bytes. */
struct flow_key {
    uint32_t source;
    uint32_t destination;
    uint16_t source_port;
    uint16_t destination_port;
    uint8_t protocol;
    uint8_t zero[3];
};

_Static_assert(sizeof(struct flow_key) == 16, "a key has no padding");

/* Reads the key of an IPv4 packet, behind any number of VLAN tags in its first segment. Ports are
 * zero where there are none to be trusted: protocols without ports, and fragments. False if it is
 * no IPv4 packet, or is cut short: nothing is read beyond its first segment. */
bool packet_key(const struct rte_mbuf *packet, struct flow_key *key);

#endif
