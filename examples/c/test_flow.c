/* Tests of the C interface: what the header promises, function by function. Prints a line for each
 * test, and the counts; fails if a test failed.
 *
 *     test_flow [all]
 *
 * `all` compares the two functions nuthatch_flow_widen() for every input instead of a sample. */

/* For anonymous mappings. */
#define _DEFAULT_SOURCE

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include <nuthatch_flow.h>

static unsigned passed, failed;
static bool holds;

/* Prints the condition and its line if it does not hold. */
#define CHECK(condition) check(condition, #condition, __LINE__)

static void check(bool condition, const char *text, int line)
{
    if (!condition) {
        fprintf(stderr, "test_flow.c:%d: failed: %s\n", line, text);
        holds = false;
    }
}

/* Arguments that are wrong on purpose, where the compiler does not see it: the header tells it how
 * long arrays must be. */
static const void *volatile no_array;
static const volatile size_t too_many = SIZE_MAX;

static nuthatch_flow_hasher *hasher;

static uint64_t hash_of(uint64_t number)
{
    uint64_t hash = 0;
    CHECK(nuthatch_flow_hash_keys(hasher, &number, sizeof(number), 1, &hash) == 0);
    return hash;
}

static nuthatch_flow_config config_of(uint64_t entries)
{
    nuthatch_flow_config config;
    CHECK(nuthatch_flow_config_default(&config) == 0);
    config.entries = entries;
    config.seed = 1;
    return config;
}

static nuthatch_flow_table *table_of(const nuthatch_flow_config *config)
{
    nuthatch_flow_table *table = NULL;
    const int status = nuthatch_flow_create(config, &table);
    if (status != 0)
        fprintf(stderr, "no table: %s\n", nuthatch_flow_error_string(status));
    CHECK(status == 0 && table != NULL);
    return table;
}

static void what_is_inserted_is_found(void)
{
    const nuthatch_flow_config config = config_of(1024);
    nuthatch_flow_table *table = table_of(&config);
    uint64_t value = 77, old = 78;
    CHECK(nuthatch_flow_lookup(table, hash_of(1), &value) == 0 && value == 77);
    CHECK(nuthatch_flow_insert(table, hash_of(1), 5, &old) == NUTHATCH_FLOW_OUTCOME_FILLED);
    CHECK(old == 78);
    CHECK(nuthatch_flow_lookup(table, hash_of(1), &value) == 1 && value == 5);
    CHECK(nuthatch_flow_insert(table, hash_of(1), 6, &old) == NUTHATCH_FLOW_OUTCOME_UPDATED);
    CHECK(old == 5);
    CHECK(nuthatch_flow_insert(table, hash_of(1), 7, NULL) == NUTHATCH_FLOW_OUTCOME_UPDATED);
    CHECK(nuthatch_flow_remove(table, hash_of(1), &old) == 1 && old == 7);
    CHECK(nuthatch_flow_remove(table, hash_of(1), NULL) == 0);
    CHECK(nuthatch_flow_lookup(table, hash_of(1), &value) == 0);
    nuthatch_flow_destroy(table);
}

/* An output parameter is written if there is a result, and else not touched: here it points to memory
 * that must not be accessed. */
static void outputs_without_a_result_are_untouched(void)
{
    const nuthatch_flow_config config = config_of(1024);
    nuthatch_flow_table *table = table_of(&config), *shared = NULL;
    nuthatch_flow_exact *exact = NULL;
    const nuthatch_flow_tuple tuple = {.protocol = 6, .version = 4};
    uint64_t *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t answer;
    CHECK(forbidden != MAP_FAILED);
    CHECK(nuthatch_flow_create_shared(&config, &shared) == 0);
    CHECK(nuthatch_flow_exact_create(&config, 1, &exact) == 0);

    CHECK(nuthatch_flow_lookup(table, hash_of(1), forbidden) == 0);
    CHECK(nuthatch_flow_lookup(shared, hash_of(1), forbidden) == 0);
    CHECK(nuthatch_flow_exact_lookup(exact, &tuple, forbidden) == 0);
    CHECK(nuthatch_flow_remove(table, hash_of(1), forbidden) == 0);
    CHECK(nuthatch_flow_remove(shared, hash_of(1), forbidden) == 0);
    CHECK(nuthatch_flow_exact_remove(exact, &tuple, forbidden) == 0);
    CHECK(nuthatch_flow_insert(table, hash_of(1), 5, forbidden) == NUTHATCH_FLOW_OUTCOME_FILLED);
    CHECK(nuthatch_flow_insert(shared, hash_of(1), 5, forbidden) == NUTHATCH_FLOW_OUTCOME_FILLED);
    CHECK(nuthatch_flow_exact_insert(exact, &tuple, 5, forbidden) == NUTHATCH_FLOW_OUTCOME_FILLED);

    CHECK(nuthatch_flow_lookup(table, hash_of(1), &answer) == 1 && answer == 5);
    CHECK(nuthatch_flow_lookup(shared, hash_of(1), &answer) == 1 && answer == 5);
    CHECK(nuthatch_flow_exact_lookup(exact, &tuple, &answer) == 1 && answer == 5);
    munmap(forbidden, 4096);
    nuthatch_flow_exact_destroy(exact);
    nuthatch_flow_destroy(shared);
    nuthatch_flow_destroy(table);
}

#define MANY 1000
#define WORDS ((MANY + 63) / 64)

/* A bulk lookup of `count` flows finds the same as `count` lookups. */
static void bulk_of(nuthatch_flow_table *table, size_t count)
{
    uint64_t hash[MANY] = {0}, value[MANY], hits[WORDS + 1];
    memset(value, 0xff, sizeof(value));
    memset(hits, 0xff, sizeof(hits));
    for (size_t i = 0; i < count; i++)
        hash[i] = hash_of(i);
    int64_t found = 0;
    CHECK(nuthatch_flow_lookup_many(table, hash, count, value, hits) >= 0);
    for (size_t i = 0; i < count; i++) {
        uint64_t single = 0;
        const int hit = nuthatch_flow_lookup(table, hash[i], &single);
        CHECK((int)(hits[i / 64] >> (i % 64) & 1) == hit);
        CHECK(value[i] == (hit ? single : 0));
        found += hit;
    }
    CHECK(found == nuthatch_flow_lookup_many(table, hash, count, value, hits));
    if (count % 64 != 0)
        CHECK(hits[count / 64] >> (count % 64) == 0);
    CHECK(hits[(count + 63) / 64] == UINT64_MAX);
}

