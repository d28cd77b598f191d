/* Tests of the C interface: what the header promises. Called with the address of an empty server, and one of none. */

#define _POSIX_C_SOURCE 200809L
/* syscall() */
#define _DEFAULT_SOURCE

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <nuthatch_client.h>

#undef NDEBUG
#define BYTES(text) (const uint8_t *)(text), strlen(text)

static int has(const nuthatch_client_value *value, const char *text)
{
    return value->length == strlen(text) && memcmp(value->data, text, value->length) == 0;
}

static void each_call(const nuthatch_client *client)
{
    nuthatch_client_value value;
    assert(nuthatch_client_get(client, BYTES("k"), &value) == NUTHATCH_CLIENT_STATUS_NOT_FOUND);
    assert(value.data == NULL);
    assert(nuthatch_client_set(client, BYTES("k"), BYTES("value"), 60000, 7) == 0);
    assert(nuthatch_client_get(client, BYTES("k"), &value) == 0);
    assert(has(&value, "value"));
    nuthatch_client_value_free(&value);
    nuthatch_client_value_free(&value);
    nuthatch_client_value_free(NULL);

    assert(nuthatch_client_get_item(client, BYTES("k"), &value) == 0);
    assert(has(&value, "value") && value.flags == 7 && value.seconds_left > 0 && value.seconds_left <= 60);
    const uint64_t cas = value.cas;
    nuthatch_client_value_free(&value);
    assert(nuthatch_client_cas(client, BYTES("k"), BYTES("mine"), -1, 0, cas) == 0);
    assert(nuthatch_client_cas(client, BYTES("k"), BYTES("late"), -1, 0, cas) == NUTHATCH_CLIENT_STATUS_CHANGED);
    assert(nuthatch_client_add(client, BYTES("k"), BYTES("v"), -1, 0) == NUTHATCH_CLIENT_STATUS_NOT_STORED);
    assert(nuthatch_client_replace(client, BYTES("none"), BYTES("v"), -1, 0) == NUTHATCH_CLIENT_STATUS_NOT_STORED);
    assert(nuthatch_client_append(client, BYTES("k"), BYTES(">")) == 0);
    assert(nuthatch_client_prepend(client, BYTES("k"), BYTES("<")) == 0);
    assert(nuthatch_client_touch(client, BYTES("k"), 1000) == 0);
    assert(nuthatch_client_set(client, BYTES("empty"), NULL, 0, -1, 0) == 0);

    const nuthatch_client_key keys[] = {{BYTES("k")}, {BYTES("none")}, {BYTES("empty")}};
    nuthatch_client_value values[3];
    assert(nuthatch_client_get_many(client, keys, 3, values) == 0);
    assert(has(&values[0], "<mine>") && values[1].data == NULL && values[2].data != NULL && values[2].length == 0);
    for (int at = 0; at < 3; at++)
        nuthatch_client_value_free(&values[at]);

    uint64_t number = 0;
    assert(nuthatch_client_incr(client, BYTES("n"), 1, &number) == NUTHATCH_CLIENT_STATUS_NOT_FOUND);
    assert(nuthatch_client_set(client, BYTES("n"), BYTES("9"), -1, 0) == 0);
    assert(nuthatch_client_incr(client, BYTES("n"), 3, &number) == 0 && number == 12);
    assert(nuthatch_client_decr(client, BYTES("n"), 50, &number) == 0 && number == 0);
    assert(nuthatch_client_incr(client, BYTES("k"), 1, &number) == NUTHATCH_CLIENT_STATUS_NOT_A_NUMBER);
    assert(nuthatch_client_delete(client, BYTES("k")) == 0);
    assert(nuthatch_client_delete(client, BYTES("k")) == NUTHATCH_CLIENT_STATUS_NOT_FOUND);
    assert(nuthatch_client_flush_all(client) == 0);
    assert(nuthatch_client_get(client, BYTES("n"), &value) == NUTHATCH_CLIENT_STATUS_NOT_FOUND);
}

