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

/* Packets go to this network, cut into subnets of 256 addresses with two rules each. */
#define RULES_NETWORK 0x0a800000u /* 10.128.0.0/9 */
#define RULES_MAX 65536u

/* A rule: the bits of a key that it looks at, what they must be, and what to do then. */
struct rule {
    uint64_t mask[2];
    uint64_t want[2];
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

/* Which destination and protocol rule `r` is for; the address in host byte order. */
uint32_t rule_subnet(uint32_t r);
uint8_t rule_protocol(uint32_t r);

/* The first rule that matches, or RULE_NONE: walks the list. */
uint32_t rules_walk(const struct rules *rules, const struct flow_key *key);

/* Whether a packet matches a rule. */
static inline bool rule_matches(const struct rule *rule, const struct flow_key *key)
{
    uint64_t word[2];
    __builtin_memcpy(word, key, sizeof(word));
    return (((word[0] & rule->mask[0]) ^ rule->want[0]) |
            ((word[1] & rule->mask[1]) ^ rule->want[1])) == 0;
}

#endif
