/* transactions.c: asking the server for its clients' transactions. See transactions.h. */
#include "transparent/transactions.h"

#include "keyspace/queued.h"
#include "server/array.h"
#include "server/client_list.h"
#include "server/clock.h"
#include "server/pause.h"
#include "server/timer.h"
#include "transparent/catalogue.h"

/* Counting looks at all clients, so it takes this share of the time at most, 1 in n. But one that
 * took long, because a thread of the server had to be waited for, does not put off the next for
 * ever. */
#define COUNT_EVERY_MS   1000
#define COUNT_SHARE      1000
#define COUNT_AT_LAST_MS 60000

static timer count;
static bool held_back;
static transactions_listener *listener; /* NULL: none */

static void count_later(int64_t after_ms) {
    if (!count.due_us) timer_set(ckv.ctx, &count, (int)after_ms);
}

/* What the list of clients tells. */
typedef struct clients {
    uint64_t *in_transaction;
    size_t count, room;
    bool blocked; /* some are, and will look at several keys again */
} clients;

/* Whether the last command of a client is one that blocks and looks at several keys then. */
static bool looks_again(const listed_client *client) {
    const catalogue_entry *e = catalogue_own(client->command, client->command_len);
    return client->command_len == 0 || (e && e->blocks);
}

/* In Valkey 9 a client that has ended its transaction keeps multi=0, so it is the flag that tells.
 */
static void note_client(RedisModuleCtx *ctx, const listed_client *client, void *data) {
    (void)ctx;
    clients *c = data;
    if (listed_client_has(client, 'b') && looks_again(client)) c->blocked = true;
    if (!listed_client_has(client, 'x')) return;
    c->in_transaction =
        array_grow(c->in_transaction, c->count, &c->room, sizeof *c->in_transaction);
    c->in_transaction[c->count++] = client->id;
}

/* Looked at twice: what was held back runs in the round that follows. */
static bool may_hold_back(void) {
    bool may = held_back;
    held_back = pause_holds();
    return may || held_back;
}

static bool in_doubt(void) {
    return queued_doubted() || queued_unseen() || queued_awaits();
}

static void look_at_all(RedisModuleCtx *ctx) {
    clients c = {NULL, 0, 0, false};
    if (client_list(ctx, 0, note_client, &c)) {
        queued_counted(c.count);
        if (queued_unseen()) queued_list_unseen(c.in_transaction, c.count);
        if (listener) listener(c.in_transaction, c.count);
        if (!c.blocked) queued_await_no_more();
    }
    RedisModule_Free(c.in_transaction);
}

static void count_transactions(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    if (may_hold_back()) {
        count_later(COUNT_EVERY_MS);
        return;
    }
    uint64_t began_us = clock_monotonic_us();
    queued_await_look();
    if (queued_doubted() || queued_unseen() || queued_awaits_unknown()) look_at_all(ctx);
    if (!in_doubt()) return;
    int64_t took_ms = (int64_t)(clock_monotonic_us() - began_us) / 1000;
    int64_t after_ms = COUNT_EVERY_MS + took_ms * COUNT_SHARE;
    count_later(after_ms < COUNT_AT_LAST_MS ? after_ms : COUNT_AT_LAST_MS);
}

void transactions_start(RedisModuleCtx *ctx) {
    timer_register(ctx, &count, count_transactions);
}

void transactions_count(void) {
    if (in_doubt()) count_later(COUNT_EVERY_MS);
}

void transactions_listen(transactions_listener *told) {
    listener = told;
}

void transactions_begin_unseen(void) {
    queued_begin(QUEUED_ANYBODY);
    queued_begin_unseen();
    count_later(1);
}

void transactions_hold_back(void) {
    held_back = true;
    queued_begin(QUEUED_ANYBODY);
    count_later(COUNT_EVERY_MS);
}

bool transactions_held_back(void) {
    return held_back;
}