static void bulk_lookups_take_any_number(void)
{
    nuthatch_flow_config config = config_of(4096);
    config.eviction = NUTHATCH_FLOW_EVICTION_RANDOM;
    nuthatch_flow_table *table = table_of(&config);
    for (uint64_t flow = 0; flow < MANY; flow += 3)
        nuthatch_flow_insert(table, hash_of(flow), flow + 1, NULL);
    const size_t counts[] = {1, 2, 63, 64, 65, 127, 128, 129, MANY};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        bulk_of(table, counts[i]);
    CHECK(nuthatch_flow_lookup_many(table, NULL, 0, NULL, NULL) == 0);
    nuthatch_flow_destroy(table);
}

/* A hash of 32 bits inside a larger struct; packed, so that most are not aligned. */
struct __attribute__((packed)) packet {
    uint16_t length;
    uint32_t hash;
    uint8_t rest[31];
};

/* A table of either kind, with every third of `count` packets' flows. */
static nuthatch_flow_table *table_of_packets(bool shared, struct packet *packet, size_t count)
{
    nuthatch_flow_config config = config_of(4096);
    nuthatch_flow_table *table = NULL;
    config.swap_probability = 1;
    CHECK((shared ? nuthatch_flow_create_shared : nuthatch_flow_create)(&config, &table) == 0);
    memset(packet, 0xff, count * sizeof(*packet));
    for (size_t i = 0; i < count; i++) {
        packet[i].hash = (uint32_t)hash_of(i);
        if (i % 3 == 0)
            nuthatch_flow_insert(table, nuthatch_flow_widen(packet[i].hash), i + 1, NULL);
    }
    return table;
}

/* A strided lookup finds the same as a lookup of gathered and widened hashes. */
static void strided_lookups_are_those_of_gathered_hashes(void)
{
    static struct packet packet[MANY];
    static uint64_t hash[MANY], value[2][MANY], hits[2][WORDS + 1];
    const size_t counts[] = {1, 2, 63, 64, 65, 255, 256, 257, 512, MANY};
    for (int shared = 0; shared < 2; shared++) {
        nuthatch_flow_table *one = table_of_packets(shared, packet, MANY);
        nuthatch_flow_table *other = table_of_packets(shared, packet, MANY);
        for (size_t i = 0; i < MANY; i++)
            hash[i] = nuthatch_flow_widen(packet[i].hash);
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            const size_t count = counts[c];
            memset(value, 0xff, sizeof(value));
            memset(hits, 0xff, sizeof(hits));
            const int64_t found = nuthatch_flow_lookup_many(one, hash, count, value[0], hits[0]);
            CHECK(found >= (int64_t)count / 3);
            CHECK(nuthatch_flow_lookup_strided(other, &packet[0].hash, sizeof(packet[0]), count,
                                               value[1], hits[1]) == found);
            CHECK(memcmp(value[0], value[1], sizeof(value[0])) == 0);
            CHECK(memcmp(hits[0], hits[1], sizeof(hits[0])) == 0);
            CHECK(hits[1][(count + 63) / 64] == UINT64_MAX);
        }
        nuthatch_flow_stats stats[2];
        CHECK(nuthatch_flow_get_stats(one, &stats[0]) == 0);
        CHECK(nuthatch_flow_get_stats(other, &stats[1]) == 0);
        CHECK(memcmp(&stats[0], &stats[1], sizeof(stats[0])) == 0);
        CHECK(nuthatch_flow_lookup_strided(one, NULL, 4, 0, NULL, NULL) == 0);
        nuthatch_flow_destroy(other);
        nuthatch_flow_destroy(one);
    }
}

/* Prefetching has no effect that a program sees, whatever the hash. */
static void prefetching_changes_nothing(void)
{
    static struct packet packet[MANY];
    static uint64_t hash[MANY], value[MANY], hits[WORDS];
    for (int shared = 0; shared < 2; shared++) {
        nuthatch_flow_table *table = table_of_packets(shared, packet, MANY);
        nuthatch_flow_stats before, after;
        for (size_t i = 0; i < MANY; i++)
            hash[i] = i % 2 == 0 ? nuthatch_flow_widen(packet[i].hash) : ~hash_of(i);
        CHECK(nuthatch_flow_get_stats(table, &before) == 0);
        for (size_t i = 0; i < MANY; i++)
            CHECK(nuthatch_flow_prefetch(table, hash[i]) == 0);
        CHECK(nuthatch_flow_prefetch(table, UINT64_MAX) == 0);
        CHECK(nuthatch_flow_prefetch_many(table, hash, MANY) == 0);
        CHECK(nuthatch_flow_prefetch_many(table, NULL, 0) == 0);
        const size_t stride = sizeof(packet[0]);
        CHECK(nuthatch_flow_prefetch_strided(table, &packet[0].hash, stride, MANY) == 0);
        CHECK(nuthatch_flow_prefetch_strided(table, &packet[0].hash, stride, 1) == 0);
        CHECK(nuthatch_flow_prefetch_strided(table, NULL, stride, 0) == 0);
        CHECK(nuthatch_flow_get_stats(table, &after) == 0);
        CHECK(memcmp(&before, &after, sizeof(before)) == 0);
        CHECK(nuthatch_flow_lookup_strided(table, &packet[0].hash, stride, MANY, value, hits) > 0);
        for (size_t i = 0; i < MANY; i += 3)
            CHECK(value[i] == i + 1);
        nuthatch_flow_destroy(table);
    }
}

