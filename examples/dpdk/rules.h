/* The slow classifier: a list of rules, searched from the top. */

#ifndef RULES_H
#define RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

enum action { ACTION_FORWARD, ACTION_MIRROR, ACTION_LIMIT, ACTION_DROP, ACTIONS };

extern const char *const action_names[ACTIONS];

/* The number of no rule. */
#define RULE_NONE UINT32_MAX

/* Each subnet has two rules: three subnets in four are IPv4 ones of 256 addresses, the fourth is an
 * IPv6 one of 64 bits. */
#define RULES_MAX 65536u

/* A rule: the bits of a key that it compares, their values, and the action. */
struct rule {
    uint64_t mask[KEY_WORDS];
    uint64_t want[KEY_WORDS];
    enum action action;
};

struct rules {
    struct rule *rule;
    uint32_t count;
};

/* Creates `count` rules, 1 to RULES_MAX: one for TCP and one for UDP packets to each subnet in turn.
 *
 * They are disjoint, like the megaflows of a switch: a packet that matches one matches no other. So
 * a cache needs to store the number of the rule only, and comparing the packet with that one rule
 * finds out whether two flows have the same tag. */
bool rules_make(struct rules *rules, uint32_t count);
void rules_free(struct rules *rules);

/* The packets of rule `r`: the IP version, the first address of the destination's subnet, of which an
 * IPv4 one takes four bytes, and the protocol; the rest is zero. */
struct flow_key rule_first(uint32_t r);

/* Bytes of a destination's address that are its subnet. */
static inline unsigned rule_prefix(uint8_t version)
{
    return version == 4 ? 3 : 8;
}

/* The first rule of the list that matches, or RULE_NONE. */
uint32_t rules_search(const struct rules *rules, const struct flow_key *key);

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
