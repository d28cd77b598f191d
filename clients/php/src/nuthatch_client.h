#define FFI_LIB "libnuthatch_client.so.0"
#define FFI_SCOPE "NUTHATCH_CLIENT"
/* Made of crates/client/client-c/include/nuthatch_client.h: see tests/HeaderTest.php. */
typedef enum nuthatch_client_status {
    NUTHATCH_CLIENT_STATUS_DONE = 0,
    NUTHATCH_CLIENT_STATUS_NOT_FOUND = 1,
    NUTHATCH_CLIENT_STATUS_NOT_STORED = 2,
    NUTHATCH_CLIENT_STATUS_CHANGED = 3,
    NUTHATCH_CLIENT_STATUS_COMPUTE = 4,
    NUTHATCH_CLIENT_STATUS_ASK = 5,
    NUTHATCH_CLIENT_STATUS_NULL_POINTER = -1,
    NUTHATCH_CLIENT_STATUS_INVALID = -2,
    NUTHATCH_CLIENT_STATUS_NOT_SENT = -3,
    NUTHATCH_CLIENT_STATUS_NO_REPLY = -4,
    NUTHATCH_CLIENT_STATUS_REFUSED = -5,
    NUTHATCH_CLIENT_STATUS_NOT_A_NUMBER = -6,
    NUTHATCH_CLIENT_STATUS_DEFECT = -7,
    NUTHATCH_CLIENT_STATUS_NOT_COMPUTED = -8,
} nuthatch_client_status;
typedef struct nuthatch_client nuthatch_client;
typedef struct nuthatch_client_value {
    uint8_t *data;
    size_t length;
    uint64_t cas;
    uint32_t flags;
    int64_t seconds_left;
} nuthatch_client_value;
typedef int (*nuthatch_client_function)(void *context, const char **data, size_t *length);
typedef struct nuthatch_client_key {
    const char *data;
    size_t length;
} nuthatch_client_key;
typedef struct nuthatch_client_entry {
    const char *key;
    size_t key_length;
    const char *value;
    size_t value_length;
    int64_t lifetime_ms;
    uint32_t flags;
} nuthatch_client_entry;
const char *nuthatch_client_version(void);
int nuthatch_client_connect(const char *address,
                            struct nuthatch_client **client);
void nuthatch_client_destroy(struct nuthatch_client *client);
int nuthatch_client_get(const struct nuthatch_client *client,
                        const char *key,
                        size_t key_length,
                        struct nuthatch_client_value *value);
int nuthatch_client_get_item(const struct nuthatch_client *client,
                             const char *key,
                             size_t key_length,
                             struct nuthatch_client_value *value);
int nuthatch_client_get_local(const struct nuthatch_client *client,
                              const char *key,
                              size_t key_length,
                              struct nuthatch_client_value *value);
int nuthatch_client_set(const struct nuthatch_client *client,
                        const char *key,
                        size_t key_length,
                        const char *value,
                        size_t value_length,
                        int64_t lifetime_ms,
                        uint32_t flags);
int nuthatch_client_add(const struct nuthatch_client *client,
                        const char *key,
                        size_t key_length,
                        const char *value,
                        size_t value_length,
                        int64_t lifetime_ms,
                        uint32_t flags);
int nuthatch_client_replace(const struct nuthatch_client *client,
                            const char *key,
                            size_t key_length,
                            const char *value,
                            size_t value_length,
                            int64_t lifetime_ms,
                            uint32_t flags);
int nuthatch_client_cas(const struct nuthatch_client *client,
                        const char *key,
                        size_t key_length,
                        const char *value,
                        size_t value_length,
                        int64_t lifetime_ms,
                        uint32_t flags,
                        uint64_t cas);
int nuthatch_client_append(const struct nuthatch_client *client,
                           const char *key,
                           size_t key_length,
                           const char *value,
                           size_t value_length);
int nuthatch_client_prepend(const struct nuthatch_client *client,
                            const char *key,
                            size_t key_length,
                            const char *value,
                            size_t value_length);
int nuthatch_client_touch(const struct nuthatch_client *client,
                          const char *key,
                          size_t key_length,
                          int64_t lifetime_ms);
int nuthatch_client_delete(const struct nuthatch_client *client,
                           const char *key,
                           size_t key_length);
int nuthatch_client_delete_cas(const struct nuthatch_client *client,
                               const char *key,
                               size_t key_length,
                               uint64_t cas);
int nuthatch_client_incr(const struct nuthatch_client *client,
                         const char *key,
                         size_t key_length,
                         uint64_t delta,
                         uint64_t *number);
int nuthatch_client_decr(const struct nuthatch_client *client,
                         const char *key,
                         size_t key_length,
                         uint64_t delta,
                         uint64_t *number);
int nuthatch_client_flush_all(const struct nuthatch_client *client);
int nuthatch_client_get_or_compute(const struct nuthatch_client *client,
                                   const char *key,
                                   size_t key_length,
                                   int64_t lifetime_ms,
                                   uint32_t flags,
                                   uint64_t lease_ms,
                                   int64_t early_ms,
                                   nuthatch_client_function compute,
                                   void *context,
                                   struct nuthatch_client_value *value);
int nuthatch_client_lease(const struct nuthatch_client *client,
                          const char *key,
                          size_t key_length,
                          uint64_t lease_ms,
                          int64_t early_ms,
                          struct nuthatch_client_value *value);
int nuthatch_client_get_many(const struct nuthatch_client *client,
                             const struct nuthatch_client_key *keys,
                             size_t count,
                             struct nuthatch_client_value *values);
int nuthatch_client_get_many_items(const struct nuthatch_client *client,
                                   const struct nuthatch_client_key *keys,
                                   size_t count,
                                   struct nuthatch_client_value *values);
int nuthatch_client_set_many(const struct nuthatch_client *client,
                             const struct nuthatch_client_entry *entries,
                             size_t count,
                             int *outcomes);
int nuthatch_client_delete_many(const struct nuthatch_client *client,
                                const struct nuthatch_client_key *keys,
                                size_t count,
                                int *outcomes);
int nuthatch_client_of_process(const char *address,
                               const struct nuthatch_client **client);
const char *nuthatch_client_error(void);
void nuthatch_client_value_free(struct nuthatch_client_value *value);
