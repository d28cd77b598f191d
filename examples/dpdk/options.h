/* What the command line asks for, behind the words for DPDK itself. */

#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    /* Entries of each flow cache. */
    uint32_t entries;
    /* Rules in the list behind it. */
    uint32_t rules;
    /* Packets of the capture, which the port keeps in buffers. */
    uint32_t packets;
    /* Passes of the capture through each cache before it is measured. */
    uint32_t warm_up;
    /* How often each cache has its turn, and passes a turn: a part of a capture has fewer flows
     * than all of it, and would hit more. */
    uint32_t rounds, passes;
    /* Packets in a burst. */
    uint32_t burst;
};

/* False if the words are not such options: stderr says what is. */
bool options_read(int count, char **word, struct options *options);

#endif
