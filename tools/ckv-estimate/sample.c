/* sample.c: see sample.h. */
#include "sample.h"

#include "common/common.h"
#include "progress.h"
#include "rate.h"
#include "reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH          200        /* keys */
#define PIPELINE_BYTES (4u << 20) /* of values that are asked for at a time */
/* Draws for each key that is wanted, before it is given up: where most keys have just expired. */
#define DRAWS_MAX 20
/* Answers of SCAN in a row without a new key, before it is given up: a table that is next to empty
 * gives thousands of them. */
#define EMPTY_MAX 20000
/* What a server can have at most of anything: beyond it sums would not be right. */
#define TYPE_MAX  100
#define BYTES_MAX (1LL << 48)
#define TTL_MAX   (INT64_MAX / 2)
#define CURSOR    24 /* room for one of SCAN */

typedef struct drawing {
    sample *s;
    connection *c;
    const options *o;
    const server *from;
    uint32_t database; /* index of the one that is drawn from */
    size_t first;      /* in s->all, of this database's keys */
    size_t *seen;      /* 1 + index in s->all, by the key's hash */
    size_t seen_size;
    uint64_t fetched; /* bytes of values */
    rate rate;
    sampled batch[BATCH];
    size_t in_batch;
} drawing;

/* ---- keys that are there already ------------------------------------------------------------- */

static uint64_t hash_key(const char *key, size_t len) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)key[i]) * 1099511628211u;
    return hash ^ hash >> 32;
}

static bool same_key(const sampled *k, const char *key, size_t len) {
    return k->key_len == len && !memcmp(k->key, key, len);
}

/* Where a key of this database stands among those that were seen, or could. */
static size_t *seen_at(const drawing *d, const char *key, size_t len) {
    size_t at = hash_key(key, len) % d->seen_size;
    while (d->seen[at] > d->first && !same_key(&d->s->all[d->seen[at] - 1], key, len))
        at = (at + 1) % d->seen_size;
    return &d->seen[at];
}

static bool is_new(const drawing *d, const char *key, size_t len) {
    for (size_t i = 0; i < d->in_batch; i++)
        if (same_key(&d->batch[i], key, len)) return false;
    return *seen_at(d, key, len) <= d->first;
}

static void keep(drawing *d, const sampled *k) {
    sample *s = d->s;
    if (s->count == s->max) {
        s->max = s->max ? 2 * s->max : 1024;
        s->all = reallocate(s->all, s->max * sizeof *s->all);
    }
    size_t *at = seen_at(d, k->key, k->key_len);
    s->all[s->count++] = *k;
    *at = s->count;
}

/* ---- asking about a batch -------------------------------------------------------------------- */

static void send_about(connection *c, const char *command, const char *more, const sampled *k) {
    const char *argv[3] = {command, more ? more : k->key, k->key};
    size_t lengths[3] = {strlen(command), more ? strlen(more) : k->key_len, k->key_len};
    connection_send(c, more ? 3 : 2, argv, lengths);
}

/* A key may be gone, have another type, or be on its way to another node. Other errors end the
 * program. */
static bool answered(const char *command, const redisReply *reply) {
    static const char *const gone[] = {"WRONGTYPE", "MOVED", "ASK", "TRYAGAIN"};
    if (reply->type != REDIS_REPLY_ERROR) return reply->type != REDIS_REPLY_NIL;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (strncmp(reply->str, gone[i], strlen(gone[i])) == 0) return false;
    reply_refused(reply, command);
}

/* A reply that is a number; -2, as of PTTL: the key is gone. */
static long long read_number(drawing *d, const char *command, long long most) {
    redisReply *reply = connection_reply(d->c);
    long long number = answered(command, reply) ? reply_number(reply, command, most) : -2;
    freeReplyObject(reply);
    return number;
}

static void forget(sampled *k) {
    free(k->key);
    free(k->value);
    *k = (sampled){0};
}

static void read_about(drawing *d, sampled *k) {
    redisReply *reply = connection_reply(d->c);
    const char *type = answered("TYPE", reply) ? reply_text(reply, "TYPE", TYPE_MAX) : "none";
    long long ttl_ms = read_number(d, "PTTL", INT64_MAX);
    long long memory = read_number(d, "MEMORY USAGE", BYTES_MAX);
    if (strcmp(type, "none") != 0 && ttl_ms >= -1 && memory >= 0) {
        k->ttl_ms = ttl_ms < TTL_MAX ? ttl_ms : TTL_MAX;
        k->memory = (uint64_t)memory;
        k->family = families_find(&d->s->families, &d->o->by, k->key, k->key_len, type);
    } else {
        forget(k);
    }
    freeReplyObject(reply);
}

