/* One port, one receive queue. */

#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>

/* Opens and starts the first port of the command line, with buffers for `packets` packets and for
 * bursts. False if that fails, after a message on stderr. */
bool port_open(uint32_t packets, uint16_t *port);
void port_close(uint16_t port);

#endif
