/* A client of Nuthatch and memcached. Generated from crates/client/client-c: do not edit, see its
 * tests/header.rs.
 *
 * All threads of a program share one client: it has one connection to each server, on which the
 * calls of all threads travel together. A child of a fork uses the same client, with connections of
 * its own. A thread that is cancelled (pthread_cancel) in a call ends at its next point of
 * cancellation after the call.
 *
 * Functions return 0 or more on success, and a negative nuthatch_client_status on failure. What
 * happened is said in words by nuthatch_client_error(). A key is any 1 to 250 bytes, a value any
 * bytes; neither ends with a zero byte. What a caller must ensure is under Safety. */

#ifndef NUTHATCH_CLIENT_H
#define NUTHATCH_CLIENT_H

#include <stddef.h>
#include <stdint.h>

/**
 * What a call came to. A negative number is a failure.
 */
typedef enum nuthatch_client_status {
    /**
     * The call did what it says.
     */
    NUTHATCH_CLIENT_STATUS_DONE = 0,
    /**
     * There is no such item.
     */
    NUTHATCH_CLIENT_STATUS_NOT_FOUND = 1,
    /**
     * The item was not stored: add found one, or replace, append or prepend found none.
     */
    NUTHATCH_CLIENT_STATUS_NOT_STORED = 2,
    /**
     * Somebody else has changed the item since its number was read.
     */
    NUTHATCH_CLIENT_STATUS_CHANGED = 3,
    /**
     * The caller is to compute the value.
     */
    NUTHATCH_CLIENT_STATUS_COMPUTE = 4,
    /**
     * Only a server can say.
     */
    NUTHATCH_CLIENT_STATUS_ASK = 5,
    /**
     * A pointer that must not be NULL is NULL.
     */
    NUTHATCH_CLIENT_STATUS_NULL_POINTER = -1,
    /**
     * The key is empty or too long, or the value is too long, or the address or an option is invalid.
     */
    NUTHATCH_CLIENT_STATUS_INVALID = -2,
    /**
     * The server cannot be reached, or too many calls wait for it, or the connection or the time ended before anything was
     * sent: surely nothing has been changed.
     */
    NUTHATCH_CLIENT_STATUS_NOT_SENT = -3,
    /**
     * The connection ended, or the time, before the reply came: a change may have been made.
     */
    NUTHATCH_CLIENT_STATUS_NO_REPLY = -4,
    /**
     * The server refused the request.
     */
    NUTHATCH_CLIENT_STATUS_REFUSED = -5,
    /**
     * The value is no number.
     */
    NUTHATCH_CLIENT_STATUS_NOT_A_NUMBER = -6,
    /**
     * A defect of this library, described on standard error.
     */
    NUTHATCH_CLIENT_STATUS_DEFECT = -7,
    /**
     * The caller's function did not compute the value.
     */
    NUTHATCH_CLIENT_STATUS_NOT_COMPUTED = -8,
} nuthatch_client_status;

/**
 * A client, for all threads of a program.
 */
typedef struct nuthatch_client nuthatch_client;

/**
 * A value that was found. Its memory is freed by nuthatch_client_value_free().
 */
typedef struct nuthatch_client_value {
    /**
     * Its bytes. NULL: there is no value.
     */
    uint8_t *data;
    /**
     * How many bytes.
     */
    size_t length;
    /**
     * A number for nuthatch_client_cas(), which changes with the item. Calls that get items set it.
     */
    uint64_t cas;
    /**
     * The flags with which it was stored. Calls that get items set them.
     */
    uint32_t flags;
    /**
     * How many seconds are left, -1 without an end. Calls that get items set it.
     */
    int64_t seconds_left;
} nuthatch_client_value;

/**
 * Computes a value: writes where its bytes lie and how many they are, and returns 0; or returns another number if it cannot. The
 * bytes stay there until the call that it is for has returned.
 */
typedef int (*nuthatch_client_function)(void *context, const uint8_t **data, size_t *length);

