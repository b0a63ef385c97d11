/*
 * fuzz_rdb.c: any bytes as a file's auxiliary data and a map of it, or as the payload of RESTORE:
 * an error, or a map that survives whatever is done to it.
 *
 *      [kind, 1 byte] and then, by its three lowest bits
 *      0, 4  a payload of RESTORE
 *      1, 5  auxiliary data and a map
 *      2     a payload of records, valid but for bytes that are: [place, 3 bytes][byte] each
 *      6     a payload of a whole map likewise
 *      3, 7  a file likewise
 */
#include "core/codec/codec_train.h"
#include "core/map/map_reencode.h"
#include "keyspace/maps.h"
#include "keyspace/prefixes.h"
#include "persist/rdb.h"
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 600
#define LARGE   (16u << 20) /* raw bytes of a map that is dumped with its codecs */
/* What a loader may ask for at a time beyond some multiple of what it was given: a block of
 * records, zstd's and the codecs' tables. */
#define HONEST(n) (64 * (n) + (4u << 20))

enum { PAYLOAD, FILE_OF_ALL, WHOLE, INPUTS };
static struct RedisModuleIO valid[INPUTS];

static size_t make_record(int i, char *key, char *value) {
    sprintf(key, i % 3 ? "KEY:%d" : "user:%d:profile", 1000 + i);
    int len = sprintf(value, "{\"id\":%d,\"name\":\"somebody %d\",\"seen\":%d}", i, i % 7, i * 37);
    if (i % 60 == 0) {
        for (int j = 0; j < 1500; j++) value[j] = (char)(i * j * j >> 3);
        len = 1500;
    }
    return (size_t)len;
}

static void train(void) {
    static char keys[RECORDS][64], values[RECORDS][1600];
    static phrase_sample key_samples[RECORDS], value_samples[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        size_t len = make_record(i, keys[i], values[i]);
        key_samples[i] = (phrase_sample){keys[i], (uint32_t)strlen(keys[i])};
        value_samples[i] = (phrase_sample){values[i], (uint32_t)len};
    }
    codec_samples s = {key_samples, RECORDS, value_samples, RECORDS, 0};
    codecs_use(&ckv.shared.codecs,
               (uint8_t)codecs_add(&ckv.shared.codecs, codec_train(&ckv.mem, &s, 64 << 10, 3)));
}

static void cset(int i, bool expires) {
    char key[64], value[1600];
    size_t len = make_record(i, key, value);
    const char *args[] = {"cset", key, value, "EX", "100"};
    size_t lens[] = {4, strlen(key), len, 2, 3};
    shim_call(shim_commands[0].function, args, lens, expires ? 5 : 3);
}

static void start(void) {
    const char prefixes[] = "session:", *error;
    shim_start();
    if (strcmp(shim_commands[0].name, "cset") != 0) abort();
    if (!prefixes_set(prefixes, strlen(prefixes), &error)) abort();
    for (int i = 0; i < RECORDS / 2; i++) cset(i, false);
    train();
    for (int i = RECORDS / 3; i < RECORDS; i++) cset(i, i % 2);
    keyed_map *value = shim_value("ckv:0");
    shim_type.rdb_save(&valid[PAYLOAD], value);
    value->m->totals.value_bytes += LARGE; /* a lie, so that it goes whole */
    shim_type.rdb_save(&valid[WHOLE], value);
    value->m->totals.value_bytes -= LARGE;
    if (shim_type.aux_save2)
        shim_type.aux_save2(&valid[FILE_OF_ALL], REDISMODULE_AUX_BEFORE_RDB);
    else
        shim_type.aux_save(&valid[FILE_OF_ALL], REDISMODULE_AUX_BEFORE_RDB);
    shim_type.rdb_save(&valid[FILE_OF_ALL], value);
    rdb_save_aux(&valid[FILE_OF_ALL], REDISMODULE_AUX_AFTER_RDB);
    prefixes_set("", 0, &error);
    shim_flush();
}

static bool visit(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    size_t len;
    (void)key, (void)key_len;
    map_value(context, pos, &len);
    map_expiry_ms(pos);
    return true;
}

static void traffic(keyed_map *s) {
    map *m = s->m;
    map_each_record(m, visit, m);
    struct RedisModuleIO again = {0};
    shim_type.rdb_save(&again, s);
    free(again.bytes);
    for (uint32_t i = 0; i < m->buckets; i++)
        map_reencode(m, i, expiry_ticks(shim_now_ms), SIZE_MAX, NULL);
    for (int i = 0; i < RECORDS; i += 5) {
        char key[64], value[1600];
        map_key k;
        map_pos pos;
        codec_value encoded;
        size_t len = make_record(i, key, value);
        map_key_init(m, &k, key, strlen(key));
        bool found = map_find(m, &k, &pos);
        if (found && i % 3 == 0) {
            map_delete(m, &k, &pos, expiry_ticks(shim_now_ms));
        } else {
            map_encode(m->shared, value, len, &encoded);
            map_put(m, &k, found ? &pos : NULL, &encoded, EXPIRY_NONE, expiry_ticks(shim_now_ms));
        }
    }
}

/* `of`: which valid input is written over; INPUTS: none. */
static struct RedisModuleIO read_input(const uint8_t *bytes, size_t n, int of) {
    struct RedisModuleIO io = {0};
    if (of == INPUTS) {
        io.bytes = malloc(n + 1);
        if (n) memcpy(io.bytes, bytes, n);
        io.used = n;
        return io;
    }
    io.bytes = malloc(valid[of].used);
    io.used = valid[of].used;
    memcpy(io.bytes, valid[of].bytes, io.used);
    for (size_t i = 0; i + 4 <= n; i += 4) {
        size_t place = bytes[i] | (size_t)bytes[i + 1] << 8 | (size_t)bytes[i + 2] << 16;
        io.bytes[place % io.used] = bytes[i + 3];
    }
    return io;
}

/* What comes as records is put in its place; of pages all is possible that hurts nobody. */
static bool is_of_records(const struct RedisModuleIO *io) {
    uint64_t kind;
    memcpy(&kind, io->bytes, sizeof kind);
    return kind == 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    if (!valid[PAYLOAD].used) start();
    if (n < 1) return 0;
    bool file = bytes[0] & 1, mutate = bytes[0] & 2, whole = bytes[0] & 4;
    int of = !mutate ? INPUTS : file ? FILE_OF_ALL : whole ? WHOLE : PAYLOAD;
    struct RedisModuleIO io = read_input(bytes + 1, n - 1, of);
    shim_largest_block = 0;
    bool loaded =
        !file || rdb_load_aux(&io, RDB_TYPE_VERSION, REDISMODULE_AUX_BEFORE_RDB) == REDISMODULE_OK;
    keyed_map *s = loaded ? rdb_load_map(&io, RDB_TYPE_VERSION) : NULL;
    if (shim_largest_block > HONEST(io.used)) {
        fprintf(stderr, "%zu bytes were asked for, given %zu\n", shim_largest_block, io.used);
        abort();
    }
    if (s) {
        if (!file && is_of_records(&io) && !map_sane(s->m)) abort();
        traffic(s);
        shim_type.unlink2(NULL, s);
        shim_type.free(s);
    }
    rdb_loading_ended();
    prefixes_forget_leaving();
    codecs_use(&ckv.shared.codecs, CODEC_RAW);
    for (int i = 1; i < CODECS_MAX; i++)
        if (codecs_get(&ckv.shared.codecs, (uint8_t)i))
            codecs_remove(&ckv.shared.codecs, (uint8_t)i);
    free(io.bytes);
    return 0;
}
