#define _GNU_SOURCE

#include "environment.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>

int environment_start(unsigned mebibytes, int huge_pages)
{
    char memory[16];
    snprintf(memory, sizeof(memory), "%u", mebibytes);
    char *word[] = {
        "nuthatch", "--no-pci", "--no-telemetry",
        "-m",       memory,     huge_pages ? "--in-memory" : "--no-huge",
        "--no-shconf", "--log-level=*:error",
    };
    /* DPDK binds the calling thread to one core. */
    cpu_set_t cores;
    const int kept = pthread_getaffinity_np(pthread_self(), sizeof(cores), &cores);
    const int taken = rte_eal_init(sizeof(word) / sizeof(word[0]), word);
    if (kept == 0)
        pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
    return taken;
}

const char *environment_error(void)
{
    return rte_strerror(rte_errno);
}
