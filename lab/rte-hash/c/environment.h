/* DPDK's environment in a program that is not made for it. */

#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

/* Starts it, once a process, without devices, files or other processes: on huge pages, or with
 * `mebibytes` of other memory. Negative if it does not start. The calling thread is one of DPDK's
 * from then on, and keeps its choice of cores. */
int environment_start(unsigned mebibytes, int huge_pages);

/* Why the last call of DPDK failed; never NULL. */
const char *environment_error(void);

#endif