/* True if a failed bulk lookup left values and hits as they were. */
static bool is_untouched(const uint64_t *value, const uint64_t *hits)
{
    for (int i = 0; i < 64; i++)
        if (value[i] != 0x77)
            return false;
    return *hits == 0x77;
}

static void failed_bulk_lookups_touch_nothing(void)
{
    const int null = NUTHATCH_FLOW_STATUS_NULL_POINTER;
    const int large = NUTHATCH_FLOW_STATUS_COUNT_TOO_LARGE;
    const int stride = NUTHATCH_FLOW_STATUS_STRIDE;
    static struct packet packet[64];
    uint64_t hash[64], value[64], hits = 0x77;
    nuthatch_flow_table *table = table_of_packets(false, packet, 64);
    nuthatch_flow_stats stats;
    for (int i = 0; i < 64; i++) {
        hash[i] = nuthatch_flow_widen(packet[i].hash);
        value[i] = 0x77;
    }
    const void *first = &packet[0].hash;
    const size_t size = sizeof(packet[0]);
    CHECK(nuthatch_flow_lookup_many(NULL, hash, 64, value, &hits) == null);
    CHECK(nuthatch_flow_lookup_many(table, no_array, 64, value, &hits) == null);
    CHECK(nuthatch_flow_lookup_many(table, hash, 64, value, NULL) == null);
    CHECK(nuthatch_flow_lookup_many(table, hash, 64, (uint64_t *)no_array, &hits) == null);
    CHECK(nuthatch_flow_lookup_many(table, hash, too_many, value, &hits) == large);
    CHECK(is_untouched(value, &hits));
    CHECK(nuthatch_flow_lookup_strided(NULL, first, size, 64, value, &hits) == null);
    CHECK(nuthatch_flow_lookup_strided(table, NULL, size, 64, value, &hits) == null);
    CHECK(nuthatch_flow_lookup_strided(table, first, size, 64, value, NULL) == null);
    CHECK(nuthatch_flow_lookup_strided(table, first, size, 64, (uint64_t *)no_array, &hits) == null);
    CHECK(nuthatch_flow_lookup_strided(table, first, 0, 64, value, &hits) == stride);
    CHECK(nuthatch_flow_lookup_strided(table, first, 3, 64, value, &hits) == stride);
    CHECK(nuthatch_flow_lookup_strided(table, first, SIZE_MAX, 64, value, &hits) == large);
    CHECK(nuthatch_flow_lookup_strided(table, first, SIZE_MAX / 64, 64, value, &hits) == large);
    CHECK(nuthatch_flow_lookup_strided(table, first, size, too_many, value, &hits) == large);
    CHECK(nuthatch_flow_lookup_strided(table, first, 4, too_many / 4, value, &hits) == large);
    CHECK(is_untouched(value, &hits));
    CHECK(nuthatch_flow_prefetch(NULL, 1) == null);
    CHECK(nuthatch_flow_prefetch_many(NULL, hash, 64) == null);
    CHECK(nuthatch_flow_prefetch_many(table, no_array, 64) == null);
    CHECK(nuthatch_flow_prefetch_many(table, hash, too_many) == large);
    CHECK(nuthatch_flow_prefetch_strided(NULL, first, size, 64) == null);
    CHECK(nuthatch_flow_prefetch_strided(table, NULL, size, 64) == null);
    CHECK(nuthatch_flow_prefetch_strided(table, first, 2, 64) == stride);
    CHECK(nuthatch_flow_prefetch_strided(table, first, size, too_many) == large);
    CHECK(nuthatch_flow_get_stats(table, &stats) == 0 && stats.lookups == 0);
    nuthatch_flow_destroy(table);
}

/* The entry of a flow whose hash is in the lookup is moved up, whether or not the caller finds it to
 * be the right one: header and documentation say so. Four flows of one bucket, the last of which
 * would be evicted; a hit on it moves it up, so the third is evicted. */
static void a_hit_moves_the_entry_before_it_is_verified(void)
{
    nuthatch_flow_config config = config_of(1);
    config.layout = NUTHATCH_FLOW_LAYOUT_FOUR_WAY;
    for (int hit = 0; hit < 2; hit++) {
        nuthatch_flow_table *table = table_of(&config);
        uint64_t value[1], hits[1], old = 0;
        for (uint64_t flow = 1; flow <= 4; flow++)
            nuthatch_flow_insert(table, flow << 32, flow, NULL);
        const uint64_t hash[] = {UINT64_C(4) << 32};
        CHECK(nuthatch_flow_lookup_many(table, hash, (size_t)hit, value, hits) == hit);
        CHECK(nuthatch_flow_insert(table, UINT64_C(5) << 32, 5, &old) ==
              NUTHATCH_FLOW_OUTCOME_EVICTED);
        CHECK(old == (hit ? 3 : 4));
        /* The same tag: a flow that fails the verification takes over the entry. */
        CHECK(nuthatch_flow_insert(table, UINT64_C(5) << 32, 6, &old) ==
              NUTHATCH_FLOW_OUTCOME_UPDATED);
        nuthatch_flow_destroy(table);
    }
}

static void an_insert_always_finds_a_slot(void)
{
    const nuthatch_flow_config config = config_of(256);
    nuthatch_flow_table *table = table_of(&config);
    unsigned evicted = 0;
    for (uint64_t flow = 0; flow < 10000; flow++) {
        uint64_t value = 0, old = UINT64_MAX;
        const int outcome = nuthatch_flow_insert(table, hash_of(flow), flow, &old);
        CHECK(outcome > 0);
        if (outcome == NUTHATCH_FLOW_OUTCOME_EVICTED) {
            CHECK(old < flow);
            evicted++;
        }
        CHECK(nuthatch_flow_lookup(table, hash_of(flow), &value) == 1 && value == flow);
    }
    nuthatch_flow_stats stats;
    CHECK(nuthatch_flow_get_stats(table, &stats) == 0);
    CHECK(stats.evicted == evicted && stats.filled + stats.evicted + stats.updated == 10000);
    CHECK(stats.lookups == 10000 && stats.hits == 10000);
    CHECK(stats.entries == 256 && stats.occupied == stats.filled && stats.bytes >= 256 * 8);
    nuthatch_flow_destroy(table);
}