static void many_keys(const nuthatch_client *client)
{
    const nuthatch_client_entry entries[] = {
        {(const uint8_t *)"m1", 2, (const uint8_t *)"one", 3, 60000, 1},
        {(const uint8_t *)"", 0, (const uint8_t *)"no", 2, -1, 0},
        {(const uint8_t *)"m2", 2, NULL, 0, -1, 2},
    };
    int outcomes[3];
    assert(nuthatch_client_set_many(client, entries, 3, outcomes) == NUTHATCH_CLIENT_STATUS_INVALID);
    assert(outcomes[0] == 0 && outcomes[1] == NUTHATCH_CLIENT_STATUS_INVALID && outcomes[2] == 0);
    assert(nuthatch_client_set_many(client, entries, 1, NULL) == 0);
    assert(nuthatch_client_set_many(client, NULL, 0, NULL) == 0);
    assert(nuthatch_client_set_many(client, NULL, 1, outcomes) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);

    const nuthatch_client_key keys[] = {{BYTES("m1")}, {BYTES("none")}, {BYTES("m2")}};
    nuthatch_client_value values[3];
    assert(nuthatch_client_get_many_items(client, keys, 3, values) == 0);
    assert(has(&values[0], "one") && values[0].flags == 1 && values[0].seconds_left > 0 && values[0].cas != 0);
    assert(values[1].data == NULL && has(&values[2], "") && values[2].flags == 2 && values[2].seconds_left == -1);
    assert(nuthatch_client_delete_cas(client, BYTES("m1"), values[0].cas + 1) == NUTHATCH_CLIENT_STATUS_CHANGED);
    assert(nuthatch_client_delete_cas(client, BYTES("m1"), values[0].cas) == 0);
    for (int at = 0; at < 3; at++)
        nuthatch_client_value_free(&values[at]);
    assert(nuthatch_client_delete_many(client, keys, 3, outcomes) == 0);
    assert(outcomes[0] == NUTHATCH_CLIENT_STATUS_NOT_FOUND && outcomes[1] == NUTHATCH_CLIENT_STATUS_NOT_FOUND);
    assert(outcomes[2] == 0);
}

static void one_computes(const nuthatch_client *client)
{
    nuthatch_client_value value;
    assert(nuthatch_client_lease(client, BYTES("c"), 60000, -1, &value) == NUTHATCH_CLIENT_STATUS_COMPUTE);
    assert(value.data == NULL && value.cas != 0);
    assert(nuthatch_client_cas(client, BYTES("c"), BYTES("computed"), 20000, 3, value.cas) == 0);
    assert(nuthatch_client_lease(client, BYTES("c"), 60000, -1, &value) == 0);
    assert(has(&value, "computed") && value.flags == 3);
    nuthatch_client_value_free(&value);

    /* It has 20 seconds left: one is to compute it anew, and the others have the old one. */
    assert(nuthatch_client_lease(client, BYTES("c"), 60000, 30000, &value) == NUTHATCH_CLIENT_STATUS_COMPUTE);
    assert(has(&value, "computed") && value.flags == 3 && value.cas != 0);
    nuthatch_client_value_free(&value);
    assert(nuthatch_client_lease(client, BYTES("c"), 60000, 30000, &value) == 0 && has(&value, "computed"));
    nuthatch_client_value_free(&value);

    /* A computation that failed: the next one computes at once. */
    assert(nuthatch_client_lease(client, BYTES("f"), 60000, -1, &value) == NUTHATCH_CLIENT_STATUS_COMPUTE);
    assert(nuthatch_client_delete_cas(client, BYTES("f"), value.cas) == 0);
    assert(nuthatch_client_lease(client, BYTES("f"), 1000, -1, &value) == NUTHATCH_CLIENT_STATUS_COMPUTE);
    /* One that never ends: the time of the lease is waited for. */
    assert(nuthatch_client_lease(client, BYTES("f"), 1000, -1, &value) == NUTHATCH_CLIENT_STATUS_COMPUTE);
    assert(nuthatch_client_lease(client, BYTES(""), 1000, -1, &value) == NUTHATCH_CLIENT_STATUS_INVALID);
}

#ifdef __linux__
struct silent {
    const nuthatch_client *client;
    int calls;
};

