/* OpenSHMEM 1.4's calls under names that a linker finds: implementations have some of them as macros, inline functions
 * and C11 generics only. Nothing else is done here but to map peers' memory. */
#define _GNU_SOURCE
#include <shmem.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(OSHMEM_MAJOR_VERSION) && defined(OSHMEM_MINOR_VERSION)
#include <mpi.h>
#endif

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "the atomics on unsigned long are those on words");
_Static_assert(sizeof(uint64_t) == 8 && _Alignof(uint64_t) == 8, "a word is eight bytes");

/* Levels of threads as numbers that are the same everywhere: 0 single, 1 funneled, 2 serialized, 3 multiple. */
static const int levels[] = {SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED,
                             SHMEM_THREAD_MULTIPLE};

static int level_of(int given) {
    for (int level = 3; level > 0; level--)
        if (levels[level] == given)
            return level;
    return 0;
}

/* Sets a variable of the environment unless it is set. */
void nuthatch_fabric_set_default(const char *name, const char *value) { setenv(name, value, 0); }

/* Asks for a level and returns the level that there is; -1: OpenSHMEM does not start. */
int nuthatch_fabric_start(int level) {
    int given = SHMEM_THREAD_SINGLE;
    if (shmem_init_thread(levels[level], &given) != 0)
        return -1;
    return level_of(given);
}

/* Whether the library is one for which more than the standard's promises was verified. The one that runs is asked, not
 * the header: Open MPI 5's has the same soname. (Open MPI's MPI may be asked at any time.) */
int nuthatch_fabric_is_open_mpi_4_1(void) {
#if defined(OSHMEM_MAJOR_VERSION) && defined(OSHMEM_MINOR_VERSION)
    static const char verified[] = "Open MPI v4.1.";
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    return MPI_Get_library_version(version, &length) == MPI_SUCCESS &&
           strncmp(version, verified, sizeof verified - 1) == 0;
#else
    return 0;
#endif
}

int nuthatch_fabric_level(void) {
    int given = SHMEM_THREAD_SINGLE;
    shmem_query_thread(&given);
    return level_of(given);
}

void nuthatch_fabric_finalize(void) { shmem_finalize(); }
void nuthatch_fabric_exit(int status) { shmem_global_exit(status); }
int nuthatch_fabric_pe(void) { return shmem_my_pe(); }
int nuthatch_fabric_pes(void) { return shmem_n_pes(); }

void *nuthatch_fabric_align(size_t alignment, size_t bytes) { return shmem_align(alignment, bytes); }
void nuthatch_fabric_free(void *memory) { shmem_free(memory); }
void *nuthatch_fabric_ptr(const void *at, int pe) { return shmem_ptr(at, pe); }

/* Maps the pages of memory that is there into this process, where the kernel can (Linux 5.14). */
void nuthatch_fabric_map(const void *at, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)at + page - 1) / page * page, end = ((uintptr_t)at + bytes) / page * page;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#else
    (void)at, (void)bytes;
#endif
}

void nuthatch_fabric_put(uint64_t *to, const uint64_t *from, size_t words, int pe) {
    shmem_put64(to, from, words, pe);
}
void nuthatch_fabric_get(uint64_t *into, const uint64_t *from, size_t words, int pe) {
    shmem_get64(into, from, words, pe);
}
void nuthatch_fabric_put_nbi(uint64_t *to, const uint64_t *from, size_t words, int pe) {
    shmem_put64_nbi(to, from, words, pe);
}
void nuthatch_fabric_get_nbi(uint64_t *into, const uint64_t *from, size_t words, int pe) {
    shmem_get64_nbi(into, from, words, pe);
}

uint64_t nuthatch_fabric_compare_swap(uint64_t *at, uint64_t expected, uint64_t word, int pe) {
    return shmem_ulong_atomic_compare_swap((unsigned long *)at, expected, word, pe);
}
uint64_t nuthatch_fabric_fetch_add(uint64_t *at, uint64_t by, int pe) {
    return shmem_ulong_atomic_fetch_add((unsigned long *)at, by, pe);
}
uint64_t nuthatch_fabric_swap(uint64_t *at, uint64_t word, int pe) {
    return shmem_ulong_atomic_swap((unsigned long *)at, word, pe);
}
uint64_t nuthatch_fabric_fetch(const uint64_t *at, int pe) {
    return shmem_ulong_atomic_fetch((const unsigned long *)at, pe);
}
void nuthatch_fabric_set(uint64_t *at, uint64_t word, int pe) {
    shmem_ulong_atomic_set((unsigned long *)at, word, pe);
}

void nuthatch_fabric_fence(void) { shmem_fence(); }
void nuthatch_fabric_quiet(void) { shmem_quiet(); }
void nuthatch_fabric_barrier_all(void) { shmem_barrier_all(); }
