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

redisContext *redis_connect(const Options *o) {
    redisContext *redis =
        o->socket ? redisConnectUnix(o->socket) : redisConnect(o->host, (int)o->port);
    if (!redis) fail(1, "out of memory");
    if (redis->err) fail(1, "cannot connect: %s", redis->errstr);
    return redis;
}

static Connection *redis_open(const Options *o, const Records *records) {
    Connection *c = allocate(sizeof *c);
    c->options = o;
    c->records = records;
    c->redis = redis_connect(o);
    c->encoder = encoder_create(o->encoding, records->longest);
    snprintf(c->ttl, sizeof c->ttl, "%ld", o->ttl);
    return c;
}

static void redis_close(Connection *c) {
    redisFree(c->redis);
    encoder_free(c->encoder);
    free(c);
}

/* Puts the command for a record into the connection's buffer. The first characters of the key name
 * the hash, the rest the field, where there are hashes. */
static void append(Connection *c, int writes, uint64_t number) {
    const Options *o = c->options;
    char key[KEY_SIZE];
    const char *argv[6] = {writes ? o->kind->write : o->kind->read, key};
    size_t length = record_key(key, o, number), lengths[6] = {strlen(argv[0]), length};
    int argc = 2;
    if (o->kind == &store_hashes) {
        lengths[1] = o->bucket ? (size_t)o->bucket : length - 3;
        argv[2] = key + lengths[1];
        lengths[2] = length - lengths[1];
        argc = 3;
    }
    if (writes) {
        Value value = encoder_encode(c->encoder, records_at(c->records, number));
        argv[argc] = value.bytes;
        lengths[argc++] = value.length;
        if (o->ttl) {
            argv[argc] = "EX";
            lengths[argc++] = 2;
            argv[argc] = c->ttl;
            lengths[argc++] = strlen(c->ttl);
        }
    }
    if (redisAppendCommandArgv(c->redis, argc, argv, lengths) != REDIS_OK) fail(1, "out of memory");
}

static void redis_send(Connection *c, int writes, const uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) append(c, writes, numbers[i]);
    for (int done = 0; !done;)
        if (redisBufferWrite(c->redis, &done) != REDIS_OK) fail(1, "%s", c->redis->errstr);
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

#define STORE(name, write, read)                                                                   \
    { name, write, read, redis_open, redis_send, redis_receive, redis_close }

const StoreKind store_strings = STORE("strings", "SET", "GET");
const StoreKind store_hashes = STORE("hashes", "HSET", "HGET");
const StoreKind store_ckv = STORE("ckv", "CSET", "CGET");
