/* Tests of packet_key: the keys of whole frames, and that truncated ones are refused without reading
 * beyond their ends. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rte_mbuf.h>

#include "packet.h"

#define FRAME_MAX 256

static unsigned failed;

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: failed: %s\n", __func__, __LINE__, #condition); \
            failed++;                                                               \
        }                                                                           \
    } while (0)

/* A frame that is being written. */
struct frame {
    uint8_t byte[FRAME_MAX];
    uint32_t length;
};

/* Appends bytes from hexadecimal digits; spaces are ignored. */
static void append(struct frame *frame, const char *digits)
{
    unsigned value;
    int used;
    for (; sscanf(digits, " %2x%n", &value, &used) == 1; digits += used)
        frame->byte[frame->length++] = (uint8_t)value;
}

#define ETHER "020000000002 020000000001 "
#define IPV4_HEAD "0000 0000 0000 "
#define IPV4_ADDRESSES "0a000001 c0000201 "
#define IPV6_ADDRESSES                        \
    "20010db8 00000000 00000000 00000001 " \
    "20010db8 00000000 00000000 00000002 "
#define PORTS "1388 01bb "

/* The key of the first `length` bytes of a frame, in an allocation of just that size, so that a memory
 * checker sees reads beyond it. */
static bool key_of(const struct frame *frame, uint32_t length, struct flow_key *key)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);
    if (copy == NULL)
        abort();
    memcpy(copy, frame->byte, length);
    struct rte_mbuf packet;
    memset(&packet, 0, sizeof(packet));
    packet.buf_addr = copy;
    packet.data_len = (uint16_t)length;
    const bool found = packet_key(&packet, key);
    free(copy);
    return found;
}

/* The frame has a key, and no shorter part of it has one. */
static struct flow_key whole_key(const struct frame *frame)
{
    struct flow_key key, shorter;
    memset(&key, 0, sizeof(key));
    CHECK(key_of(frame, frame->length, &key));
    for (uint32_t length = 0; length < frame->length; length++)
        CHECK(!key_of(frame, length, &shorter));
    return key;
}

static void check(const char *digits, uint8_t version, uint8_t protocol, bool ports)
{
    struct frame frame = {.length = 0};
    append(&frame, digits);
    const struct flow_key key = whole_key(&frame);
    const nuthatch_flow_tuple *tuple = &key.tuple;
    CHECK(tuple->version == version && tuple->protocol == protocol);
    CHECK(tuple->source_port == (ports ? htons(5000) : 0));
    CHECK(tuple->destination_port == (ports ? htons(443) : 0));
    struct frame source = {.length = 0}, destination = {.length = 0};
    append(&source, version == 4 ? "0a000001" : "20010db8 00000000 00000000 00000001");
    append(&destination, version == 4 ? "c0000201" : "20010db8 00000000 00000000 00000002");
    CHECK(memcmp(tuple->source, source.byte, sizeof(tuple->source)) == 0);
    CHECK(memcmp(tuple->destination, destination.byte, sizeof(tuple->destination)) == 0);
    CHECK(key.zero[0] == 0 && key.zero[1] == 0);
}

static void frames_that_are_whole_have_keys(void)
{
    check(ETHER "0800 4500" IPV4_HEAD "4006 0000" IPV4_ADDRESSES PORTS, 4, IPPROTO_TCP, true);
    /* Options, after two VLAN tags. */
    check(ETHER "88a8 0001 8100 0002 0800 4600" IPV4_HEAD "4011 0000" IPV4_ADDRESSES
                "01010101" PORTS, 4, IPPROTO_UDP, true);
    check(ETHER "0800 4500" IPV4_HEAD "4001 0000" IPV4_ADDRESSES, 4, IPPROTO_ICMP, false);
    /* The first fragment, and a later one. */
    check(ETHER "0800 4500 0000 0000 2000 4011 0000" IPV4_ADDRESSES, 4, IPPROTO_UDP, false);
    check(ETHER "0800 4500 0000 0000 00b9 4011 0000" IPV4_ADDRESSES, 4, IPPROTO_UDP, false);
    check(ETHER "86dd 60000000 0000 0640" IPV6_ADDRESSES PORTS, 6, IPPROTO_TCP, true);
    check(ETHER "8100 0007 86dd 6fffffff 0000 1140" IPV6_ADDRESSES PORTS, 6, IPPROTO_UDP, true);
    check(ETHER "86dd 60000000 0000 3a40" IPV6_ADDRESSES, 6, IPPROTO_ICMPV6, false);
    /* Hop-by-hop options of 8 bytes, destination options of 16, then TCP. */
    check(ETHER "86dd 60000000 0000 0040" IPV6_ADDRESSES "3c00 000000000000"
                "0601 000000000000 0000000000000000" PORTS, 6, IPPROTO_TCP, true);
    /* A fragment. */
    check(ETHER "86dd 60000000 0000 2c40" IPV6_ADDRESSES "1100 0001 00000000", 6, IPPROTO_UDP,
          false);
}

static void other_frames_have_none(void)
{
    static const char *const others[] = {
        /* ARP, and an unknown type. */
        ETHER "0806 0001 0800 0604 0001 020000000001 0a000001 000000000000 0a000002",
        ETHER "88b5 00000000",
        /* The wrong version for each type, and a header shorter than the minimum. */
        ETHER "0800 6500" IPV4_HEAD "4006 0000" IPV4_ADDRESSES PORTS,
        ETHER "0800 4400" IPV4_HEAD "4006 0000" IPV4_ADDRESSES PORTS,
        ETHER "86dd 40000000 0000 0640" IPV6_ADDRESSES PORTS,
        /* Nine extension headers. */
        ETHER "86dd 60000000 0000 0040" IPV6_ADDRESSES
              "3c00 000000000000 3c00 000000000000 3c00 000000000000 3c00 000000000000"
              "3c00 000000000000 3c00 000000000000 3c00 000000000000 3c00 000000000000"
              "0600 000000000000" PORTS,
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct frame frame = {.length = 0};
        struct flow_key key;
        append(&frame, others[i]);
        CHECK(!key_of(&frame, frame.length, &key));
    }
}

int main(void)
{
    frames_that_are_whole_have_keys();
    other_frames_have_none();
    printf("packet keys: %u checks failed\n", failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