static void forgetting_a_value_removes_all_its_flows(void)
{
    const nuthatch_flow_config config = config_of(4096);
    nuthatch_flow_table *table = table_of(&config);
    for (uint64_t flow = 0; flow < 300; flow++)
        nuthatch_flow_insert(table, hash_of(flow), flow % 3, NULL);
    CHECK(nuthatch_flow_forget_value(table, 1) == 100);
    CHECK(nuthatch_flow_forget_value(table, 1) == 0);
    for (uint64_t flow = 0; flow < 300; flow++) {
        uint64_t value;
        CHECK(nuthatch_flow_lookup(table, hash_of(flow), &value) == (flow % 3 != 1));
    }
    CHECK(nuthatch_flow_clear(table) == 200);
    nuthatch_flow_stats stats;
    CHECK(nuthatch_flow_get_stats(table, &stats) == 0 && stats.occupied == 0);
    CHECK(stats.forgotten == 300);
    nuthatch_flow_destroy(table);
}

static void every_configuration_is_refused_or_works(void)
{
    for (uint32_t layout = 0; layout <= NUTHATCH_FLOW_LAYOUT_BLP2X8; layout++)
        for (uint32_t eviction = 0; eviction <= NUTHATCH_FLOW_EVICTION_DC_BUBBLE; eviction++)
            for (uint32_t entry = 0; entry <= NUTHATCH_FLOW_ENTRY_HASH64; entry++) {
                nuthatch_flow_config config = config_of(512);
                config.layout = layout;
                config.eviction = eviction;
                config.entry = entry;
                nuthatch_flow_table *table;
                const int status = nuthatch_flow_create(&config, &table);
                CHECK(status == 0 || status == NUTHATCH_FLOW_STATUS_UNSUITED);
                CHECK((status == 0) == (table != NULL));
                uint64_t value = 0;
                for (uint64_t flow = 0; status == 0 && flow < 2000; flow++) {
                    CHECK(nuthatch_flow_insert(table, hash_of(flow), flow, NULL) > 0);
                    CHECK(nuthatch_flow_lookup(table, hash_of(flow), &value) == 1);
                    CHECK(value == flow);
                }
                nuthatch_flow_destroy(table);
            }
}

/* The status of creating a table from a wrong configuration; there must be no table. */
static int refusal(const nuthatch_flow_config *config)
{
    nuthatch_flow_table *table = (nuthatch_flow_table *)1;
    const int status = nuthatch_flow_create(config, &table);
    CHECK(status < 0 && table == NULL);
    return status;
}

static void bad_configurations_are_refused(void)
{
    CHECK(refusal(NULL) == NUTHATCH_FLOW_STATUS_NULL_POINTER);
    nuthatch_flow_config config = config_of(1024);
    config.layout = 6;
    CHECK(refusal(&config) == NUTHATCH_FLOW_STATUS_UNKNOWN_LAYOUT);
    config = config_of(1024);
    config.eviction = UINT32_MAX;
    CHECK(refusal(&config) == NUTHATCH_FLOW_STATUS_UNKNOWN_EVICTION);
    config = config_of(1024);
    config.entry = 3;
    CHECK(refusal(&config) == NUTHATCH_FLOW_STATUS_UNKNOWN_ENTRY);
    config = config_of(1024);
    config.insert_at = 2;
    CHECK(refusal(&config) == NUTHATCH_FLOW_STATUS_UNKNOWN_INSERT_AT);
    const double no_probability[] = {-0.25, 1.5, NAN, INFINITY};
    for (size_t i = 0; i < sizeof(no_probability) / sizeof(no_probability[0]); i++) {
        config = config_of(1024);
        config.swap_probability = no_probability[i];
        CHECK(refusal(&config) == NUTHATCH_FLOW_STATUS_PROBABILITY);
    }
    config = config_of((UINT64_C(1) << 32) + 1);
    CHECK(refusal(&config) == NUTHATCH_FLOW_STATUS_TOO_MANY_ENTRIES);
    config = config_of(1024);
    config.layout = NUTHATCH_FLOW_LAYOUT_EIGHT_WAY;
    config.eviction = NUTHATCH_FLOW_EVICTION_RANDOM_SECOND;
    CHECK(refusal(&config) == NUTHATCH_FLOW_STATUS_UNSUITED);
}

static void sizes_are_rounded_up(void)
{
    const uint64_t wanted[] = {0, 1, 33, 1000, 1025};
    const uint64_t given[] = {32, 32, 64, 1024, 2048};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const nuthatch_flow_config config = config_of(wanted[i]);
        nuthatch_flow_table *table = table_of(&config);
        nuthatch_flow_stats stats;
        CHECK(nuthatch_flow_get_stats(table, &stats) == 0 && stats.entries == given[i]);
        nuthatch_flow_destroy(table);
    }
}

