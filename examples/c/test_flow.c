/* The library as a C program sees it: what functions promise in the header, one after the other.
 * Prints a line a test, and the counts; fails if one failed. */

/* For anonymous mappings. */
#define _DEFAULT_SOURCE

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <sys/mman.h>

#include <nuthatch_flow.h>

static unsigned passed, failed;
static bool holds;

/* Says what is wrong, and where, if `condition` is not met. */
#define CHECK(condition) check(condition, #condition, __LINE__)

static void check(bool condition, const char *text, int line)
{
    if (!condition) {
        fprintf(stderr, "test_flow.c:%d: not so: %s\n", line, text);
        holds = false;
    }
}

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

/* A place for an answer may hold anything before: it is written to if there is an answer, and not
 * touched if there is none. So it may as well be one that cannot be. */
static void a_place_without_an_answer_is_left_alone(void)
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

/* A bulk lookup of `count` says the same as `count` lookups. */
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

static void bulk_lookups_have_no_ceiling(void)
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

static void an_insert_always_finds_a_place(void)
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

static void values_are_forgotten_together(void)
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

static void every_design_is_refused_or_works(void)
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

/* What creating a table says to a configuration, and that it gives no table with it. */
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
    const uint64_t asked[] = {0, 1, 33, 1000, 1025};
    const uint64_t given[] = {32, 32, 64, 1024, 2048};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        const nuthatch_flow_config config = config_of(asked[i]);
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
    CHECK(nuthatch_flow_lookup_many(NULL, &number, 1, &number, &number) == null);
    CHECK(nuthatch_flow_lookup_many(table, NULL, 1, &number, &number) == null);
    CHECK(nuthatch_flow_lookup_many(table, &number, 1, NULL, &number) == null);
    CHECK(nuthatch_flow_lookup_many(table, &number, 1, &number, NULL) == null);
    CHECK(nuthatch_flow_insert(NULL, 1, 1, NULL) == null);
    CHECK(nuthatch_flow_remove(NULL, 1, NULL) == null);
    CHECK(nuthatch_flow_forget_value(NULL, 1) == null);
    CHECK(nuthatch_flow_clear(NULL) == null);
    CHECK(nuthatch_flow_get_stats(NULL, &stats) == null);
    CHECK(nuthatch_flow_get_stats(table, NULL) == null);
    CHECK(nuthatch_flow_hasher_create(1, NULL) == null);
    CHECK(nuthatch_flow_hash_tuples(NULL, &tuple, 1, &number) == null);
    CHECK(nuthatch_flow_hash_tuples(hasher, NULL, 1, &number) == null);
    CHECK(nuthatch_flow_hash_tuples(hasher, &tuple, 1, NULL) == null);
    CHECK(nuthatch_flow_hash_tuples(hasher, NULL, 0, NULL) == 0);
    CHECK(nuthatch_flow_hash_keys(NULL, &number, 8, 1, &number) == null);
    CHECK(nuthatch_flow_hash_keys(hasher, NULL, 8, 1, &number) == null);
    CHECK(nuthatch_flow_hash_keys(hasher, &number, 8, 1, NULL) == null);
    CHECK(nuthatch_flow_hash_keys(hasher, NULL, 8, 0, NULL) == 0);
    nuthatch_flow_hasher_destroy(NULL);
    nuthatch_flow_destroy(NULL);
    nuthatch_flow_destroy(table);
}

static void sizes_beyond_memory_are_refused(void)
{
    const nuthatch_flow_config config = config_of(64);
    nuthatch_flow_table *table = table_of(&config);
    uint64_t number = 0;
    const int large = NUTHATCH_FLOW_STATUS_COUNT_TOO_LARGE;
    CHECK(nuthatch_flow_lookup_many(table, &number, SIZE_MAX, &number, &number) == large);
    CHECK(nuthatch_flow_hash_keys(hasher, &number, SIZE_MAX / 2, 3, &number) == large);
    CHECK(nuthatch_flow_hash_keys(hasher, &number, SIZE_MAX / 2 + 1, 1, &number) == large);
    CHECK(nuthatch_flow_hash_keys(hasher, &number, 0, SIZE_MAX, &number) == large);
    nuthatch_flow_destroy(table);
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

static void seeds_decide_hashes(void)
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
    CHECK(nuthatch_flow_widen(1) != nuthatch_flow_widen(2));
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

static void exact_tables_answer_with_the_own_value(void)
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

static void exact_tables_refuse_what_they_must(void)
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
    CHECK(nuthatch_flow_exact_lookup_many(table, NULL, 2, value, &hits) == null);
    CHECK(nuthatch_flow_exact_lookup_many(table, NULL, 0, NULL, NULL) == 0);
    CHECK(nuthatch_flow_exact_lookup_many(table, tuple, SIZE_MAX / 8, value, &hits) ==
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

static void every_status_has_words(void)
{
    for (int status = 0; status >= NUTHATCH_FLOW_STATUS_DEFECT; status--)
        CHECK(strlen(nuthatch_flow_error_string(status)) > 0);
    CHECK(strcmp(nuthatch_flow_error_string(1), nuthatch_flow_error_string(-1000)) == 0);
    CHECK(strchr(nuthatch_flow_version(), '.') != NULL);
}

#define THREADS 3
#define FLOWS 2000

struct worker {
    pthread_t thread;
    nuthatch_flow_table *table;
    uint64_t wrong, hits;
};

/* Looks flows up and inserts those that are missing: a hit must have its own flow's value. */
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
    /* The flows stay until the last part is destroyed. */
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

int main(void)
{
    if (nuthatch_flow_hasher_create(1, &hasher) != 0)
        return EXIT_FAILURE;
    RUN(what_is_inserted_is_found);
    RUN(a_place_without_an_answer_is_left_alone);
    RUN(bulk_lookups_have_no_ceiling);
    RUN(an_insert_always_finds_a_place);
    RUN(values_are_forgotten_together);
    RUN(every_design_is_refused_or_works);
    RUN(bad_configurations_are_refused);
    RUN(sizes_are_rounded_up);
    RUN(null_is_refused);
    RUN(sizes_beyond_memory_are_refused);
    RUN(wide_values_are_refused);
    RUN(seeds_decide_hashes);
    RUN(tuples_that_differ_hash_differently);
    RUN(exact_tables_answer_with_the_own_value);
    RUN(exact_tables_refuse_what_they_must);
    RUN(every_status_has_words);
    RUN(threads_share_a_table);
    RUN(only_shared_tables_are_shared);
    nuthatch_flow_hasher_destroy(hasher);
    printf("counts: %u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
