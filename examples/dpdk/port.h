/* One port, one receive queue. */

#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>

/* Opens and starts the first port that the command line made, with packet buffers for `packets` and
 * room for bursts besides. False if it cannot be: stderr says why. */
bool port_open(uint32_t packets, uint16_t *port);
void port_close(uint16_t port);

#endif
