/* Writes a capture of TCP and UDP packets over IPv4 and IPv6, of many flows with Zipf popularity.
 *
 *     make-capture FILE PACKETS FLOWS THETA RULES
 *
 * The share of a flow in the packets is proportional to rank^-THETA: 0 is uniform, 0.99 the usual
 * "Zipf". Their destinations are those of the first RULES rules of rules.h. The same arguments give
 * the same file. */

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

/* The shortest Ethernet frame, and the longest one that is generated. */
#define FRAME_MIN 60
#define FRAME_MAX 96
#define IP_AT 14
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define TCP_HEADER 20
#define UDP_HEADER 8
/* The number of a flow is a part of its IPv4 source address, in 10.0.0.0/9. */
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

/* SplitMix64: a well mixed word for each number. */
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

/* Writes an IPv4 header for a payload of this length; returns the length of the header. */
static uint32_t put_ipv4(uint8_t *ip, const nuthatch_flow_tuple *flow, uint32_t payload)
{
    ip[0] = 0x45;
    put16(ip + 2, IPV4_HEADER + payload);
    ip[8] = 64;
    ip[9] = flow->protocol;
    memcpy(ip + 12, flow->source, 4);
    memcpy(ip + 16, flow->destination, 4);
    put16(ip + 10, ip_checksum(ip));
    return IPV4_HEADER;
}

/* The same for IPv6. */
static uint32_t put_ipv6(uint8_t *ip, const nuthatch_flow_tuple *flow, uint32_t payload)
{
    ip[0] = 0x60;
    put16(ip + 4, payload);
    ip[6] = flow->protocol;
    ip[7] = 64;
    memcpy(ip + 8, flow->source, 16);
    memcpy(ip + 24, flow->destination, 16);
    return IPV6_HEADER;
}

/* A flow to a destination of one of the rules. Its source address ends with its number, so that no
 * two flows are the same. */
static nuthatch_flow_tuple flow_of(uint32_t number, uint32_t rules)
{
    const uint64_t random = mix(number);
    nuthatch_flow_tuple flow = rule_first((uint32_t)(random >> 32) % rules).tuple;
    const unsigned size = flow.version == 4 ? 4 : 16;
    if (flow.version == 6)
        memcpy(flow.source, "\x20\x01\x0d\xb8\xff", 5);
    put32(flow.source + size - 4, (size == 4 ? 0x0a000000 : 0) | number);
    flow.destination[size - 1] = (uint8_t)random;
    flow.source_port = htons((uint16_t)(1024 + (random >> 8 & 0x7fff)));
    flow.destination_port = htons(443);
    return flow;
}

/* Writes the frame of a flow's packets; returns its length. */
static uint32_t frame_of(const nuthatch_flow_tuple *flow, uint8_t frame[FRAME_MAX])
{
    const bool is_udp = flow->protocol == IPPROTO_UDP, is_ipv4 = flow->version == 4;
    const uint32_t payload = is_udp ? UDP_HEADER : TCP_HEADER;
    memset(frame, 0, FRAME_MAX);
    memcpy(frame, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01", IP_AT - 2);
    put16(frame + IP_AT - 2, is_ipv4 ? 0x0800 : 0x86dd);
    uint8_t *ip = frame + IP_AT;
    uint8_t *transport = ip + (is_ipv4 ? put_ipv4 : put_ipv6)(ip, flow, payload);
    memcpy(transport, &flow->source_port, 2);
    memcpy(transport + 2, &flow->destination_port, 2);
    if (is_udp)
        put16(transport + 4, payload);
    else
        transport[12] = TCP_HEADER / 4 << 4;
    const uint32_t length = (uint32_t)(transport - frame) + payload;
    return length < FRAME_MIN ? FRAME_MIN : length;
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
        const uint32_t number = draw(sum, load->flows, mix(~(uint64_t)p));
        const nuthatch_flow_tuple flow = flow_of(number, load->rules);
        uint8_t frame[FRAME_MAX];
        const uint32_t length = frame_of(&flow, frame);
        const struct packet_header each = {p / 1000000, p % 1000000, length, length};
        if (fwrite(&each, sizeof(each), 1, file) != 1 || fwrite(frame, length, 1, file) != 1)
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
