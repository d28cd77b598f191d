/* Every operation of nuthatch_shmem.h that examples/shmem/solver.c has no use for, on each PE with keys of its own. */
#include <nuthatch_shmem.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nuthatch_shmem_store *store;

/* Ends the job if a call did not return what it should. */
static void expect(const char *what, long got, long wanted) {
    if (got != wanted) {
        fprintf(stderr, "%s: %ld instead of %ld: %s\n", what, got, wanted, nuthatch_shmem_error_string((int)got));
        shmem_global_exit(1);
    }
}

static const uint8_t *bytes(const char *text) { return (const uint8_t *)text; }

static void expect_value(const char *key, const char *wanted, uint64_t *unique) {
    uint8_t value[64];
    size_t len = 0;
    expect("gets", nuthatch_shmem_gets(store, bytes(key), strlen(key), value, sizeof value, &len, unique), 1);
    expect("its length", (long)len, (long)strlen(wanted));
    expect("its bytes", memcmp(value, wanted, len), 0);
}

int main(void) {
    nuthatch_shmem_config config;
    nuthatch_shmem_config_default(&config);
    config.memory = 8 << 20;
    config.item_size_max = 64 << 10;
    expect("prepare", nuthatch_shmem_prepare(&config, 0), 0);
    int level;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level);
    nuthatch_shmem_config other_config = config;
    other_config.directory += (size_t)shmem_my_pe();
    expect("open with other settings", nuthatch_shmem_open(&other_config, &store), NUTHATCH_SHMEM_STATUS_SETTINGS);
    expect("open", nuthatch_shmem_open(&config, &store), 0);

    char key[32], other[32];
    size_t len = (size_t)snprintf(key, sizeof key, "key %d", shmem_my_pe());
    size_t other_len = (size_t)snprintf(other, sizeof other, "other %d", shmem_my_pe());
    uint64_t unique = 0, number = 0;
    expect("replace of nothing", nuthatch_shmem_replace(store, bytes(key), len, bytes("x"), 1, 0), 0);
    expect("append to nothing", nuthatch_shmem_append(store, bytes(key), len, bytes("x"), 1), 0);
    expect("touch of nothing", nuthatch_shmem_touch(store, bytes(key), len, 9), 0);
    expect("a swap of nothing", nuthatch_shmem_compare_and_set(store, bytes(key), len, 1, bytes("x"), 1, 0), 0);
    nuthatch_shmem_pair pairs[2] = {
        {bytes(key), len, bytes("b"), 1, 1},
        {bytes(other), other_len, bytes("7"), 1, 1},
    };
    expect("multi_set", nuthatch_shmem_multi_set(store, pairs, 2, 0), 2);
    expect("its first pair", pairs[0].status, 0);
    expect_value(key, "b", &unique);
    expect("append", nuthatch_shmem_append(store, bytes(key), len, bytes("c"), 1), 1);
    expect("prepend", nuthatch_shmem_prepend(store, bytes(key), len, bytes("a"), 1), 1);
    expect("a swap too late", nuthatch_shmem_compare_and_set(store, bytes(key), len, unique, bytes("x"), 1, 0),
           NUTHATCH_SHMEM_STATUS_CHANGED);
    expect_value(key, "abc", &unique);
    expect("a swap", nuthatch_shmem_compare_and_set(store, bytes(key), len, unique, bytes("new"), 3, 0), 1);
    expect("replace", nuthatch_shmem_replace(store, bytes(key), len, bytes("newer"), 5, 0), 1);
    expect_value(key, "newer", NULL);
    expect("decr", nuthatch_shmem_decr(store, bytes(other), other_len, 3, &number), 1);
    expect("its number", (long)number, 4);
    expect("touch", nuthatch_shmem_touch(store, bytes(other), other_len, 100), 1);

    /* No memory has so much: a negative number that became a size. */
    size_t endless = (size_t)-1;
    expect("an endless key", nuthatch_shmem_delete(store, bytes(key), endless), NUTHATCH_SHMEM_STATUS_KEY);
    expect("an endless value", nuthatch_shmem_set(store, bytes(key), len, bytes("x"), endless, 0),
           NUTHATCH_SHMEM_STATUS_TOO_LARGE);
    expect("an endless list", nuthatch_shmem_multi_set(store, pairs, endless, 0), NUTHATCH_SHMEM_STATUS_TOO_LARGE);
    expect_value(key, "newer", NULL);

    nuthatch_shmem_statistics statistics;
    expect("statistics", nuthatch_shmem_get_statistics(store, &statistics), 0);
    expect("its items", statistics.items >= 2, 1);
    expect("its messages", statistics.messages >= 10, 1);
    expect("no room for statistics", nuthatch_shmem_get_statistics(store, NULL), NUTHATCH_SHMEM_STATUS_NULL_POINTER);
    /* Nobody looks at what another flushes. */
    shmem_barrier_all();
    expect("flush", nuthatch_shmem_flush(store), 0);
    expect("get", nuthatch_shmem_get(store, bytes(key), len, NULL, 0, NULL), 0);

    printf("operations: PE %d is right\n", shmem_my_pe());
    fflush(stdout);
    expect("close", nuthatch_shmem_close(store), 0);
    shmem_finalize();
    return 0;
}
