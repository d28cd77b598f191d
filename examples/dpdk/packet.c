#include "packet.h"

#include <netinet/in.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

/* Where the network layer begins; false if the frame ends before it, or it is not IPv4. */
static bool network_offset(const struct rte_mbuf *packet, uint32_t *offset)
{
    const uint32_t length = rte_pktmbuf_data_len(packet);
    if (length < sizeof(struct rte_ether_hdr))
        return false;
    uint32_t at = sizeof(struct rte_ether_hdr);
    uint16_t type = rte_pktmbuf_mtod(packet, const struct rte_ether_hdr *)->ether_type;
    while (type == RTE_BE16(RTE_ETHER_TYPE_VLAN) || type == RTE_BE16(RTE_ETHER_TYPE_QINQ)) {
        if (length - at < sizeof(struct rte_vlan_hdr))
            return false;
        type = rte_pktmbuf_mtod_offset(packet, const struct rte_vlan_hdr *, at)->eth_proto;
        at += sizeof(struct rte_vlan_hdr);
    }
    *offset = at;
    return type == RTE_BE16(RTE_ETHER_TYPE_IPV4);
}

bool packet_key(const struct rte_mbuf *packet, struct flow_key *key)
{
    uint32_t at;
    if (!network_offset(packet, &at))
        return false;
    const uint32_t length = rte_pktmbuf_data_len(packet);
    if (length - at < sizeof(struct rte_ipv4_hdr))
        return false;
    const struct rte_ipv4_hdr *ip =
        rte_pktmbuf_mtod_offset(packet, const struct rte_ipv4_hdr *, at);
    const uint32_t header = rte_ipv4_hdr_len(ip);
    if (ip->version != 4 || header < sizeof(struct rte_ipv4_hdr))
        return false;
    *key = (struct flow_key){
        .source = ip->src_addr,
        .destination = ip->dst_addr,
        .protocol = ip->next_proto_id,
    };
    /* Only the first fragment has ports: all go without, so that they stay together. */
    const uint16_t fragment = RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK);
    const bool ports = ip->next_proto_id == IPPROTO_TCP || ip->next_proto_id == IPPROTO_UDP;
    if (!ports || (ip->fragment_offset & fragment) != 0)
        return true;
    if (length - at < header + 2 * sizeof(uint16_t))
        return false;
    const uint16_t *port = rte_pktmbuf_mtod_offset(packet, const uint16_t *, at + header);
    key->source_port = port[0];
    key->destination_port = port[1];
    return true;
}