static bool is_string(const drawing *d, const sampled *k) {
    return k->key && family_is_of_strings(&d->s->families.all[k->family]);
}

/* It may be longer than what is fetched. */
static bool is_long(const sampled *k) {
    return k->memory >= FETCH_MAX;
}

static void send_for_value(drawing *d, const sampled *k) {
    char last[24];
    snprintf(last, sizeof last, "%u", FETCH_MAX - 1);
    const char *argv[] = {"GETRANGE", k->key, "0", last};
    const size_t lengths[] = {8, k->key_len, 1, strlen(last)};
    connection_send(d->c, 4, argv, lengths);
    if (is_long(k)) send_about(d->c, "STRLEN", NULL, k);
}

static void read_value(drawing *d, sampled *k) {
    redisReply *reply = connection_reply(d->c);
    const char *value =
        answered("GETRANGE", reply) ? reply_text(reply, "GETRANGE", FETCH_MAX) : NULL;
    long long len = is_long(k) ? read_number(d, "STRLEN", BYTES_MAX) : 0;
    bool changed = reply->len < FETCH_MAX && len > (long long)reply->len;
    if (value && len >= 0 && !changed) {
        k->fetched = (uint32_t)reply->len;
        k->value_len = (uint64_t)len > reply->len ? (uint64_t)len : reply->len;
        k->value = allocate(reply->len + 1);
        memcpy(k->value, value, reply->len);
        d->fetched += reply->len;
    } else {
        forget(k);
    }
    freeReplyObject(reply);
}

static bool is_empty(const drawing *d, const sampled *k) {
    return is_string(d, k) && k->value_len == 0;
}

/* What is gone since its memory was asked for reads as an empty value. */
static void forget_gone(drawing *d, size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        if (is_empty(d, &d->batch[i])) send_about(d->c, "TYPE", NULL, &d->batch[i]);
    for (size_t i = first; i < end; i++) {
        if (!is_empty(d, &d->batch[i])) continue;
        redisReply *reply = connection_reply(d->c);
        if (!answered("TYPE", reply) || !strcmp(reply_text(reply, "TYPE", TYPE_MAX), "none"))
            forget(&d->batch[i]);
        freeReplyObject(reply);
    }
}

/* Fetches the values of the batch, so many at a time that their replies stay small. */
static void fetch_values(drawing *d) {
    for (size_t first = 0, end; first < d->in_batch; first = end) {
        uint64_t bytes = 0;
        for (end = first; end < d->in_batch && bytes < PIPELINE_BYTES; end++) {
            const sampled *k = &d->batch[end];
            if (!is_string(d, k)) continue;
            bytes += k->memory < FETCH_MAX ? k->memory : FETCH_MAX;
            send_for_value(d, k);
        }
        for (size_t i = first; i < end; i++)
            if (is_string(d, &d->batch[i])) read_value(d, &d->batch[i]);
        forget_gone(d, first, end);
    }
}

static double share_done(const drawing *d) {
    double keys = (double)d->s->count / (double)d->o->keys;
    double bytes = (double)d->fetched / SAMPLE_BYTES;
    double all = (double)d->s->count / (double)d->from->keys;
    double most = keys > bytes ? keys : bytes;
    if (all > most) most = all;
    return most < 1 ? most : 1;
}

static void ask_batch(drawing *d) {
    for (size_t i = 0; i < d->in_batch; i++) {
        send_about(d->c, "TYPE", NULL, &d->batch[i]);
        send_about(d->c, "PTTL", NULL, &d->batch[i]);
        send_about(d->c, "MEMORY", "USAGE", &d->batch[i]);
    }
    for (size_t i = 0; i < d->in_batch; i++) read_about(d, &d->batch[i]);
    fetch_values(d);
    for (size_t i = 0; i < d->in_batch; i++)
        if (d->batch[i].key) keep(d, &d->batch[i]);
    progress_show("reading a sample of keys", share_done(d));
    rate_keep(&d->rate, (double)d->in_batch);
    d->in_batch = 0;
}