/**
 * A key, for a get of many.
 */
typedef struct nuthatch_client_key {
    /**
     * Its bytes.
     */
    const uint8_t *data;
    /**
     * How many bytes.
     */
    size_t length;
} nuthatch_client_key;

/**
 * An item that is to be stored, of many.
 */
typedef struct nuthatch_client_entry {
    /**
     * The bytes of its key.
     */
    const uint8_t *key;
    /**
     * How many bytes.
     */
    size_t key_length;
    /**
     * The bytes of its value.
     */
    const uint8_t *value;
    /**
     * How many bytes.
     */
    size_t value_length;
    /**
     * For how many milliseconds, rounded up to seconds. Negative: without an end.
     */
    int64_t lifetime_ms;
    /**
     * The caller's own.
     */
    uint32_t flags;
} nuthatch_client_entry;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the library that is linked, as "1.2.3". The caller must not free it.
 */
const char *nuthatch_client_version(void);

/**
 * Makes a client of the servers at this address: "tcp://HOST:PORT,HOST:PORT", "unix:///PATH", "tls://HOST:PORT?ca=FILE" or,
 * on Linux, "shm:///PATH", with options behind "?", which docs/clients.md describes. Nothing is connected yet.
 * After a failure `client` is NULL.
 *
 * # Safety
 * `address` ends with a zero byte. `client` may be written to.
 */
int nuthatch_client_connect(const char *address,
                            struct nuthatch_client **client);

/**
 * Ends a client and its connections. NULL is passed over.
 *
 * # Safety
 * `client` is NULL, or was made by nuthatch_client_connect() and is used by no thread any more.
 */
void nuthatch_client_destroy(struct nuthatch_client *client);

/**
 * Gets the value under a key. Returns 0 if there is one, and then `value` has to be freed; else
 * NUTHATCH_CLIENT_STATUS_NOT_FOUND, or a failure, and `value` is none.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
 */
int nuthatch_client_get(const struct nuthatch_client *client,
                        const uint8_t *key,
                        size_t key_length,
                        struct nuthatch_client_value *value);

/**
 * Gets the value under a key as nuthatch_client_get() does, with what else the server knows of it.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
 */
int nuthatch_client_get_item(const struct nuthatch_client *client,
                             const uint8_t *key,
                             size_t key_length,
                             struct nuthatch_client_value *value);

/**
 * Gets the value under a key, with its flags and its number, if a server's memory says it ("shm://"), without a system call. Else
 * returns NUTHATCH_CLIENT_STATUS_ASK, and nothing was sent: nuthatch_client_get() asks. This makes no connection; so before
 * the first call that asks, and after a server's end, there is no memory. If the server was stopped in the middle of a change of
 * the key, this tries for 200 ms.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
 */
int nuthatch_client_get_local(const struct nuthatch_client *client,
                              const uint8_t *key,
                              size_t key_length,
                              struct nuthatch_client_value *value);

