/* An embarrassingly parallel solver that caches what it has solved, on the PEs of an OpenSHMEM program.
 *
 *     oshcc solver.c $(pkg-config --cflags --libs nuthatch-shmem) -o solver
 *     oshrun -n 4 ./solver                every PE solves, and serves beside it
 *     oshrun -n 4 ./solver 1              the first PE only serves
 *
 * Every PE solves the same problems in an order of its own. What one has solved the others find. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nuthatch_shmem.h>
#include <shmem.h>

#define PROBLEMS 2000

/* Ends the job if a call has failed. */
static int checked(int status)
{
    if (status < 0) {
        fprintf(stderr, "solver: %s\n", nuthatch_shmem_error_string(status));
        shmem_global_exit(1);
    }
    return status;
}

/* Steps of the Collatz sequence of the numbers behind 1,000 times the problem: stands for what takes long. */
static uint64_t solve(uint64_t problem)
{
    uint64_t steps = 0;
    for (uint64_t start = problem * 1000 + 1; start <= problem * 1000 + 1000; start++)
        for (uint64_t number = start; number != 1; steps++)
            number = number % 2 ? 3 * number + 1 : number / 2;
    return steps;
}

/* The solution of a problem, from the PE that has found it first. */
static uint64_t cached(nuthatch_shmem_store *store, uint64_t problem, unsigned *hits)
{
    uint8_t key[32];
    const size_t key_len = (size_t)snprintf((char *)key, sizeof(key), "collatz %" PRIu64, problem);
    uint64_t solution;
    size_t len;
    if (checked(nuthatch_shmem_get(store, key, key_len, (uint8_t *)&solution, sizeof(solution), &len))) {
        ++*hits;
        return solution;
    }
    solution = solve(problem);
    checked(nuthatch_shmem_set(store, key, key_len, (const uint8_t *)&solution, sizeof(solution), 0));
    return solution;
}

/* The first and the last solution in one journey: both are there, or were evicted. */
static void compare(nuthatch_shmem_store *store)
{
    uint64_t solutions[2];
    char last[32];
    snprintf(last, sizeof(last), "collatz %d", PROBLEMS - 1);
    nuthatch_shmem_item items[2] = {
        {.key = (const uint8_t *)"collatz 0", .key_len = 9},
        {.key = (const uint8_t *)last, .key_len = strlen(last)},
    };
    for (int i = 0; i < 2; i++) {
        items[i].buffer = (uint8_t *)&solutions[i];
        items[i].capacity = sizeof(solutions[i]);
    }
    checked(nuthatch_shmem_multi_get(store, items, 2));
    for (int i = 0; i < 2; i++)
        if (items[i].found == 1 && solutions[i] != solve(i ? PROBLEMS - 1 : 0)) {
            fprintf(stderr, "solver: a wrong solution\n");
            shmem_global_exit(1);
        }
}

static void client(nuthatch_shmem_store *store)
{
    const uint8_t *count = (const uint8_t *)"solved";
    unsigned hits = 0;
    uint64_t sum = 0, solved = 0;
    checked(nuthatch_shmem_add(store, count, 6, (const uint8_t *)"0", 1, 0));
    /* Each begins elsewhere. */
    const uint64_t first = (uint64_t)shmem_my_pe() * PROBLEMS / (uint64_t)shmem_n_pes();
    for (uint64_t i = 0; i < PROBLEMS; i++)
        sum += cached(store, (first + i) % PROBLEMS, &hits);
    compare(store);
    checked(nuthatch_shmem_incr(store, count, 6, PROBLEMS - hits, &solved));
    printf("solver: PE %d: sum %" PRIu64 ", solved %u, found %u\n", shmem_my_pe(), sum, PROBLEMS - hits, hits);
}

int main(int argc, char **argv)
{
    nuthatch_shmem_config config;
    nuthatch_shmem_config_default(&config);
    config.servers = argc > 1 ? (size_t)atoi(argv[1]) : 0;
    config.memory = 16 << 20;
    /* Before OpenSHMEM starts, which takes its memory then. */
    if (nuthatch_shmem_prepare(&config, 1 << 20) != 0)
        return 1;
    int level;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) != 0)
        return 1;
    nuthatch_shmem_store *store;
    checked(nuthatch_shmem_open(&config, &store));
    if (nuthatch_shmem_is_server(store))
        checked(nuthatch_shmem_serve(store));
    else
        client(store);
    checked(nuthatch_shmem_close(store));
    shmem_finalize();
    return 0;
}
