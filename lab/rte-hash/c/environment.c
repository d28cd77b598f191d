#define _GNU_SOURCE

#include "environment.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>

/* No devices, nothing that listens, and silence. */
#define WORDS "--no-pci", "--no-telemetry", "--log-level=*:error"
#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

int environment_start(unsigned mebibytes, int huge_pages)
{
    char memory[16];
    snprintf(memory, sizeof(memory), "%u", mebibytes);
    /* Huge pages are taken one by one, as tables need them; other memory all at once, untouched. */
    char *on_huge_pages[] = {"nuthatch", WORDS, "--in-memory"};
    char *elsewhere[] = {"nuthatch", WORDS, "--no-huge", "--no-shconf", "-m", memory};
    char **word = huge_pages ? on_huge_pages : elsewhere;
    const int words = huge_pages ? COUNT(on_huge_pages) : COUNT(elsewhere);
    /* DPDK binds the calling thread to one core. */
    cpu_set_t cores;
    const int kept = pthread_getaffinity_np(pthread_self(), sizeof(cores), &cores);
    const int taken = rte_eal_init(words, word);
    if (kept == 0)
        pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
    return taken;
}

const char *environment_error(void)
{
    return rte_strerror(rte_errno);
}
