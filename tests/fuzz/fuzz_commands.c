/*
 * fuzz_commands.c: any bytes as calls of the module's commands. Each gives exactly one reply, and
 * all maps are sane after it, also where a limit is reached: memory, ckv.maxmemory, what damaged
 * values still say.
 *
 *      [command, 1 byte][arguments, 1 byte] ([word, 1 byte] or [0xff][length, 1 byte][bytes])...
 *      [0xff][limit, 1 byte][how far, 1 byte]
 */
#include "commands/command_table.h"
#include "core/map/map_inside.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "shim.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX  14
#define CALLS_MAX 300

/* What options, numbers and patterns are made of; keys that collide, and values of all sizes. */
static const char *const words[] = {
    "KEY:1000",
    "KEY:1001",
    "KEY:1099",
    "user:7",
    "",
    "k",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "100",
    "-100",
    "9223372036854775807",
    "-9223372036854775808",
    "1.5",
    "1e400",
    "nan",
    "NX",
    "XX",
    "GT",
    "LT",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "GET",
    "IFEQ",
    "IFNE",
    "MATCH",
    "COUNT",
    "EXPIRES",
    "NOEXPIRES",
    "*",
    "K[^a-z]Y:*",
    "[",
    "[a-",
    "\\",
    "KEY:?0*",
    "1700000100",
    "1700000100000",
    "STATS",
    "HELP",
    "hello hello hello hello hello hello hello hello hello",
    "{\"name\":\"somebody\",\"seen\":1700000000}",
    "4000000000",
};
#define WORDS (sizeof words / sizeof *words)

typedef struct reader {
    const uint8_t *at, *end;
} reader;

static uint8_t next(reader *r) {
    return r->at < r->end ? *r->at++ : 0;
}

static void next_arg(reader *r, const char **arg, size_t *len) {
    uint8_t what = next(r);
    *arg = words[what % WORDS];
    *len = strlen(*arg);
    if (what != 0xff) return;
    *len = next(r);
    if (*len > (size_t)(r->end - r->at)) *len = (size_t)(r->end - r->at);
    *arg = (const char *)r->at;
    r->at += *len;
}

/* ---- limits ---------------------------------------------------------------------------------- */

#define LIMIT 0xff /* in place of a command */

/* Allocations of the maps that still succeed, and for the next call only. */
static long allocations_left = LONG_MAX;

static void *scarce_alloc(size_t bytes) {
    return allocations_left-- > 0 ? malloc(bytes) : NULL;
}

static void *scarce_realloc(void *block, size_t bytes) {
    return allocations_left-- > 0 ? realloc(block, bytes) : NULL;
}

/* Writes over the first bytes of a value as it is stored, that of record number *left. */
static bool damage(void *left, const uint8_t *key, size_t key_len, const map_pos *pos) {
    uint32_t len;
    uint8_t *value = (uint8_t *)(uintptr_t)map_encoded_value(pos, &len);
    (void)key, (void)key_len;
    if ((*(int *)left)-- > 0) return true;
    memset(value, 0xff, len < 4 ? len : 4);
    return false;
}

static void limit_maxmemory(long long bytes) {
    ckv.config.maxmemory = bytes;
    maxmemory_configure(NULL, true);
    maxmemory_decide();
}

static void reach_limit(uint8_t which, int how_far) {
    for (uint32_t place = 0; which % 4 == 0 && place < ckv.places; place++) {
        keyed_map *s = maps_at(0, place);
        if (s) map_each_record(s->m, damage, &how_far);
    }
    if (which % 4 == 1) allocations_left = how_far % 8;
    if (which % 4 == 2) limit_maxmemory(1);
    if (which % 4 == 3) limit_maxmemory(0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A number can make a value as long as Redis allows, 512 MB: the fuzzer has no time for those. */
static bool too_large(const char *name, const char *const *args, int count) {
    return !strcmp(name, "csetrange") && count > 2 && atoll(args[2]) > 100000;
}

static void call(reader *r) {
    const char *args[ARGS_MAX + 1];
    char copies[ARGS_MAX + 1][256];
    size_t lens[ARGS_MAX + 1];
    uint8_t which = next(r);
    if (which == LIMIT) {
        which = next(r);
        reach_limit(which, next(r));
        return;
    }
    const shim_command *c = &shim_commands[which % shim_command_count];
    int count = 1 + next(r) % (ARGS_MAX + 1);
    args[0] = c->name;
    lens[0] = strlen(c->name);
    for (int i = 1; i < count; i++) {
        next_arg(r, &args[i], &lens[i]);
        memcpy(copies[i], args[i], lens[i]);
        copies[i][lens[i]] = 0;
        args[i] = copies[i];
    }
    if (!too_large(c->name, args, count)) shim_call(c->function, args, lens, count);
    allocations_left = LONG_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    reader r = {bytes, bytes + n};
    if (shim_command_count == 0) {
        shim_start();
        ckv.mem.alloc = scarce_alloc;
        ckv.mem.realloc = scarce_realloc;
    }
    limit_maxmemory(0);
    shim_now_ms = 1700000000000;
    for (int calls = 0; r.at < r.end && calls < CALLS_MAX; calls++) {
        shim_now_ms += calls % 8 == 7 ? 700 : 0;
        call(&r);
        for (uint32_t place = 0; place < ckv.places; place++) {
            keyed_map *s = maps_at(0, place);
            if (s && !map_sane(s->m)) {
                fprintf(stderr, "map %u is not sane\n", place);
                abort();
            }
        }
    }
    shim_flush();
    return 0;
}
