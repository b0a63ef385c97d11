#include "bench.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Connection {
    const Options *options;
    const Records *records;
    redisContext *redis;
    Encoder *encoder;
    char ttl[24];
};

static Connection *redis_open(const Options *o, const Records *records) {
    Connection *c = allocate(sizeof *c);
    c->options = o;
    c->records = records;
    c->redis = o->socket ? redisConnectUnix(o->socket) : redisConnect(o->host, (int)o->port);
    if (!c->redis) fail(1, "out of memory");
    if (c->redis->err) fail(1, "cannot connect: %s", c->redis->errstr);
    c->encoder = encoder_create(o->encoding, records->longest);
    snprintf(c->ttl, sizeof c->ttl, "%ld", o->ttl);
    return c;
}

static void redis_close(Connection *c) {
    redisFree(c->redis);
    encoder_free(c->encoder);
    free(c);
}

/* Key and value of a pair as the store takes them: `argv` gets what follows the command's name. */
static int append(Connection *c, const char *name, const char **argv, size_t *lengths, int argc) {
    argv[0] = name;
    lengths[0] = strlen(name);
    return redisAppendCommandArgv(c->redis, argc, argv, lengths) == REDIS_OK;
}

static void append_string(Connection *c, int writes, uint64_t number, const char *set,
                          const char *get) {
    char key[KEY_SIZE];
    const char *argv[5] = {NULL, key, NULL, "EX", c->ttl};
    size_t lengths[5] = {0, record_key(key, c->options, number), 0, 2, strlen(c->ttl)};
    int argc = 2;
    if (writes) {
        Value value = encoder_encode(c->encoder, records_at(c->records, number));
        argv[2] = value.bytes;
        lengths[2] = value.length;
        argc = c->options->ttl ? 5 : 3;
    }
    if (!append(c, writes ? set : get, argv, lengths, argc)) fail(1, "out of memory");
}

/* The first characters of the key name the hash, the rest the field. */
static void append_field(Connection *c, int writes, uint64_t number) {
    char key[KEY_SIZE];
    size_t length = record_key(key, c->options, number);
    size_t bucket = c->options->bucket ? (size_t)c->options->bucket : length - 3;
    const char *argv[4] = {NULL, key, key + bucket, NULL};
    size_t lengths[4] = {0, bucket, length - bucket, 0};
    if (writes) {
        Value value = encoder_encode(c->encoder, records_at(c->records, number));
        argv[3] = value.bytes;
        lengths[3] = value.length;
    }
    if (!append(c, writes ? "HSET" : "HGET", argv, lengths, writes ? 4 : 3))
        fail(1, "out of memory");
}

static void flush(Connection *c) {
    for (int done = 0; !done;)
        if (redisBufferWrite(c->redis, &done) != REDIS_OK) fail(1, "%s", c->redis->errstr);
}

static void strings_send(Connection *c, int writes, const uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) append_string(c, writes, numbers[i], "SET", "GET");
    flush(c);
}

static void ckv_send(Connection *c, int writes, const uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) append_string(c, writes, numbers[i], "CSET", "CGET");
    flush(c);
}

static void hashes_send(Connection *c, int writes, const uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) append_field(c, writes, numbers[i]);
    flush(c);
}

static void redis_receive(Connection *c, int writes, const uint64_t *numbers, size_t count) {
    char key[KEY_SIZE];
    for (size_t i = 0; i < count; i++) {
        void *answer;
        if (redisGetReply(c->redis, &answer) != REDIS_OK) fail(1, "%s", c->redis->errstr);
        const redisReply *reply = answer;
        record_key(key, c->options, numbers[i]);
        if (reply->type == REDIS_REPLY_ERROR)
            fail(1, "%s: the server answered: %s", key, reply->str);
        if (!writes) {
            if (reply->type != REDIS_REPLY_STRING) fail(1, "%s is missing", key);
            encoder_check(c->encoder, (Value){reply->str, (size_t)reply->len},
                          records_at(c->records, numbers[i]), key);
        }
        freeReplyObject(answer);
    }
}

const StoreKind store_strings = {"strings", redis_open, strings_send, redis_receive, redis_close};
const StoreKind store_hashes = {"hashes", redis_open, hashes_send, redis_receive, redis_close};
const StoreKind store_ckv = {"ckv", redis_open, ckv_send, redis_receive, redis_close};