static void null_is_refused(void)
{
    const int null = NUTHATCH_FLOW_STATUS_NULL_POINTER;
    nuthatch_flow_config config = config_of(64);
    nuthatch_flow_table *table = table_of(&config);
    nuthatch_flow_table *other = NULL;
    nuthatch_flow_stats stats;
    nuthatch_flow_tuple tuple = {.version = 4};
    uint64_t number = 0;
    CHECK(nuthatch_flow_config_default(NULL) == null);
    CHECK(nuthatch_flow_create(&config, NULL) == null);
    CHECK(nuthatch_flow_create_shared(&config, NULL) == null);
    CHECK(nuthatch_flow_create_shared(NULL, &other) == null);
    CHECK(nuthatch_flow_share(NULL, &other) == null);
    CHECK(nuthatch_flow_share(table, NULL) == null);
    CHECK(nuthatch_flow_lookup(NULL, 1, &number) == null);
    CHECK(nuthatch_flow_lookup(table, 1, NULL) == null);
    CHECK(nuthatch_flow_insert(NULL, 1, 1, NULL) == null);
    CHECK(nuthatch_flow_remove(NULL, 1, NULL) == null);
    CHECK(nuthatch_flow_forget_value(NULL, 1) == null);
    CHECK(nuthatch_flow_clear(NULL) == null);
    CHECK(nuthatch_flow_get_stats(NULL, &stats) == null);
    CHECK(nuthatch_flow_get_stats(table, NULL) == null);
    CHECK(nuthatch_flow_hasher_create(1, NULL) == null);
    CHECK(nuthatch_flow_hash_tuples(NULL, &tuple, 1, &number) == null);
    CHECK(nuthatch_flow_hash_tuples(hasher, no_array, 1, &number) == null);
    CHECK(nuthatch_flow_hash_tuples(hasher, &tuple, 1, (uint64_t *)no_array) == null);
    CHECK(nuthatch_flow_hash_tuples(hasher, NULL, 0, NULL) == 0);
    CHECK(nuthatch_flow_hash_keys(NULL, &number, 8, 1, &number) == null);
    CHECK(nuthatch_flow_hash_keys(hasher, NULL, 8, 1, &number) == null);
    CHECK(nuthatch_flow_hash_keys(hasher, &number, 8, 1, NULL) == null);
    CHECK(nuthatch_flow_hash_keys(hasher, NULL, 8, 0, NULL) == 0);
    nuthatch_flow_hasher_destroy(NULL);
    nuthatch_flow_destroy(NULL);
    nuthatch_flow_destroy(table);
}

static void sizes_beyond_the_address_space_are_refused(void)
{
    uint64_t number = 0;
    const int large = NUTHATCH_FLOW_STATUS_COUNT_TOO_LARGE;
    CHECK(nuthatch_flow_hash_keys(hasher, &number, SIZE_MAX / 2, 3, &number) == large);
    CHECK(nuthatch_flow_hash_keys(hasher, &number, SIZE_MAX / 2 + 1, 1, &number) == large);
    CHECK(nuthatch_flow_hash_keys(hasher, &number, 0, SIZE_MAX, &number) == large);
}

static void wide_values_are_refused(void)
{
    const uint64_t most[] = {UINT16_MAX, UINT32_MAX, UINT64_MAX};
    for (uint32_t entry = 0; entry <= NUTHATCH_FLOW_ENTRY_HASH64; entry++) {
        nuthatch_flow_config config = config_of(64);
        config.entry = entry;
        nuthatch_flow_table *table = table_of(&config);
        uint64_t value = 0;
        CHECK(nuthatch_flow_insert(table, 1, most[entry], NULL) > 0);
        if (most[entry] != UINT64_MAX)
            CHECK(nuthatch_flow_insert(table, 1, most[entry] + 1, NULL) ==
                  NUTHATCH_FLOW_STATUS_VALUE_TOO_WIDE);
        CHECK(nuthatch_flow_lookup(table, 1, &value) == 1 && value == most[entry]);
        nuthatch_flow_destroy(table);
    }
}

static uint64_t tuple_hash(const nuthatch_flow_tuple *tuple)
{
    uint64_t hash = 0;
    CHECK(nuthatch_flow_hash_tuples(hasher, tuple, 1, &hash) == 0);
    return hash;
}

static void hashes_depend_on_the_seed(void)
{
    const uint64_t key = 1;
    uint64_t hash[3] = {0};
    for (uint64_t seed = 1; seed <= 2; seed++) {
        nuthatch_flow_hasher *other = NULL;
        CHECK(nuthatch_flow_hasher_create(seed, &other) == 0 && other != NULL);
        CHECK(nuthatch_flow_hash_keys(other, &key, sizeof(key), 1, &hash[seed]) == 0);
        nuthatch_flow_hasher_destroy(other);
    }
    CHECK(hash[1] == hash_of(key) && hash[2] != hash_of(key));
    CHECK(nuthatch_flow_random_seed() != nuthatch_flow_random_seed());
}

/* The function of the library, which the header's inline one hides. */
uint64_t widen_of_the_library(uint32_t hash) __asm__("nuthatch_flow_widen");

/* Numbers from one input of nuthatch_flow_widen() to the next: 1 compares all of them. */
static uint32_t widen_step = 4099;

static void both_functions_widen_alike(void)
{
    uint64_t different = 0;
    for (uint64_t hash = 0; hash <= UINT32_MAX; hash += widen_step)
        different += nuthatch_flow_widen((uint32_t)hash) != widen_of_the_library((uint32_t)hash);
    CHECK(different == 0);
    for (int bit = 0; bit < 32; bit++)
        CHECK(nuthatch_flow_widen(1u << bit) == widen_of_the_library(1u << bit));
    CHECK(nuthatch_flow_widen(UINT32_MAX) == widen_of_the_library(UINT32_MAX));
    CHECK(nuthatch_flow_widen(0x89abcdef) == UINT64_C(0x89abcdef89abcdef));
}

static void tuples_that_differ_hash_differently(void)
{
    const nuthatch_flow_tuple base = {
        .source = {10, 0, 0, 1},
        .destination = {10, 0, 0, 2},
        .source_port = 1,
        .destination_port = 2,
        .protocol = 6,
        .version = 4,
    };
    nuthatch_flow_tuple other[6] = {base, base, base, base, base, base};
    other[0].source[3]++;
    other[1].destination[0]++;
    other[2].source_port++;
    other[3].destination_port++;
    other[4].protocol++;
    other[5].version = 6;
    for (int i = 0; i < 6; i++)
        CHECK(tuple_hash(&base) != tuple_hash(&other[i]));
    CHECK(tuple_hash(&base) == tuple_hash(&base));
    /* Of version 4 only four bytes of an address count. */
    nuthatch_flow_tuple same = base;
    same.source[4] = same.destination[15] = 9;
    CHECK(tuple_hash(&base) == tuple_hash(&same));
    nuthatch_flow_tuple pair[2] = {base, base};
    uint64_t hash[2] = {3, 3};
    pair[1].version = 5;
    CHECK(nuthatch_flow_hash_tuples(hasher, pair, 2, hash) ==
          NUTHATCH_FLOW_STATUS_ADDRESS_VERSION);
    CHECK(hash[0] == tuple_hash(&base) && hash[1] == 3);
}