static void add_to_batch(drawing *d, const redisReply *reply, const char *command) {
    const char *key = reply_text(reply, command, UINT32_MAX);
    if (!is_new(d, key, reply->len)) return;
    char *copy = allocate(reply->len + 1);
    memcpy(copy, key, reply->len);
    d->batch[d->in_batch++] =
        (sampled){.key = copy, .key_len = (uint32_t)reply->len, .database = d->database};
    if (d->in_batch == BATCH) ask_batch(d);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* What of the sample is complete when this database is, by the keys that it has and those before
 * it have. */
static double share_until(const drawing *d) {
    uint64_t keys = 0;
    for (uint32_t i = 0; i <= d->database; i++) keys += d->from->databases[i].keys;
    return (double)keys / (double)d->from->keys;
}

static bool complete(const drawing *d) {
    double share = share_until(d);
    return (double)d->s->count >= share * (double)d->o->keys ||
           (double)d->fetched >= share * SAMPLE_BYTES;
}

/* Returns how many keys there were that are new; there is room for so many. */
static size_t scan_some(drawing *d, char cursor[CURSOR]) {
    size_t before = d->s->count;
    connection_send_text(d->c, "SCAN %s COUNT %d", cursor, BATCH);
    redisReply *reply = connection_answer(d->c, "SCAN");
    if (reply_list(reply, "SCAN", 2) != 2)
        fail(1, "SCAN: the server did not answer with a cursor and keys");
    snprintf(cursor, CURSOR, "%s", reply_text(reply->element[0], "SCAN", CURSOR - 1));
    const redisReply *keys = reply->element[1];
    size_t count = reply_list(keys, "SCAN", d->seen_size / 2);
    for (size_t i = 0; i < count; i++) add_to_batch(d, keys->element[i], "SCAN");
    ask_batch(d);
    freeReplyObject(reply);
    return d->s->count - before;
}

/* Of each database a batch is read at least: those before it may have taken its part, and of a
 * small one with large values something has to be known. True: all of its keys are in the sample.
 */
static bool scan(drawing *d) {
    char cursor[CURSOR] = "0";
    int empty = 0;
    do {
        empty = scan_some(d, cursor) > 0 ? 0 : empty + 1;
        if (strcmp(cursor, "0") == 0) return true;
        if (empty == EMPTY_MAX)
            fail(1, "SCAN: %d answers in a row had no new key, and there is no end of them", empty);
    } while (!complete(d));
    return false;
}

/* Keys at random. False: the database has none. */
static bool draw_some(drawing *d) {
    bool any = false;
    for (int i = 0; i < BATCH; i++) connection_send_text(d->c, "RANDOMKEY");
    redisReply *drawn[BATCH];
    for (int i = 0; i < BATCH; i++) drawn[i] = connection_answer(d->c, "RANDOMKEY");
    for (int i = 0; i < BATCH; i++) {
        any |= drawn[i]->type != REDIS_REPLY_NIL;
        if (drawn[i]->type != REDIS_REPLY_NIL) add_to_batch(d, drawn[i], "RANDOMKEY");
        freeReplyObject(drawn[i]);
    }
    ask_batch(d);
    return any;
}

static void draw(drawing *d) {
    size_t draws = 0, most = DRAWS_MAX * (size_t)d->o->keys;
    do {
        if (!draw_some(d)) return;
        draws += BATCH;
    } while (!complete(d) && draws < most);
}

/* Where this database's part of the sample would be more than half of its keys all are taken, and
 * where a batch is. */
static void take_database(drawing *d, const database *from) {
    connection_select(d->c, from->number);
    d->first = d->s->count;
    double wanted = (double)d->o->keys * (double)from->keys / (double)d->from->keys;
    bool whole = false;
    if (2 * wanted > (double)from->keys || from->keys <= BATCH)
        whole = scan(d);
    else
        draw(d);
    size_t taken = d->s->count - d->first;
    double weight = whole || taken == 0 ? 1 : (double)from->keys / (double)taken;
    for (size_t i = d->first; i < d->s->count; i++) d->s->all[i].weight = weight;
    d->s->whole &= whole;
}

void sample_take(sample *s, connection *c, const server *from, const options *o) {
    *s = (sample){.whole = true};
    drawing *d = allocate(sizeof *d);
    *d = (drawing){.s = s, .c = c, .o = o, .from = from};
    rate_begin(&d->rate, (double)o->rate);
    d->seen_size = 2 * ((size_t)o->keys + 2 * BATCH);
    d->seen = allocate(d->seen_size * sizeof *d->seen);
    for (d->database = 0; d->database < from->count; d->database++)
        take_database(d, &from->databases[d->database]);
    progress_end();
    free(d->seen);
    free(d);
}

void sample_free(sample *s) {
    for (size_t i = 0; i < s->count; i++) forget(&s->all[i]);
    free(s->all);
    families_free(&s->families);
}
