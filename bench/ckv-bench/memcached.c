/* memcached's protocol for stores answers each one, and libmemcached waits for it: writes go one by
 * one whatever --pipeline says, reads go as one multi-get. */
#include "bench.h"

#include <libmemcached/memcached.h>
#include <stdlib.h>
#include <string.h>

struct Connection {
    const Options *options;
    const Records *records;
    memcached_st *memcached;
    Encoder *encoder;
    char (*keys)[KEY_SIZE];
    const char **pointers;
    size_t *lengths;
};

static Connection *mc_open(const Options *o, const Records *records) {
    Connection *c = allocate(sizeof *c);
    c->options = o;
    c->records = records;
    c->memcached = memcached_create(NULL);
    if (!c->memcached) fail(1, "out of memory");
    memcached_return_t rc = o->socket
                                ? memcached_server_add_unix_socket(c->memcached, o->socket)
                                : memcached_server_add(c->memcached, o->host, (in_port_t)o->port);
    if (rc != MEMCACHED_SUCCESS) fail(1, "memcached: %s", memcached_strerror(c->memcached, rc));
    memcached_behavior_set(c->memcached, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    c->encoder = encoder_create(o->encoding, records->longest);
    c->keys = allocate((size_t)o->pipeline * KEY_SIZE);
    c->pointers = allocate((size_t)o->pipeline * sizeof *c->pointers);
    c->lengths = allocate((size_t)o->pipeline * sizeof *c->lengths);
    return c;
}

static void mc_close(Connection *c) {
    memcached_free(c->memcached);
    encoder_free(c->encoder);
    free(c->keys);
    free(c->pointers);
    free(c->lengths);
    free(c);
}

static void check(Connection *c, memcached_return_t rc, const char *what) {
    if (rc != MEMCACHED_SUCCESS)
        fail(1, "memcached, %s: %s", what, memcached_strerror(c->memcached, rc));
}

static void mc_send(Connection *c, int writes, const uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        c->lengths[i] = record_key(c->keys[i], c->options, numbers[i]);
        c->pointers[i] = c->keys[i];
        if (!writes) continue;
        Value value = encoder_encode(c->encoder, records_at(c->records, numbers[i]));
        check(c,
              memcached_set(c->memcached, c->keys[i], c->lengths[i], value.bytes, value.length,
                            c->options->ttl, 0),
              c->keys[i]);
    }
    if (!writes) check(c, memcached_mget(c->memcached, c->pointers, c->lengths, count), "get");
}

/* A multi-get answers in the order of its keys; a key that occurs twice is answered twice. */
static void mc_receive(Connection *c, int writes, const uint64_t *numbers, size_t count) {
    if (writes) return;
    memcached_return_t rc;
    char key[MEMCACHED_MAX_KEY], *value;
    size_t key_length, length;
    uint32_t flags;
    for (size_t i = 0; i < count; i++) {
        value = memcached_fetch(c->memcached, key, &key_length, &length, &flags, &rc);
        if (rc != MEMCACHED_SUCCESS || key_length != c->lengths[i] ||
            memcmp(key, c->keys[i], key_length) != 0)
            fail(1, "%s is missing", c->keys[i]);
        encoder_check(c->encoder, (Value){value, length}, records_at(c->records, numbers[i]),
                      c->keys[i]);
        free(value);
    }
    value = memcached_fetch(c->memcached, key, &key_length, &length, &flags, &rc);
    if (rc != MEMCACHED_END) fail(1, "memcached sent an answer too many");
    free(value);
}

const StoreKind store_memcached = {"memcached", NULL, NULL, mc_open, mc_send, mc_receive, mc_close};
