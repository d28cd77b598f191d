#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

const char *const action_names[ACTIONS] = {"forward", "mirror", "limit", "drop"};

struct flow_key rule_first(uint32_t r)
{
    const uint32_t subnet = r / 2;
    struct flow_key key = {
        .tuple = {
            .protocol = r % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP,
            .version = subnet % 4 == 3 ? 6 : 4,
        },
    };
    const uint8_t high = (uint8_t)(subnet >> 8), low = (uint8_t)subnet;
    if (key.tuple.version == 4)
        /* In 10.128.0.0/9. */
        memcpy(key.tuple.destination, (uint8_t[]){10, 128 | high, low}, 3);
    else
        /* In the prefix for documentation, 2001:db8::/32. */
        memcpy(key.tuple.destination, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8, 0, 0, high, low}, 8);
    return key;
}

bool rules_make(struct rules *rules, uint32_t count)
{
    rules->count = count;
    rules->rule = calloc(count, sizeof(*rules->rule));
    if (rules->rule == NULL)
        return false;
    for (uint32_t r = 0; r < count; r++) {
        const struct flow_key want = rule_first(r);
        struct flow_key mask = {.tuple = {.protocol = 0xff, .version = 0xff}};
        memset(mask.tuple.destination, 0xff, rule_prefix(want.tuple.version));
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

uint32_t rules_search(const struct rules *rules, const struct flow_key *key)
{
    for (uint32_t r = 0; r < rules->count; r++)
        if (rule_matches(&rules->rule[r], key))
            return r;
    return RULE_NONE;
}
