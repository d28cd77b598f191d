#include "packet.h"

#include <string.h>

#include <netinet/in.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

/* Largest number of extension headers of an IPv6 packet that are followed; real packets have fewer. */
#define EXTENSIONS_MAX 8

/* The part of a frame that is not parsed yet. */
struct rest {
    const uint8_t *at;
    uint32_t length;
};

/* The next `size` bytes, which are consumed; NULL if the frame is too short. */
static const void *take(struct rest *rest, uint32_t size)
{
    if (rest->length < size)
        return NULL;
    const void *taken = rest->at;
    rest->at += size;
    rest->length -= size;
    return taken;
}

/* The EtherType after the Ethernet header and all VLAN tags, in network byte order; 0, which is no
 * type, if the frame is too short. */
static uint16_t take_link(struct rest *rest)
{
    const struct rte_ether_hdr *ether = take(rest, sizeof(*ether));
    uint16_t type = ether == NULL ? 0 : ether->ether_type;
    while (type == RTE_BE16(RTE_ETHER_TYPE_VLAN) || type == RTE_BE16(RTE_ETHER_TYPE_QINQ)) {
        const struct rte_vlan_hdr *vlan = take(rest, sizeof(*vlan));
        type = vlan == NULL ? 0 : vlan->eth_proto;
    }
    return type;
}

/* The addresses and the protocol of an IPv4 header; sets `fragment`. */
static bool take_ipv4(struct rest *rest, nuthatch_flow_tuple *tuple, bool *fragment)
{
    const struct rte_ipv4_hdr *ip = take(rest, sizeof(*ip));
    if (ip == NULL || ip->version != 4 || rte_ipv4_hdr_len(ip) < sizeof(*ip) ||
        take(rest, rte_ipv4_hdr_len(ip) - (uint32_t)sizeof(*ip)) == NULL)
        return false;
    memcpy(tuple->source, &ip->src_addr, sizeof(ip->src_addr));
    memcpy(tuple->destination, &ip->dst_addr, sizeof(ip->dst_addr));
    tuple->version = 4;
    tuple->protocol = ip->next_proto_id;
    *fragment = (ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK));
    return true;
}

/* The same of an IPv6 header and its extensions. */
static bool take_ipv6(struct rest *rest, nuthatch_flow_tuple *tuple, bool *fragment)
{
    const struct rte_ipv6_hdr *ip = take(rest, sizeof(*ip));
    if (ip == NULL || (ip->vtc_flow & RTE_BE32(0xf0000000)) != RTE_BE32(0x60000000))
        return false;
    memcpy(tuple->source, ip->src_addr, sizeof(ip->src_addr));
    memcpy(tuple->destination, ip->dst_addr, sizeof(ip->dst_addr));
    tuple->version = 6;
    uint8_t next = ip->proto;
    /* Later fragments have no further headers: the chain ends at the fragment header. */
    for (int passed = 0; next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING ||
                         next == IPPROTO_DSTOPTS || next == IPPROTO_FRAGMENT;
         passed++) {
        const uint8_t *extension = take(rest, 8);
        if (extension == NULL || passed == EXTENSIONS_MAX)
            return false;
        *fragment = next == IPPROTO_FRAGMENT;
        next = extension[0];
        if (*fragment)
            break;
        if (take(rest, 8 * (uint32_t)extension[1]) == NULL)
            return false;
    }
    tuple->protocol = next;
    return true;
}

bool packet_key(const struct rte_mbuf *packet, struct flow_key *key)
{
    struct rest rest = {rte_pktmbuf_mtod(packet, const uint8_t *), rte_pktmbuf_data_len(packet)};
    nuthatch_flow_tuple *tuple = &key->tuple;
    bool fragment = false;
    memset(key, 0, sizeof(*key));
    const uint16_t type = take_link(&rest);
    if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
        if (!take_ipv4(&rest, tuple, &fragment))
            return false;
    } else if (type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || !take_ipv6(&rest, tuple, &fragment))
        return false;
    /* Only the first fragment has ports: they are ignored, so that all fragments are one flow. */
    if (fragment || (tuple->protocol != IPPROTO_TCP && tuple->protocol != IPPROTO_UDP))
        return true;
    const uint16_t *port = take(&rest, 2 * sizeof(*port));
    if (port == NULL)
        return false;
    tuple->source_port = port[0];
    tuple->destination_port = port[1];
    return true;
}
