#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules.h"
#include "subject.h"

static const char usage[] =
    "usage: flow-packets [words for DPDK] -- [options]\n"
    "  --entries N       entries of each flow cache, a power of two (131072)\n"
    "  --rules N         rules behind it, 1 to 65536 (256)\n"
    "  --packets N       packets of the capture, which stay in memory (1048576)\n"
    "  --warm-up N       packets through each cache before it is measured (8388608)\n"
    "  --rounds N        turns of each cache (15)\n"
    "  --milliseconds N  length of a turn (200)\n"
    "  --burst N         packets in a burst, 1 to 64 (32)\n";

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
    *options = (struct options){1u << 17, 256, 1u << 20, 1u << 23, 15, 200, 32};
    const struct {
        uint32_t *number;
        uint32_t least, most;
    } wanted[] = {
        {&options->entries, 64, 1u << 30}, {&options->rules, 1, RULES_MAX},
        {&options->packets, 0, 1u << 26},  {&options->warm_up, 0, UINT32_MAX},
        {&options->rounds, 1, 1000},       {&options->milliseconds, 1, 3600000},
        {&options->burst, 1, BURST_MAX},
    };
    static const struct option names[] = {
        {"entries", required_argument, NULL, 0},      {"rules", required_argument, NULL, 1},
        {"packets", required_argument, NULL, 2},      {"warm-up", required_argument, NULL, 3},
        {"rounds", required_argument, NULL, 4},       {"milliseconds", required_argument, NULL, 5},
        {"burst", required_argument, NULL, 6},        {NULL, 0, NULL, 0},
    };
    optind = 1;
    int which;
    while ((which = getopt_long(count, word, "", names, NULL)) != -1) {
        if (which == '?')
            break;
        if (!number_of(optarg, wanted[which].least, wanted[which].most, wanted[which].number)) {
            fprintf(stderr, "flow-packets: --%s %s: a number from %u to %u is wanted\n",
                    names[which].name, optarg, wanted[which].least, wanted[which].most);
            return false;
        }
    }
    if (which != -1 || optind < count) {
        fputs(usage, stderr);
        return false;
    }
    return true;
}
