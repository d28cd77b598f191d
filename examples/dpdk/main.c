/* A packet program that compares flow caches: it receives bursts from a port, parses each packet's
 * flow, looks the burst up with one call, searches a list of rules for each miss, and counts the
 * actions. All caches get the same packets, hashes and rules, one after the other.
 *
 *     flow-packets --no-pci --vdev net_pcap0,rx_pcap=FILE,infinite_rx=1 -- [options] */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>

#include "measure.h"
#include "options.h"
#include "port.h"
#include "report.h"
#include "subject.h"

/* The exact-match table, three caches on rte_hash, and no cache at all. */
#define OTHERS 5

static void stop(int signal)
{
    (void)signal;
    measure_stopped = true;
}

/* Creates all caches, in the order of the report. Returns their number, or 0 if one failed. */
static unsigned make_subjects(struct subject *subject, uint32_t entries)
{
    const unsigned designs = subject_nuthatch_designs();
    for (unsigned d = 0; d < designs; d++)
        if (!subject_nuthatch(&subject[d], d, entries))
            return 0;
    struct subject *other = subject + designs;
    if (!subject_nuthatch_exact(&other[0], entries) ||
        !subject_rte_hash_oldest(&other[1], entries) ||
        !subject_rte_hash_random(&other[2], entries) ||
        !subject_rte_hash_full(&other[3], entries))
        return 0;
    subject_none(&other[4]);
    return designs + OTHERS;
}

/* Warms all caches up, then measures all of them in each round: a disturbance of the machine that
 * lasts some seconds affects all alike. False if no more packets came, or a signal. */
static bool run(const struct path *path, const struct options *options, struct subject *subject,
                unsigned subjects, struct account *account)
{
    const uint64_t pass = options->packets;
    for (unsigned s = 0; s < subjects; s++)
        if (subject[s].table != NULL)
            measure(path, &subject[s], pass * options->warm_up);
    for (unsigned round = 0; round < options->rounds; round++)
        for (unsigned s = 0; s < subjects; s++) {
            struct account *each = &account[round * subjects + s];
            *each = measure(path, &subject[s], pass * options->passes);
            if (measure_stopped || each->packets < pass * options->passes)
                return false;
        }
    return true;
}

static int measure_all(const struct path *path, const struct options *options)
{
    const unsigned room = subject_nuthatch_designs() + OTHERS;
    struct subject *subject = calloc(room, sizeof(*subject));
    struct account *account = calloc((size_t)room * options->rounds, sizeof(*account));
    int code = EXIT_FAILURE;
    if (subject != NULL && account != NULL) {
        const unsigned subjects = make_subjects(subject, options->entries);
        if (subjects > 0 && run(path, options, subject, subjects, account)) {
            report(options, subject, subjects, account);
            code = EXIT_SUCCESS;
        } else if (subjects > 0) {
            fprintf(stderr, "flow-packets: %s\n",
                    measure_stopped ? "stopped" : "the port gave no more packets");
        }
        for (unsigned s = 0; s < room; s++)
            if (subject[s].destroy != NULL)
                subject[s].destroy(&subject[s]);
    }
    free(account);
    free(subject);
    return code;
}

/* Everything after DPDK's own initialisation. */
static int start(const struct options *options)
{
    struct rules rules = {0};
    nuthatch_flow_hasher *hasher = NULL;
    struct path path = {.burst = options->burst, .rules = &rules};
    int code = EXIT_FAILURE;
    /* A fixed seed, so that runs can be compared. A switch would use a random one, so that a sender
     * of packets cannot choose flows that collide. */
    if (!rules_make(&rules, options->rules) || nuthatch_flow_hasher_create(1, &hasher) != 0)
        fprintf(stderr, "flow-packets: no memory for %u rules\n", options->rules);
    else if (port_open(options->packets, &path.port)) {
        path.hasher = hasher;
        code = measure_all(&path, options);
        port_close(path.port);
    }
    nuthatch_flow_hasher_destroy(hasher);
    rules_free(&rules);
    return code;
}

int main(int count, char **word)
{
    const int taken = rte_eal_init(count, word);
    if (taken < 0) {
        fprintf(stderr, "flow-packets: DPDK does not start with these arguments\n");
        return 2;
    }
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    struct options options;
    int code = 2;
    if (options_read(count - taken, word + taken, &options))
        code = start(&options);
    rte_eal_cleanup();
    return code;
}
