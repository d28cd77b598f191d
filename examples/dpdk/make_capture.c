/* Writes a capture of TCP and UDP packets of many flows, some more often seen than others.
 *
 *     make-capture FILE PACKETS FLOWS THETA RULES
 *
 * A flow's share of the packets falls with its rank as rank^-THETA: 0 is uniform, 0.99 the usual
 * "Zipf". Flows go to the destinations that the first RULES rules of rules.h are for. The same
 * arguments give the same file. */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "rules.h"

#define FRAME 60
#define IP_AT 14
#define PORTS_AT 34
#define FLOWS_MAX (1u << 23)

/* The classic capture format's headers, in this machine's byte order. */
struct file_header {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t zone, accuracy, snap_length, link_type;
};
struct packet_header {
    uint32_t seconds, microseconds, captured, length;
};

struct load {
    uint32_t packets, flows, rules;
    double theta;
};

/* SplitMix64: one well mixed word for each number. */
static uint64_t mix(uint64_t number)
{
    number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

static uint16_t ip_checksum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (int at = 0; at < 20; at += 2)
        sum += (uint32_t)header[at] << 8 | header[at + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value);
}

/* The frame of a flow: its source address is its number, so that no two flows are the same. */
static void frame_of(uint32_t flow, uint32_t rules, uint8_t frame[FRAME])
{
    const uint64_t random = mix(flow);
    const uint32_t rule = (uint32_t)(random >> 32) % rules;
    memset(frame, 0, FRAME);
    memcpy(frame, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0", IP_AT);
    uint8_t *ip = frame + IP_AT;
    ip[0] = 0x45;
    put16(ip + 2, FRAME - IP_AT);
    ip[8] = 64;
    ip[9] = rule_protocol(rule);
    put32(ip + 12, 0x0a000000 | flow);
    put32(ip + 16, rule_subnet(rule) | (random & 0xff));
    put16(ip + 10, ip_checksum(ip));
    put16(frame + PORTS_AT, 1024 + (uint32_t)(random >> 8 & 0x7fff));
    put16(frame + PORTS_AT + 2, 443);
    if (ip[9] == IPPROTO_UDP)
        put16(frame + PORTS_AT + 4, FRAME - PORTS_AT);
    else
        frame[PORTS_AT + 12] = 0x50;
}

/* The sums of the flows' weights, so that a search for a random sum finds a flow. */
static double *cumulative(const struct load *load)
{
    double *sum = malloc(load->flows * sizeof(*sum));
    double total = 0;
    for (uint32_t rank = 0; sum != NULL && rank < load->flows; rank++)
        sum[rank] = total += pow(rank + 1.0, -load->theta);
    return sum;
}

static uint32_t draw(const double *sum, uint32_t flows, uint64_t random)
{
    const double wanted = (double)(random >> 11) * 0x1p-53 * sum[flows - 1];
    uint32_t low = 0, high = flows - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (sum[middle] > wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool write_capture(FILE *file, const struct load *load, const double *sum)
{
    const struct file_header header = {0xa1b2c3d4, 2, 4, 0, 0, 65535, 1};
    if (fwrite(&header, sizeof(header), 1, file) != 1)
        return false;
    for (uint32_t p = 0; p < load->packets; p++) {
        const struct packet_header each = {p / 1000000, p % 1000000, FRAME, FRAME};
        uint8_t frame[FRAME];
        frame_of(draw(sum, load->flows, mix(~(uint64_t)p)), load->rules, frame);
        if (fwrite(&each, sizeof(each), 1, file) != 1 || fwrite(frame, FRAME, 1, file) != 1)
            return false;
    }
    return true;
}

static bool number_of(const char *text, uint32_t most, uint32_t *number)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return errno == 0 && *text != '-' && end != text && *end == 0 && value >= 1 && value <= most;
}

static bool read_load(char **argument, struct load *load)
{
    char *end;
    load->theta = strtod(argument[2], &end);
    return number_of(argument[0], 1u << 30, &load->packets) &&
           number_of(argument[1], FLOWS_MAX, &load->flows) && end != argument[2] && *end == 0 &&
           load->theta >= 0 && load->theta <= 10 && number_of(argument[3], RULES_MAX, &load->rules);
}

int main(int count, char **argument)
{
    struct load load;
    if (count != 6 || !read_load(argument + 2, &load)) {
        fprintf(stderr,
                "usage: make-capture FILE PACKETS FLOWS THETA RULES\n"
                "PACKETS to %u, FLOWS to %u, THETA from 0 to 10, RULES to %u\n",
                1u << 30, FLOWS_MAX, RULES_MAX);
        return 2;
    }
    double *sum = cumulative(&load);
    FILE *file = fopen(argument[1], "wb");
    bool written = file != NULL && sum != NULL && write_capture(file, &load, sum);
    if (file != NULL && fclose(file) != 0)
        written = false;
    free(sum);
    if (!written) {
        fprintf(stderr, "make-capture: %s: %s\n", argument[1], strerror(errno));
        return 1;
    }
    return 0;
}