/* A connection for each number below 2^32. */
static nuthatch_flow_tuple connection(uint32_t number)
{
    nuthatch_flow_tuple tuple = {.protocol = 17, .version = number % 2 == 0 ? 4 : 6};
    memcpy(tuple.source, &number, sizeof(number));
    return tuple;
}

static nuthatch_flow_exact *exact_of(uint64_t entries)
{
    const nuthatch_flow_config config = config_of(entries);
    nuthatch_flow_exact *table = NULL;
    CHECK(nuthatch_flow_exact_create(&config, 1, &table) == 0 && table != NULL);
    return table;
}

static void exact_tables_return_the_own_value(void)
{
    nuthatch_flow_exact *table = exact_of(512);
    nuthatch_flow_tuple tuple[MANY];
    uint64_t value[MANY], hits[WORDS], single = 0;
    for (uint32_t flow = 0; flow < MANY; flow++) {
        tuple[flow] = connection(flow);
        CHECK(nuthatch_flow_exact_insert(table, &tuple[flow], UINT64_MAX - flow, NULL) > 0);
        CHECK(nuthatch_flow_exact_lookup(table, &tuple[flow], &single) == 1);
        CHECK(single == UINT64_MAX - flow);
    }
    const int64_t found = nuthatch_flow_exact_lookup_many(table, tuple, MANY, value, hits);
    CHECK(found > 256 && found <= 544);
    int64_t hit = 0;
    for (uint32_t flow = 0; flow < MANY; flow++) {
        const uint64_t there = hits[flow / 64] >> (flow % 64) & 1;
        CHECK(value[flow] == (there ? UINT64_MAX - flow : 0));
        hit += (int64_t)there;
    }
    CHECK(hit == found);
    CHECK(nuthatch_flow_exact_remove(table, &tuple[MANY - 1], &single) == 1);
    CHECK(single == UINT64_MAX - (MANY - 1));
    CHECK(nuthatch_flow_exact_remove(table, &tuple[MANY - 1], NULL) == 0);
    single = 4;
    CHECK(nuthatch_flow_exact_insert(table, &tuple[0], 1, NULL) > 0);
    CHECK(nuthatch_flow_exact_insert(table, &tuple[0], 2, &single) ==
          NUTHATCH_FLOW_OUTCOME_UPDATED);
    CHECK(single == 1);
    CHECK(nuthatch_flow_exact_forget_value(table, 2) == 1);
    CHECK(nuthatch_flow_exact_clear(table) > 0);
    nuthatch_flow_stats stats;
    CHECK(nuthatch_flow_exact_get_stats(table, &stats) == 0 && stats.occupied == 0);
    CHECK(stats.lookups == 2 * MANY && stats.hits == MANY + (uint64_t)found);
    nuthatch_flow_exact_destroy(table);
}

static void exact_tables_refuse_bad_arguments(void)
{
    const int null = NUTHATCH_FLOW_STATUS_NULL_POINTER;
    const int version = NUTHATCH_FLOW_STATUS_ADDRESS_VERSION;
    const nuthatch_flow_config config = config_of(64);
    nuthatch_flow_exact *table = (nuthatch_flow_exact *)1;
    CHECK(nuthatch_flow_exact_create(NULL, 1, &table) == null && table == NULL);
    CHECK(nuthatch_flow_exact_create(&config, 1, NULL) == null);
    table = exact_of(64);
    nuthatch_flow_tuple tuple[2] = {connection(0), connection(1)};
    nuthatch_flow_stats stats;
    uint64_t value[2] = {7, 7}, hits = 7;
    CHECK(nuthatch_flow_exact_lookup(NULL, tuple, value) == null);
    CHECK(nuthatch_flow_exact_lookup(table, NULL, value) == null);
    CHECK(nuthatch_flow_exact_lookup(table, tuple, NULL) == null);
    CHECK(nuthatch_flow_exact_lookup_many(NULL, tuple, 2, value, &hits) == null);
    CHECK(nuthatch_flow_exact_lookup_many(table, no_array, 2, value, &hits) == null);
    CHECK(nuthatch_flow_exact_lookup_many(table, tuple, 2, value, NULL) == null);
    CHECK(nuthatch_flow_exact_lookup_many(table, NULL, 0, NULL, NULL) == 0);
    CHECK(nuthatch_flow_exact_lookup_many(table, tuple, too_many, value, &hits) ==
          NUTHATCH_FLOW_STATUS_COUNT_TOO_LARGE);
    CHECK(nuthatch_flow_exact_insert(NULL, tuple, 1, NULL) == null);
    CHECK(nuthatch_flow_exact_insert(table, NULL, 1, NULL) == null);
    CHECK(nuthatch_flow_exact_remove(NULL, tuple, NULL) == null);
    CHECK(nuthatch_flow_exact_remove(table, NULL, NULL) == null);
    CHECK(nuthatch_flow_exact_forget_value(NULL, 1) == null);
    CHECK(nuthatch_flow_exact_clear(NULL) == null);
    CHECK(nuthatch_flow_exact_get_stats(NULL, &stats) == null);
    CHECK(nuthatch_flow_exact_get_stats(table, NULL) == null);
    tuple[1].version = 0;
    CHECK(nuthatch_flow_exact_lookup_many(table, tuple, 2, value, &hits) == version);
    CHECK(value[0] == 7 && hits == 7);
    CHECK(nuthatch_flow_exact_lookup(table, &tuple[1], value) == version);
    CHECK(nuthatch_flow_exact_insert(table, &tuple[1], 1, NULL) == version);
    CHECK(nuthatch_flow_exact_remove(table, &tuple[1], NULL) == version);
    nuthatch_flow_exact_destroy(NULL);
    nuthatch_flow_exact_destroy(table);
}