/* The kernel ends this thread at its first system call, but for the one that ends it. */
static void *gets_in_silence(void *context)
{
    struct silent *silent = context;
    for (int call = 0; call < 1000; call++) {
        nuthatch_client_value value;
        if (nuthatch_client_get_local(silent->client, BYTES("local"), &value) != 0 || !has(&value, "here"))
            break;
        nuthatch_client_value_free(&value);
        /* After the first one the thread has memory for its values. */
        if (call == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
            break;
        silent->calls = call + 1;
    }
    syscall(SYS_exit, 0);
    return NULL;
}

static void local_gets_make_no_system_call(const nuthatch_client *client)
{
    struct silent silent = {client, 0};
    pthread_t thread;
    assert(pthread_create(&thread, NULL, gets_in_silence, &silent) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(silent.calls == 1000);
}
#endif

/* What is known without a server: by its memory all of it, by a socket nothing. */
static void local_gets(const char *address)
{
    const int has_memory = strncmp(address, "shm://", 6) == 0;
    nuthatch_client *client;
    nuthatch_client_value value;
    assert(nuthatch_client_connect(address, &client) == 0);
    assert(nuthatch_client_get_local(client, BYTES("local"), &value) == NUTHATCH_CLIENT_STATUS_ASK);
    assert(value.data == NULL);
    assert(nuthatch_client_set(client, BYTES("local"), BYTES("here"), -1, 7) == 0);
    for (int call = 0; call < 1000; call++) {
        const int found = nuthatch_client_get_local(client, BYTES("local"), &value);
        assert(found == (has_memory ? 0 : NUTHATCH_CLIENT_STATUS_ASK));
        assert(has_memory ? has(&value, "here") && value.flags == 7 && value.cas != 0 : value.data == NULL);
        nuthatch_client_value_free(&value);
    }
#ifdef __linux__
    if (has_memory)
        local_gets_make_no_system_call(client);
#endif
    assert(nuthatch_client_delete(client, BYTES("local")) == 0);
    assert(nuthatch_client_get_local(client, BYTES("local"), &value) ==
           (has_memory ? NUTHATCH_CLIENT_STATUS_NOT_FOUND : NUTHATCH_CLIENT_STATUS_ASK));
    assert(nuthatch_client_get_local(client, BYTES(""), &value) == NUTHATCH_CLIENT_STATUS_INVALID);
    assert(nuthatch_client_get_local(NULL, BYTES("k"), &value) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_get_local(client, BYTES("k"), NULL) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    nuthatch_client_destroy(client);
}

struct computation {
    const char *text;
    int status, calls;
};

static int compute(void *context, const uint8_t **data, size_t *length)
{
    struct computation *computation = context;
    computation->calls++;
    *data = (const uint8_t *)computation->text;
    *length = strlen(computation->text);
    return computation->status;
}

static int computes(void *context, const uint8_t **data, size_t *length)
{
    (void)context, (void)data;
    *length = 3;
    return 0;
}

static void a_function_computes(const nuthatch_client *client)
{
    nuthatch_client_value value;
    struct computation computation = {"computed", 0, 0};
    for (int call = 0; call < 3; call++) {
        assert(nuthatch_client_get_or_compute(client, BYTES("g"), 20000, 5, 60000, -1, compute, &computation, &value) == 0);
        assert(has(&value, "computed") && value.flags == 5 && computation.calls == 1);
        nuthatch_client_value_free(&value);
    }
    assert(nuthatch_client_get_item(client, BYTES("g"), &value) == 0 && value.flags == 5 && value.seconds_left <= 20);
    nuthatch_client_value_free(&value);
    /* Anew, before it expires. What fails then leaves the old value. */
    computation = (struct computation){"", 9, 0};
    assert(nuthatch_client_get_or_compute(client, BYTES("g"), 20000, 0, 60000, 30000, compute, &computation, &value) ==
           NUTHATCH_CLIENT_STATUS_NOT_COMPUTED);
    assert(value.data == NULL && computation.calls == 1);
    assert(strstr(nuthatch_client_error(), "returned 9") != NULL);
    assert(nuthatch_client_get(client, BYTES("g"), &value) == 0 && has(&value, "computed"));
    nuthatch_client_value_free(&value);

    /* After a failure the next one computes at once: the lease would be an hour. */
    computation = (struct computation){"late", -1, 0};
    assert(nuthatch_client_get_or_compute(client, BYTES("h"), -1, 0, 3600000, -1, compute, &computation, &value) ==
           NUTHATCH_CLIENT_STATUS_NOT_COMPUTED);
    computation.status = 0;
    assert(nuthatch_client_get_or_compute(client, BYTES("h"), -1, 0, 3600000, -1, compute, &computation, &value) == 0);
    assert(has(&value, "late") && computation.calls == 2);
    nuthatch_client_value_free(&value);
    /* A value without its bytes, and arguments without a value. */
    assert(nuthatch_client_get_or_compute(client, BYTES("i"), -1, 0, 3600000, -1, computes, NULL, &value) ==
           NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_get_or_compute(client, BYTES("i"), -1, 0, 3600000, -1, NULL, NULL, &value) ==
           NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_get(client, BYTES("i"), &value) == NUTHATCH_CLIENT_STATUS_NOT_FOUND);
    computation.calls = 0;
    assert(nuthatch_client_get_or_compute(client, BYTES(""), -1, 0, 1000, -1, compute, &computation, &value) ==
           NUTHATCH_CLIENT_STATUS_INVALID);
    assert(computation.calls == 0);
}

static void a_process_keeps_clients(const char *address)
{
    const nuthatch_client *first, *second, *other;
    char text[64];
    assert(nuthatch_client_of_process(address, &first) == 0 && nuthatch_client_of_process(address, &second) == 0);
    assert(first == second && first != NULL);
    assert(nuthatch_client_of_process("tcp://127.0.0.1:1", &other) == 0 && other != first);
    assert(nuthatch_client_of_process("http://a", &other) == NUTHATCH_CLIENT_STATUS_INVALID && other == NULL);
    other = first;
    assert(nuthatch_client_of_process(NULL, &other) == NUTHATCH_CLIENT_STATUS_NULL_POINTER && other == NULL);
    other = first;
    assert(nuthatch_client_of_process("tcp://\xff", &other) == NUTHATCH_CLIENT_STATUS_INVALID && other == NULL);
    assert(nuthatch_client_of_process(address, NULL) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    int status = 0;
    for (int at = 0; at < 64; at++) {
        snprintf(text, sizeof text, "tcp://127.0.0.1:%d", at + 1);
        status = nuthatch_client_of_process(text, &other);
    }
    assert(status == NUTHATCH_CLIENT_STATUS_INVALID && strstr(nuthatch_client_error(), "64") != NULL);
    assert(nuthatch_client_of_process(address, &second) == 0 && first == second);

    nuthatch_client_value value;
    assert(nuthatch_client_set(first, BYTES("parent's"), BYTES("v"), -1, 0) == 0);
    const pid_t child = fork();
    if (child == 0) {
        int is_right = nuthatch_client_set(first, BYTES("child's"), BYTES("v"), -1, 0) == 0 &&
                       nuthatch_client_get(first, BYTES("parent's"), &value) == 0;
        _exit(is_right ? 7 : 1);
    }
    assert(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert(nuthatch_client_get(first, BYTES("child's"), &value) == 0 && has(&value, "v"));
    nuthatch_client_value_free(&value);
}

static void wrong_arguments(nuthatch_client *client)
{
    nuthatch_client_value value;
    nuthatch_client *none = client;
    assert(nuthatch_client_connect(NULL, &none) == NUTHATCH_CLIENT_STATUS_NULL_POINTER && none == NULL);
    assert(nuthatch_client_connect("tcp://a", NULL) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_connect("http://a", &none) == NUTHATCH_CLIENT_STATUS_INVALID && none == NULL);
    assert(strstr(nuthatch_client_error(), "http://") != NULL);
    assert(nuthatch_client_connect("tcp://\xff", &none) == NUTHATCH_CLIENT_STATUS_INVALID);
    assert(nuthatch_client_get(NULL, BYTES("k"), &value) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_get(client, BYTES("k"), NULL) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_get(client, NULL, 3, &value) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_get(client, NULL, 0, &value) == NUTHATCH_CLIENT_STATUS_INVALID);
    assert(strstr(nuthatch_client_error(), "a key of 0 bytes") != NULL);
    assert(nuthatch_client_get(client, (const uint8_t *)"k", SIZE_MAX, &value) == NUTHATCH_CLIENT_STATUS_INVALID);
    nuthatch_client_destroy(NULL);

    /* After any failure there is no value to be freed, and nothing was changed of which the result has no place. */
    nuthatch_client_value values[2];
    const nuthatch_client_key keys[] = {{BYTES("k")}, {NULL, 3}};
    memset(&value, 0xff, sizeof(value));
    assert(nuthatch_client_get(NULL, BYTES("k"), &value) < 0 && value.data == NULL);
    memset(&value, 0xff, sizeof(value));
    assert(nuthatch_client_get_item(client, NULL, 3, &value) < 0 && value.data == NULL);
    memset(values, 0xff, sizeof(values));
    assert(nuthatch_client_get_many(client, keys, 2, values) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(values[0].data == NULL && values[1].data == NULL);
    memset(values, 0xff, sizeof(values));
    assert(nuthatch_client_get_many(client, NULL, 2, values) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(values[0].data == NULL && values[1].data == NULL);
    assert(nuthatch_client_get_many(client, keys, 2, NULL) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_get_many(client, keys, SIZE_MAX, values) == NUTHATCH_CLIENT_STATUS_INVALID);
    assert(nuthatch_client_get_many(client, NULL, 0, NULL) == 0);
    uint64_t number = 0;
    assert(nuthatch_client_set(client, BYTES("n"), BYTES("9"), -1, 0) == 0);
    assert(nuthatch_client_incr(client, BYTES("n"), 1, NULL) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_decr(client, BYTES("n"), 1, NULL) == NUTHATCH_CLIENT_STATUS_NULL_POINTER);
    assert(nuthatch_client_incr(client, BYTES("n"), 0, &number) == 0 && number == 9);
}

/* Both the parent and its child go on with the same client. */
static void a_child_shares_no_connection(nuthatch_client *client)
{
    assert(nuthatch_client_set(client, BYTES("k"), BYTES("v"), -1, 0) == 0);
    const pid_t child = fork();
    assert(child >= 0);
    for (int call = 0; call < 100; call++) {
        nuthatch_client_value value;
        const char *text = child == 0 ? "of the child" : "parent's";
        const char *key = child == 0 ? "c" : "p";
        assert(nuthatch_client_set(client, BYTES(key), BYTES(text), -1, 0) == 0);
        assert(nuthatch_client_get(client, BYTES(key), &value) == 0 && has(&value, text));
        nuthatch_client_value_free(&value);
    }
    if (child == 0) {
        nuthatch_client_destroy(client);
        _exit(7);
    }
    int status;
    assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert(nuthatch_client_set(client, BYTES("k"), BYTES("w"), -1, 0) == 0);
}

static void *counts(void *client)
{
    uint64_t number;
    for (int call = 0; call < 200; call++)
        assert(nuthatch_client_incr(client, BYTES("shared"), 1, &number) == 0);
    return NULL;
}

static void threads_share_a_client(nuthatch_client *client)
{
    pthread_t threads[8];
    uint64_t number = 0;
    assert(nuthatch_client_set(client, BYTES("shared"), BYTES("0"), -1, 0) == 0);
    for (int at = 0; at < 8; at++)
        assert(pthread_create(&threads[at], NULL, counts, client) == 0);
    for (int at = 0; at < 8; at++)
        assert(pthread_join(threads[at], NULL) == 0);
    assert(nuthatch_client_incr(client, BYTES("shared"), 0, &number) == 0 && number == 1600);
}

static void *calls_until_cancelled(void *client)
{
    nuthatch_client_value value;
    for (;;) {
        assert(nuthatch_client_set(client, BYTES("cancelled"), BYTES("v"), -1, 0) == 0);
        assert(nuthatch_client_get(client, BYTES("cancelled"), &value) == 0 && has(&value, "v"));
        nuthatch_client_value_free(&value);
        pthread_testcancel();
    }
}

/* They leave neither the process nor the client in disorder, whatever they do for other threads. */
static void threads_are_cancelled(nuthatch_client *client)
{
    pthread_t threads[8];
    void *outcome;
    for (int round = 0; round < 20; round++) {
        for (int at = 0; at < 8; at++)
            assert(pthread_create(&threads[at], NULL, calls_until_cancelled, client) == 0);
        assert(nuthatch_client_set(client, BYTES("k"), BYTES("v"), -1, 0) == 0);
        for (int at = 0; at < 8; at++)
            assert(pthread_cancel(threads[at]) == 0);
        for (int at = 0; at < 8; at++)
            assert(pthread_join(threads[at], &outcome) == 0 && outcome == PTHREAD_CANCELED);
    }
    assert(nuthatch_client_set(client, BYTES("k"), BYTES("v"), -1, 0) == 0);
}

int main(int count, char **words)
{
    assert(count == 3);
    nuthatch_client *client = NULL;
    assert(nuthatch_client_connect(words[1], &client) == 0);
    each_call(client);
    many_keys(client);
    one_computes(client);
    a_function_computes(client);
    local_gets(words[1]);
    a_process_keeps_clients(words[1]);
    wrong_arguments(client);
    threads_share_a_client(client);
    threads_are_cancelled(client);
    a_child_shares_no_connection(client);
    nuthatch_client_destroy(client);

    assert(nuthatch_client_connect(words[2], &client) == 0);
    assert(nuthatch_client_set(client, BYTES("k"), BYTES("v"), -1, 0) == NUTHATCH_CLIENT_STATUS_NOT_SENT);
    assert(strstr(nuthatch_client_error(), "is down") != NULL);
    /* Without a server the value is computed. */
    nuthatch_client_value value;
    struct computation computation = {"alone", 0, 0};
    assert(nuthatch_client_get_or_compute(client, BYTES("k"), -1, 2, 1000, -1, compute, &computation, &value) == 0);
    assert(has(&value, "alone") && value.flags == 2);
    nuthatch_client_value_free(&value);
    nuthatch_client_destroy(client);
    printf("%s\n", nuthatch_client_version());
    return 0;
}
