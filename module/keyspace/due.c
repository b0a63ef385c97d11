/* due.c: records that expire within seconds. See due.h. */
#include "keyspace/due.h"

#include "core/base/siphash.h"
#include "server/loop.h"

#include <string.h>

#define SLOTS      1024
#define HORIZON_MS 5000

_Static_assert(SLOTS <= REMOVALS_MAX, "what is due at once is told of at once");

typedef struct due_record {
    RedisModuleString *name; /* NULL: an empty slot */
    int64_t at_ms;
    int db;
} due_record;

static struct {
    due_record slots[SLOTS]; /* by hash; the newer one stays */
    int count;
    int64_t next_ms; /* not after the first of them */
    removals gone;   /* has room for all of them */
    due_expire *expire;
} due = {.next_ms = INT64_MAX};

static void clear(due_record *d) {
    RedisModule_FreeString(NULL, d->name);
    d->name = NULL;
    due.count--;
}

static void expire_all(RedisModuleCtx *ctx, int64_t now_ms) {
    due.next_ms = INT64_MAX;
    for (due_record *d = due.slots; d < due.slots + SLOTS; d++) {
        if (!d->name) continue;
        if (d->at_ms >= now_ms) {
            if (d->at_ms < due.next_ms) due.next_ms = d->at_ms;
            continue;
        }
        /* Out of its slot first: who looks the record up may find that it has been given more time,
         * and note that. */
        due_record was = *d;
        d->name = NULL;
        due.count--;
        RedisModule_SelectDb(ctx, was.db);
        due.expire(ctx, was.name, now_ms, &due.gone);
        RedisModule_FreeString(NULL, was.name);
    }
    removals_announce(ctx, &due.gone, REMOVALS_EXPIRED);
}

static void on_loop(RedisModuleCtx *ctx) {
    /* The time that the server keeps is that before it slept. */
    int64_t now_ms = RedisModule_Milliseconds();
    if (now_ms > due.next_ms) expire_all(ctx, now_ms);
}

void due_start(due_expire *expire) {
    due.expire = expire;
}

void due_note(int db, RedisModuleString *name, int64_t at_ms, int64_t now_ms) {
    if (at_ms < now_ms || at_ms - now_ms > HORIZON_MS) return;
    size_t len, old_len;
    const char *key = RedisModule_StringPtrLen(name, &len);
    due_record *d = &due.slots[siphash13(key, len, ckv.secret) % SLOTS];
    if (d->name && d->at_ms == at_ms && d->db == db) {
        const char *old = RedisModule_StringPtrLen(d->name, &old_len);
        if (old_len == len && !memcmp(old, key, len)) return;
    }
    if (d->name) clear(d);
    *d = (due_record){RedisModule_CreateString(NULL, key, len), at_ms, db};
    due.count++;
    if (at_ms < due.next_ms) due.next_ms = at_ms;
    loop_set(LOOP_DUE, on_loop);
}

void due_rest(void) {
    if (due.count == 0) loop_set(LOOP_DUE, NULL);
}
