#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules.h"
#include "subject.h"

static const char usage[] =
    "usage: flow-packets [arguments for DPDK] -- [options]\n"
    "  --entries N  entries of each flow cache, a power of two (131072)\n"
    "  --rules N    rules behind it, 1 to 65536 (512)\n"
    "  --packets N  packets of the capture, which stay in memory (1048576)\n"
    "  --warm-up N  passes of the capture through each cache before it is measured (8)\n"
    "  --rounds N   rounds, in each of which every cache is measured (15)\n"
    "  --passes N   passes of the capture through a cache in a round (1)\n"
    "  --burst N    packets in a burst, 1 to 64 (32)\n";

static bool number_of(const char *text, uint32_t least, uint32_t most, uint32_t *number)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return errno == 0 && *text != '-' && end != text && *end == 0 && value >= least &&
           value <= most;
}

bool options_read(int count, char **word, struct options *options)
{
    *options = (struct options){
        .entries = 1u << 17,
        .rules = 512,
        .packets = 1u << 20,
        .warm_up = 8,
        .rounds = 15,
        .passes = 1,
        .burst = 32,
    };
    const struct {
        const char *name;
        uint32_t *number;
        uint32_t least, most;
    } wanted[] = {
        {"entries", &options->entries, 64, 1u << 30}, {"rules", &options->rules, 1, RULES_MAX},
        {"packets", &options->packets, 1, 1u << 26},  {"warm-up", &options->warm_up, 0, 1000000},
        {"rounds", &options->rounds, 1, 1000},        {"passes", &options->passes, 1, 1000000},
        {"burst", &options->burst, 1, BURST_MAX},
    };
    enum { WANTED = sizeof(wanted) / sizeof(wanted[0]) };
    struct option names[WANTED + 1] = {0};
    for (int i = 0; i < WANTED; i++)
        names[i] = (struct option){wanted[i].name, required_argument, NULL, i};
    optind = 1;
    int which;
    while ((which = getopt_long(count, word, "", names, NULL)) != -1) {
        if (which == '?')
            break;
        if (!number_of(optarg, wanted[which].least, wanted[which].most, wanted[which].number)) {
            fprintf(stderr, "flow-packets: --%s %s: a number from %u to %u is wanted\n",
                    wanted[which].name, optarg, wanted[which].least, wanted[which].most);
            return false;
        }
    }
    if (which != -1 || optind < count) {
        fputs(usage, stderr);
        return false;
    }
    return true;
}
