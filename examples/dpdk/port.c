#include "port.h"

#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

/* A replayed capture stays in buffers, one for each packet; the driver splits longer frames. */
#define FRAME_ROOM 128
#define BUFFERS_SPARE 8192
#define BUFFERS_CACHED 256
#define DESCRIPTORS 512

static bool start(uint16_t port, struct rte_mempool *pool)
{
    const struct rte_eth_conf conf = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
    int error = rte_eth_dev_configure(port, 1, 1, &conf);
    if (error == 0)
        error = rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, rte_socket_id(), NULL, pool);
    if (error == 0)
        error = rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, rte_socket_id(), NULL);
    if (error == 0)
        error = rte_eth_dev_start(port);
    if (error != 0)
        fprintf(stderr, "flow-packets: port %u: %s\n", port, strerror(-error));
    return error == 0;
}

bool port_open(uint32_t packets, uint16_t *port)
{
    *port = (uint16_t)rte_eth_find_next(0);
    if (*port >= RTE_MAX_ETHPORTS) {
        fprintf(stderr, "flow-packets: no port; make one with --vdev\n");
        return false;
    }
    struct rte_mempool *pool =
        rte_pktmbuf_pool_create("packets", packets + BUFFERS_SPARE, BUFFERS_CACHED, 0,
                                RTE_PKTMBUF_HEADROOM + FRAME_ROOM, (int)rte_socket_id());
    if (pool == NULL) {
        fprintf(stderr, "flow-packets: buffers for %u packets: %s\n", packets,
                rte_strerror(rte_errno));
        return false;
    }
    return start(*port, pool);
}

void port_close(uint16_t port)
{
    rte_eth_dev_stop(port);
    rte_eth_dev_close(port);
}
