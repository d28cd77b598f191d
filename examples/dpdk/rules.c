#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

const char *const action_names[ACTIONS] = {"forward", "mirror", "limit", "drop"};

uint32_t rule_subnet(uint32_t r)
{
    return RULES_NETWORK | (r / 2) << 8;
}

uint8_t rule_protocol(uint32_t r)
{
    return r % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP;
}

bool rules_make(struct rules *rules, uint32_t count)
{
    rules->count = count;
    rules->rule = calloc(count, sizeof(*rules->rule));
    if (rules->rule == NULL)
        return false;
    for (uint32_t r = 0; r < count; r++) {
        const struct flow_key mask = {.destination = htonl(0xffffff00), .protocol = 0xff};
        const struct flow_key want = {
            .destination = htonl(rule_subnet(r)),
            .protocol = rule_protocol(r),
        };
        struct rule *rule = &rules->rule[r];
        memcpy(rule->mask, &mask, sizeof(mask));
        memcpy(rule->want, &want, sizeof(want));
        rule->action = r % ACTIONS;
    }
    return true;
}

void rules_free(struct rules *rules)
{
    free(rules->rule);
}

uint32_t rules_walk(const struct rules *rules, const struct flow_key *key)
{
    for (uint32_t r = 0; r < rules->count; r++)
        if (rule_matches(&rules->rule[r], key))
            return r;
    return RULE_NONE;
}
