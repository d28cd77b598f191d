#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

static double cycles(const struct account *account)
{
    return (double)account->ticks / (double)account->packets;
}

static double lookup_cycles(const struct account *account)
{
    return (double)account->lookup_ticks / (double)account->timed;
}

static double verdict_cycles(const struct account *account)
{
    return (double)account->verdict_ticks / (double)account->timed;
}

/* Receiving, parsing headers, hashing, and freeing buffers. */
static double other_cycles(const struct account *account)
{
    return cycles(account) - lookup_cycles(account) - verdict_cycles(account);
}

static double hit_rate(const struct account *account)
{
    const uint64_t looked_up = account->packets - account->others;
    return looked_up == 0 ? 0 : (double)account->hits / (double)looked_up;
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median of a figure over the rounds; also the least and the greatest, unless NULL. */
static double median(double *figure, uint32_t rounds, double *least, double *greatest)
{
    qsort(figure, rounds, sizeof(*figure), ascending);
    if (least != NULL)
        *least = figure[0];
    if (greatest != NULL)
        *greatest = figure[rounds - 1];
    return (figure[(rounds - 1) / 2] + figure[rounds / 2]) / 2;
}

static double median_of(double (*figure)(const struct account *), const struct account *account,
                        unsigned subjects, uint32_t rounds, double *room)
{
    for (uint32_t round = 0; round < rounds; round++)
        room[round] = figure(&account[round * subjects]);
    return median(room, rounds, NULL, NULL);
}

static void line(const struct options *options, const struct subject *subject, unsigned which,
                 unsigned subjects, const struct account *account, double *room)
{
    const uint32_t rounds = options->rounds;
    const struct account *own = account + which;
    const double packet = median_of(cycles, own, subjects, rounds, room);
    printf("%-24s %8.4f %8.1f %8.1f %8.1f %8.1f %8.2f", subject[which].name,
           median_of(hit_rate, own, subjects, rounds, room), packet,
           median_of(other_cycles, own, subjects, rounds, room),
           median_of(lookup_cycles, own, subjects, rounds, room),
           median_of(verdict_cycles, own, subjects, rounds, room),
           (double)rte_get_tsc_hz() / packet / 1e6);
    for (uint32_t round = 0; round < rounds; round++)
        room[round] = cycles(&account[round * subjects]) / cycles(&own[round * subjects]);
    double least, greatest;
    const double ratio = median(room, rounds, &least, &greatest);
    printf(" %8.2f (%.2f to %.2f)\n", ratio, least, greatest);
}

/* What was done with the packets of all rounds and all caches. */
static void totals(const struct account *account, size_t accounts)
{
    struct account sum = {0};
    for (size_t i = 0; i < accounts; i++) {
        sum.packets += account[i].packets;
        sum.mistaken += account[i].mistaken;
        sum.ipv6 += account[i].ipv6;
        sum.others += account[i].others;
        sum.unmatched += account[i].unmatched;
        for (int action = 0; action < ACTIONS; action++)
            sum.actions[action] += account[i].actions[action];
    }
    printf("\n%" PRIu64 " packets:", sum.packets);
    for (int action = 0; action < ACTIONS; action++)
        printf(" %s %" PRIu64 ",", action_names[action], sum.actions[action]);
    printf(" no rule %" PRIu64 ", not IP %" PRIu64 "\n", sum.unmatched, sum.others);
    printf("%" PRIu64 " of them IPv6\n", sum.ipv6);
    printf("%" PRIu64 " times a cache named a rule that did not match\n", sum.mistaken);
}

void report(const struct options *options, const struct subject *subject, unsigned subjects,
            const struct account *account)
{
    double *room = calloc(options->rounds, sizeof(*room));
    if (room == NULL) {
        fprintf(stderr, "flow-packets: no memory for the report\n");
        return;
    }
    printf("%u entries, %u rules, bursts of %u; the median of %u rounds of %" PRIu64 " packets\n\n",
           options->entries, options->rules, options->burst, options->rounds,
           (uint64_t)options->packets * options->passes);
    const char *format = "%-24s %8s %8s %8s %8s %8s %8s %8s\n";
    printf(format, "", "", "cycles", "of it", "of it", "of it", "million", "rate /");
    printf(format, "cache", "hit rate", "a packet", "receive", "lookup", "verdict", "a second",
           "first's");
    for (unsigned s = 0; s < subjects; s++)
        line(options, subject, s, subjects, account, room);
    totals(account, (size_t)subjects * options->rounds);
    free(room);
}