static void every_status_has_a_description(void)
{
    for (int status = 0; status >= NUTHATCH_FLOW_STATUS_STRIDE; status--)
        CHECK(strlen(nuthatch_flow_error_string(status)) > 0);
    CHECK(strcmp(nuthatch_flow_error_string(1), nuthatch_flow_error_string(-1000)) == 0);
    CHECK(strcmp(nuthatch_flow_version(), EXPECTED_VERSION) == 0);
}

typedef const char *name_of(uint32_t);
typedef int number_of(const char *, uint32_t *);

/* The numbers from 0 on have these names, and each name is parsed into its number. */
static void names_of(name_of *name, number_of *parse, const char *const *expected, uint32_t count,
                     int unknown)
{
    uint32_t number = 77;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(name(i) != NULL && strcmp(name(i), expected[i]) == 0);
        CHECK(parse(expected[i], &number) == 0 && number == i);
        CHECK(parse(expected[i], NULL) == NUTHATCH_FLOW_STATUS_NULL_POINTER);
    }
    number = 77;
    CHECK(name(count) == NULL && name(UINT32_MAX) == NULL);
    CHECK(parse(NULL, &number) == NUTHATCH_FLOW_STATUS_NULL_POINTER);
    const char *const wrong[] = {"", " ", "no such name", "4-way ", "PBLRU", "pblru:last"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK(parse(wrong[i], &number) == unknown);
    CHECK(number == 77);
}

static void enumerations_have_names(void)
{
    const char *const layouts[] = {"4-way", "8-way", "cuckoo-lite", "window", "blp-2-4", "blp-2-8"};
    const char *const evictions[] = {"random", "random-second", "lru",
                                     "bubble", "pblru",         "dc-bubble"};
    const char *const entries[] = {"16+16", "32+32", "64+64"};
    const char *const positions[] = {"last", "second-to-last"};
    names_of(nuthatch_flow_layout_name, nuthatch_flow_layout_from_name, layouts, 6,
             NUTHATCH_FLOW_STATUS_UNKNOWN_LAYOUT);
    names_of(nuthatch_flow_eviction_name, nuthatch_flow_eviction_from_name, evictions, 6,
             NUTHATCH_FLOW_STATUS_UNKNOWN_EVICTION);
    names_of(nuthatch_flow_entry_name, nuthatch_flow_entry_from_name, entries, 3,
             NUTHATCH_FLOW_STATUS_UNKNOWN_ENTRY);
    names_of(nuthatch_flow_insert_at_name, nuthatch_flow_insert_at_from_name, positions, 2,
             NUTHATCH_FLOW_STATUS_UNKNOWN_INSERT_AT);
    /* Into a configuration. */
    nuthatch_flow_config config = config_of(64);
    CHECK(nuthatch_flow_layout_from_name("8-way", &config.layout) == 0);
    CHECK(nuthatch_flow_eviction_from_name("lru", &config.eviction) == 0);
    CHECK(config.layout == NUTHATCH_FLOW_LAYOUT_EIGHT_WAY);
    CHECK(config.eviction == NUTHATCH_FLOW_EVICTION_LRU);
    nuthatch_flow_destroy(table_of(&config));
}

#define THREADS 3
#define FLOWS 2000

struct worker {
    pthread_t thread;
    nuthatch_flow_table *table;
    uint64_t wrong, hits;
};

/* Looks flows up and inserts the missing ones: a hit must have its own flow's value. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    for (uint64_t round = 0; round < 20; round++)
        for (uint64_t flow = 0; flow < FLOWS; flow++) {
            uint64_t hash = flow * UINT64_C(0x9e3779b97f4a7c15), value = 0;
            if (nuthatch_flow_lookup(worker->table, hash, &value) == 1) {
                worker->hits++;
                worker->wrong += value != flow;
            } else {
                nuthatch_flow_insert(worker->table, hash, flow, NULL);
            }
        }
    return NULL;
}

static void threads_share_a_table(void)
{
    const nuthatch_flow_config config = config_of(1024);
    struct worker worker[THREADS] = {0};
    CHECK(nuthatch_flow_create_shared(&config, &worker[0].table) == 0);
    for (int i = 1; i < THREADS; i++)
        CHECK(nuthatch_flow_share(worker[0].table, &worker[i].table) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&worker[i].thread, NULL, work, &worker[i]) == 0);
    uint64_t hits = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(worker[i].thread, NULL) == 0);
        CHECK(worker[i].wrong == 0);
        hits += worker[i].hits;
    }
    nuthatch_flow_stats stats;
    CHECK(nuthatch_flow_get_stats(worker[1].table, &stats) == 0);
    CHECK(stats.hits == hits && stats.lookups == 20 * FLOWS * THREADS);
    CHECK(hits > 0 && stats.evicted > 0 && stats.occupied <= 1024 + 64);
    for (int i = 0; i < THREADS; i++)
        nuthatch_flow_destroy(worker[i].table);
}

/* A thread that reads statistics of two tables, which another thread uses, until that is done. */
struct monitor {
    const nuthatch_flow_table *table;
    const nuthatch_flow_exact *exact;
    atomic_bool done;
    atomic_uint changes;
    uint64_t wrong;
    nuthatch_flow_stats last[2];
};

/* True if no counter went back, and there are no more hits than lookups. */
static bool follows(const nuthatch_flow_stats *before, const nuthatch_flow_stats *now)
{
    return before->lookups <= now->lookups && before->hits <= now->hits &&
           before->filled <= now->filled && before->updated <= now->updated &&
           before->evicted <= now->evicted && before->removed <= now->removed &&
           before->forgotten <= now->forgotten && now->hits <= now->lookups &&
           now->entries == before->entries && now->bytes == before->bytes;
}