/**
 * Stores a value for so many milliseconds, rounded up to seconds, or without an end if they are negative.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_set(const struct nuthatch_client *client,
                        const uint8_t *key,
                        size_t key_length,
                        const uint8_t *value,
                        size_t value_length,
                        int64_t lifetime_ms,
                        uint32_t flags);

/**
 * Stores a value as nuthatch_client_set() does if there is none; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_add(const struct nuthatch_client *client,
                        const uint8_t *key,
                        size_t key_length,
                        const uint8_t *value,
                        size_t value_length,
                        int64_t lifetime_ms,
                        uint32_t flags);

/**
 * Stores a value as nuthatch_client_set() does if there is one; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_replace(const struct nuthatch_client *client,
                            const uint8_t *key,
                            size_t key_length,
                            const uint8_t *value,
                            size_t value_length,
                            int64_t lifetime_ms,
                            uint32_t flags);

/**
 * Stores a value as nuthatch_client_set() does if the item's number is still `cas`; else returns
 * NUTHATCH_CLIENT_STATUS_CHANGED or NUTHATCH_CLIENT_STATUS_NOT_FOUND.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_cas(const struct nuthatch_client *client,
                        const uint8_t *key,
                        size_t key_length,
                        const uint8_t *value,
                        size_t value_length,
                        int64_t lifetime_ms,
                        uint32_t flags,
                        uint64_t cas);

/**
 * Adds bytes behind the value there is; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_append(const struct nuthatch_client *client,
                           const uint8_t *key,
                           size_t key_length,
                           const uint8_t *value,
                           size_t value_length);

/**
 * Adds bytes in front of the value there is; else returns NUTHATCH_CLIENT_STATUS_NOT_STORED.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_prepend(const struct nuthatch_client *client,
                            const uint8_t *key,
                            size_t key_length,
                            const uint8_t *value,
                            size_t value_length);

/**
 * Gives an item a lifetime of so many milliseconds, or one without an end if they are negative. Returns 0 or
 * NUTHATCH_CLIENT_STATUS_NOT_FOUND.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_touch(const struct nuthatch_client *client,
                          const uint8_t *key,
                          size_t key_length,
                          int64_t lifetime_ms);

/**
 * Removes an item. Returns 0 or NUTHATCH_CLIENT_STATUS_NOT_FOUND.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_delete(const struct nuthatch_client *client,
                           const uint8_t *key,
                           size_t key_length);

/**
 * Removes an item if its number is still `cas`; else returns NUTHATCH_CLIENT_STATUS_CHANGED or
 * NUTHATCH_CLIENT_STATUS_NOT_FOUND.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers.
 */
int nuthatch_client_delete_cas(const struct nuthatch_client *client,
                               const uint8_t *key,
                               size_t key_length,
                               uint64_t cas);

/**
 * Adds to a number, which is stored as decimal digits, and writes the sum, which wraps around at 2^64. Returns 0 or
 * NUTHATCH_CLIENT_STATUS_NOT_FOUND.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers, and `number` may be written to.
 */
int nuthatch_client_incr(const struct nuthatch_client *client,
                         const uint8_t *key,
                         size_t key_length,
                         uint64_t delta,
                         uint64_t *number);

/**
 * Subtracts from a number, down to 0, and writes what is left. Returns 0 or
 * NUTHATCH_CLIENT_STATUS_NOT_FOUND.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers, and `number` may be written to.
 */
int nuthatch_client_decr(const struct nuthatch_client *client,
                         const uint8_t *key,
                         size_t key_length,
                         uint64_t delta,
                         uint64_t *number);

/**
 * Removes all items of all servers.
 *
 * # Safety
 * `client` is a client.
 */
int nuthatch_client_flush_all(const struct nuthatch_client *client);

/**
 * Gets the value under a key; if there is none, `compute(context, …)` computes it, and it is stored for so many milliseconds,
 * rounded up to seconds, or without an end if they are negative. Of all clients that ask at a time one computes, and the others
 * wait, as nuthatch_client_lease() says. Returns
 *
 * * 0: there is a value, which has to be freed, with its flags. If no server could be asked, or took it, it was computed and is
 *   not stored.
 * * NUTHATCH_CLIENT_STATUS_NOT_COMPUTED: `compute` returned another number than 0, which nuthatch_client_error() says. One of
 *   those that wait computes.
 * * Another failure: an argument is invalid.
 *
 * `compute` may call the client. If it takes longer than the lease, another client computes, too.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to. `compute` does what its type
 * says, and always returns: it neither throws nor jumps.
 */
int nuthatch_client_get_or_compute(const struct nuthatch_client *client,
                                   const uint8_t *key,
                                   size_t key_length,
                                   int64_t lifetime_ms,
                                   uint32_t flags,
                                   uint64_t lease_ms,
                                   int64_t early_ms,
                                   nuthatch_client_function compute,
                                   void *context,
                                   struct nuthatch_client_value *value);

