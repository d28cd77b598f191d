/* The command line's options, after the arguments for DPDK itself. */

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
    /* Rounds, and passes of the capture in each. Whole passes: a part of the capture has fewer flows
     * than all of it, and would hit more often. */
    uint32_t rounds, passes;
    /* Largest number of packets in a burst. */
    uint32_t burst;
};

/* False if an option is wrong, after a message on stderr. */
bool options_read(int count, char **word, struct options *options);

#endif