static void *watch(void *argument)
{
    struct monitor *monitor = argument;
    bool done = false;
    while (!done) {
        nuthatch_flow_stats now[2];
        /* Before it reads: so the last statistics are those of everything. */
        done = atomic_load_explicit(&monitor->done, memory_order_acquire);
        monitor->wrong += nuthatch_flow_get_stats(monitor->table, &now[0]) != 0;
        monitor->wrong += nuthatch_flow_exact_get_stats(monitor->exact, &now[1]) != 0;
        for (int i = 0; i < 2; i++)
            monitor->wrong += !follows(&monitor->last[i], &now[i]);
        if (memcmp(monitor->last, now, sizeof(now)) != 0)
            atomic_fetch_add_explicit(&monitor->changes, 1, memory_order_relaxed);
        memcpy(monitor->last, now, sizeof(now));
    }
    return NULL;
}

static void another_thread_reads_the_statistics(void)
{
    const nuthatch_flow_config config = config_of(256);
    nuthatch_flow_table *table = table_of(&config);
    nuthatch_flow_exact *exact = exact_of(256);
    struct monitor monitor = {.table = table, .exact = exact};
    pthread_t thread;
    uint64_t hash[32], value[32], hits, number = 0, lookups = 0;
    CHECK(nuthatch_flow_get_stats(table, &monitor.last[0]) == 0);
    CHECK(nuthatch_flow_exact_get_stats(exact, &monitor.last[1]) == 0);
    CHECK(pthread_create(&thread, NULL, watch, &monitor) == 0);
    /* Until the other thread saw the statistics change often. */
    while (number < 1000 || atomic_load_explicit(&monitor.changes, memory_order_relaxed) < 50) {
        const nuthatch_flow_tuple tuple = connection((uint32_t)(number % 500));
        for (uint64_t i = 0; i < 32; i++)
            hash[i] = (number + i) % 500 * UINT64_C(0x9e3779b97f4a7c15);
        nuthatch_flow_lookup_many(table, hash, 32, value, &hits);
        nuthatch_flow_insert(table, hash[0], number % 100, NULL);
        nuthatch_flow_exact_lookup(exact, &tuple, value);
        nuthatch_flow_exact_insert(exact, &tuple, number % 100, NULL);
        if (number % 16 == 0) {
            nuthatch_flow_remove(table, hash[7], NULL);
            nuthatch_flow_forget_value(table, number % 100);
            nuthatch_flow_exact_remove(exact, &tuple, NULL);
            nuthatch_flow_exact_forget_value(exact, number % 100);
        }
        lookups += 32;
        number++;
    }
    atomic_store_explicit(&monitor.done, true, memory_order_release);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(monitor.wrong == 0);
    CHECK(monitor.last[0].lookups == lookups && monitor.last[1].lookups == number);
    nuthatch_flow_stats stats;
    CHECK(nuthatch_flow_get_stats(table, &stats) == 0);
    CHECK(memcmp(&stats, &monitor.last[0], sizeof(stats)) == 0);
    CHECK(nuthatch_flow_exact_get_stats(exact, &stats) == 0);
    CHECK(memcmp(&stats, &monitor.last[1], sizeof(stats)) == 0);
    nuthatch_flow_exact_destroy(exact);
    nuthatch_flow_destroy(table);
}

static void only_shared_tables_are_shared(void)
{
    nuthatch_flow_config config = config_of(64);
    nuthatch_flow_table *table = table_of(&config), *other = table;
    CHECK(nuthatch_flow_share(table, &other) == NUTHATCH_FLOW_STATUS_NOT_SHARED);
    CHECK(other == NULL);
    nuthatch_flow_destroy(table);
    config.eviction = NUTHATCH_FLOW_EVICTION_LRU;
    CHECK(nuthatch_flow_create_shared(&config, &other) == NUTHATCH_FLOW_STATUS_NOT_SHARED);
    config = config_of(64);
    config.entry = NUTHATCH_FLOW_ENTRY_HASH64;
    CHECK(nuthatch_flow_create_shared(&config, &other) == NUTHATCH_FLOW_STATUS_NOT_SHARED);
    /* The table stays until its last handle is destroyed. */
    config = config_of(64);
    uint64_t value = 0;
    CHECK(nuthatch_flow_create_shared(&config, &table) == 0);
    CHECK(nuthatch_flow_insert(table, hash_of(1), 9, NULL) > 0);
    CHECK(nuthatch_flow_share(table, &other) == 0);
    nuthatch_flow_destroy(table);
    CHECK(nuthatch_flow_lookup(other, hash_of(1), &value) == 1 && value == 9);
    nuthatch_flow_destroy(other);
}

static void run(const char *name, void (*test)(void))
{
    holds = true;
    test();
    printf("test %s ... %s\n", name, holds ? "ok" : "FAILED");
    *(holds ? &passed : &failed) += 1;
}

#define RUN(test) run(#test, test)

int main(int count, char **argument)
{
    if (count > 1 && strcmp(argument[1], "all") == 0)
        widen_step = 1;
    if (nuthatch_flow_hasher_create(1, &hasher) != 0)
        return EXIT_FAILURE;
    RUN(what_is_inserted_is_found);
    RUN(outputs_without_a_result_are_untouched);
    RUN(bulk_lookups_take_any_number);
    RUN(strided_lookups_are_those_of_gathered_hashes);
    RUN(prefetching_changes_nothing);
    RUN(failed_bulk_lookups_touch_nothing);
    RUN(a_hit_moves_the_entry_before_it_is_verified);
    RUN(an_insert_always_finds_a_slot);
    RUN(forgetting_a_value_removes_all_its_flows);
    RUN(every_configuration_is_refused_or_works);
    RUN(bad_configurations_are_refused);
    RUN(sizes_are_rounded_up);
    RUN(null_is_refused);
    RUN(sizes_beyond_the_address_space_are_refused);
    RUN(wide_values_are_refused);
    RUN(hashes_depend_on_the_seed);
    RUN(both_functions_widen_alike);
    RUN(tuples_that_differ_hash_differently);
    RUN(exact_tables_return_the_own_value);
    RUN(exact_tables_refuse_bad_arguments);
    RUN(every_status_has_a_description);
    RUN(enumerations_have_names);
    RUN(threads_share_a_table);
    RUN(another_thread_reads_the_statistics);
    RUN(only_shared_tables_are_shared);
    nuthatch_flow_hasher_destroy(hasher);
    printf("counts: %u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