/**
 * Gets the value under a key, or the task to compute it, of all clients that ask at a time for one. Returns
 *
 * * 0: there is a value; while another client computes it anew, the old one.
 * * NUTHATCH_CLIENT_STATUS_COMPUTE: the caller is to compute it, and to store it by nuthatch_client_cas() with `value->cas`, or
 *   not at all if that is 0. If it is not computed, and `value` is none, nuthatch_client_delete_cas() lets the next client
 *   compute; else `value` is the old one.
 * * A failure: the value is to be computed, and not stored.
 *
 * If another client computes and there is no old value, this waits for it, `lease_ms` at most, rounded up to seconds. Then
 * another client computes, for which this waits as long. A value that has no more than `early_ms` left, if that is 0 or more,
 * is computed anew. `value` has its flags, and has to be freed in each case.
 *
 * # Safety
 * `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
 */
int nuthatch_client_lease(const struct nuthatch_client *client,
                          const uint8_t *key,
                          size_t key_length,
                          uint64_t lease_ms,
                          int64_t early_ms,
                          struct nuthatch_client_value *value);

/**
 * Gets the values under so many keys, from all servers at once. Each of `values` has to be freed, or is none. If a server
 * failed, returns its failure, and the values of the others are there all the same.
 *
 * # Safety
 * `client` is a client, `keys` has so many keys, each of so many bytes as it says, and `values` has room for so many.
 */
int nuthatch_client_get_many(const struct nuthatch_client *client,
                             const struct nuthatch_client_key *keys,
                             size_t count,
                             struct nuthatch_client_value *values);

/**
 * Gets values as nuthatch_client_get_many() does, with what else the servers know of each.
 *
 * # Safety
 * `client` is a client, `keys` has so many keys, each of so many bytes as it says, and `values` has room for so many.
 */
int nuthatch_client_get_many_items(const struct nuthatch_client *client,
                                   const struct nuthatch_client_key *keys,
                                   size_t count,
                                   struct nuthatch_client_value *values);

/**
 * Stores so many items, each as nuthatch_client_set() does, at all servers at once. Returns the first failure; `outcomes`, if
 * it is not NULL, has what came of each.
 *
 * # Safety
 * `client` is a client, and `entries` has so many, each of so many bytes as it says. `outcomes` is NULL or has room for so
 * many numbers.
 */
int nuthatch_client_set_many(const struct nuthatch_client *client,
                             const struct nuthatch_client_entry *entries,
                             size_t count,
                             int *outcomes);

/**
 * Removes so many items, at all servers at once. Returns the first failure; `outcomes`, if it is not NULL, has for each what
 * nuthatch_client_delete() returns.
 *
 * # Safety
 * `client` is a client, and `keys` has so many, each of so many bytes as it says. `outcomes` is NULL or has room for so many
 * numbers.
 */
int nuthatch_client_delete_many(const struct nuthatch_client *client,
                                const struct nuthatch_client_key *keys,
                                size_t count,
                                int *outcomes);

/**
 * Gives this process' client of the servers at an address, as nuthatch_client_connect() makes it, and makes it if there is
 * none. It lasts as long as the process, and the caller must not destroy it: for callers that begin anew again and again. A
 * process has 64 of them at most. After a failure `client` is NULL.
 *
 * # Safety
 * `address` ends with a zero byte. `client` may be written to.
 */
int nuthatch_client_of_process(const char *address,
                               const struct nuthatch_client **client);

/**
 * Returns what the last failed call of this thread failed at, in words; an empty string if none has. The caller must not free
 * it. It is valid until this thread's next failure.
 */
const char *nuthatch_client_error(void);

/**
 * Frees the memory of a value, which then is none. NULL, and a value that is none, are passed over.
 *
 * # Safety
 * `value` is NULL or was written by a call of this library, and its bytes are used no more.
 */
void nuthatch_client_value_free(struct nuthatch_client_value *value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUTHATCH_CLIENT_H */
