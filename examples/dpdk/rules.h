/* The dear way to a verdict: a list of rules, walked from the top. */

#ifndef RULES_H
#define RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

enum action { ACTION_FORWARD, ACTION_MIRROR, ACTION_LIMIT, ACTION_DROP, ACTIONS };

extern const char *const action_names[ACTIONS];

/* What no rule matches. */
#define RULE_NONE UINT32_MAX

/* Packets go to subnets with two rules each: three in four are IPv4 ones of 256 addresses, the
 * fourth is an IPv6 one of 64 bits. */
#define RULES_MAX 65536u

/* A rule: the bits of a key that it looks at, what they must be, and what to do then. */
struct rule {
    uint64_t mask[KEY_WORDS];
    uint64_t want[KEY_WORDS];
    enum action action;
};

struct rules {
    struct rule *rule;
    uint32_t count;
};

/* `count` rules, 1 to RULES_MAX: one for TCP and one for UDP packets to each subnet in turn.
 *
 * They exclude each other, as the flows that a switch remembers do: a packet that matches one
 * matches no other. So a cache may remember only which rule it was, and comparing the packet with
 * that one rule makes up for two flows that look the same to the cache. */
bool rules_make(struct rules *rules, uint32_t count);
void rules_free(struct rules *rules);

/* Which packets rule `r` is for: the IP version, the first address of the destination's subnet, of
 * which an IPv4 one takes four bytes, and the protocol; the rest is zero. */
struct flow_key rule_first(uint32_t r);

/* Bytes at the start of a destination's address that name its subnet. */
static inline unsigned rule_prefix(uint8_t version)
{
    return version == 4 ? 3 : 8;
}

/* The first rule that matches, or RULE_NONE: walks the list. */
uint32_t rules_walk(const struct rules *rules, const struct flow_key *key);

/* Whether a packet matches a rule. */
static inline bool rule_matches(const struct rule *rule, const struct flow_key *key)
{
    uint64_t word[KEY_WORDS], other = 0;
    __builtin_memcpy(word, key, sizeof(word));
    for (int i = 0; i < KEY_WORDS; i++)
        other |= (word[i] & rule->mask[i]) ^ rule->want[i];
    return other == 0;
}

#endif
