/* lent.c: what a replica in a cluster lends. See lent.h. */
#include "transparent/lent.h"

#include "keyspace/maps.h"
#include "keyspace/move_call.h"
#include "keyspace/queued.h"
#include "keyspace/spent.h"
#include "server/filter.h"
#include "server/loop.h"
#include "server/names.h"
#include "server/own_call.h"
#include "server/pause.h"
#include "server/role.h"
#include "server/timer.h"
#include "server/within.h"
#include "transparent/transactions.h"

/* By database. NULL: none. */
static RedisModuleDict *lent;
static uint64_t of_loading; /* of which file's data they are */

/* What transactions need: clients, by number, and a dictionary of the names of each. NULL: none. */
static RedisModuleDict *needed;

/* Redis 7.0 does not tell whose EXEC comes, the primary's, of which there are many, or that of a
 * client which has queued some; nor which commands are queued. There, all names leave with each
 * EXEC; they are of QUEUED_ANYBODY. Older ones were needed when the transactions of `who` were
 * open, some of which may be open still. */
static struct { RedisModuleDict *names, *who; /* NULL: none */ } older;
/* And who may send nothing can send such commands: of names that nothing is there for, so many are
 * kept. */
#define ABSENT_MAX 1000
static size_t absent;

/* What was lent of other data has gone with it. */
static void drop_if_loaded(void) {
    if (of_loading != ckv.loadings) spent_take(&lent, NULL, NULL);
    of_loading = ckv.loadings;
}

/* ---- what transactions need ------------------------------------------------------------------ */

static RedisModuleDict *needed_by(uint64_t client) {
    return names_get(needed, &client, sizeof client);
}

static void need(uint64_t client, const RedisModuleString *key) {
    size_t len;
    const char *name = RedisModule_StringPtrLen(key, &len);
    spent_free_some();
    RedisModuleDict *names = needed_by(client), *before = names;
    names_put(&names, name, len, NULL);
    if (!before) names_put(&needed, &client, sizeof client, names);
}

/* What a client has needed up to now; NULL: nothing. */
static RedisModuleDict *take_needed(uint64_t client) {
    return names_drop(&needed, &client, sizeof client);
}

/* These are in a transaction. */
static void on_count(const uint64_t *clients, size_t count) {
    bool begins = !older.names;
    RedisModuleDict *still = names_among(begins ? NULL : older.who, clients, count);
    if (begins) {
        older.names = take_needed(QUEUED_ANYBODY);
        absent = 0;
    }
    names_free(&older.who);
    older.who = still;
    if (older.names && still) return;
    spent_take(&older.names, NULL, NULL);
    names_free(&older.who);
}

static bool is_in_transaction(uint64_t client) {
    return filter_tells_sender() ? queued_in_transaction(client) : queued_open(QUEUED_ANYBODY);
}

void lent_forget(uint64_t client) {
    if (client == QUEUED_ANYBODY) return;
    RedisModuleDict *names = take_needed(client);
    spent_take(&names, NULL, NULL);
}

void lent_to_exec(uint64_t client, numbered_handle *leave) {
    RedisModuleDict *keys = NULL;
    if (!role_mirrors()) return;
    numbered_add_all(&keys, client, needed_by(client));
    numbered_add_all(&keys, client, older.names);
    lent_forget(client);
    numbered_each(&keys, leave);
}

/* ---- lending --------------------------------------------------------------------------------- */

/* It comes by when all that has come in has run, and before the server's own timer, which saves and
 * shuts down. */
static timer back;
/* While a pause holds commands back that need it. */
#define HELD_BACK_MS 10

/* What somebody waits to write by now stays, and is told. */
static void take_back(uint64_t db, RedisModuleString *key) {
    bool stays = !role_mirrors() && queued_has(key);
    move_call(stays ? MOVE_CALL_OUT : MOVE_CALL_BACK, db, key);
}

/* Never while a command is under way, which may have in hand what would go: another module that is
 * told of it calls commands, too. */
static void take_back_all(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    drop_if_loaded();
    if (pause_holds() || transactions_held_back())
        timer_set(ctx, &back, HELD_BACK_MS);
    else
        numbered_each(&lent, take_back);
}

bool lent_has(const RedisModuleString *key) {
    bool has = false;
    for (int db = 0; lent && db < maps_dbs() && !has; db++)
        has = numbered_has(lent, (uint64_t)db, key);
    return has;
}

bool lent_may_queue(uint64_t client) {
    return role_mirrors() && is_in_transaction(client);
}

bool lent_to_queued(uint64_t client, const RedisModuleString *key, bool there) {
    size_t len;
    RedisModule_StringPtrLen(key, &len);
    if (!filter_tells_sender() && !there && !lent_has(key)) {
        absent += names_cost(len);
        if (absent > ABSENT_MAX) return false;
    }
    need(client, key);
    return filter_tells_sender() && !pause_holds();
}

void lent_to_watcher(uint64_t client, const RedisModuleString *key) {
    if (role_mirrors() && filter_tells_sender()) need(client, key);
}

void lent_note(uint64_t db, const RedisModuleString *key) {
    if (!role_mirrors()) return;
    drop_if_loaded();
    numbered_add(&lent, db, key);
    if (!back.due_us) timer_set(ckv.ctx, &back, LOOP_FIRST_MS);
}

void lent_no_more(uint64_t db, const RedisModuleString *key) {
    numbered_drop(&lent, db, key);
}

/* In the midst of a script, or while a file is loaded, the server looks at its clients, too. */
static bool is_in_the_midst(void) {
    return own_call_open() || within_exec_or_script() || role_loads(ckv.ctx);
}

/* What a pause holds back runs unseen, and may be that the map goes. A primary's own replicas are
 * told, later. */
void lent_before_map(numbered_handle *back_in_pause) {
    if (is_in_the_midst()) return;
    drop_if_loaded();
    if (!pause_holds())
        numbered_each(&lent, take_back);
    else if (role_mirrors())
        numbered_each(&lent, back_in_pause);
}

void lent_before_file(void) {
    if (lent && !is_in_the_midst()) take_back_all(ckv.ctx, NULL);
}

bool lent_any(void) {
    return lent != NULL;
}

/* Takes what all need. */
static void take_all_needed(RedisModuleDict **keys) {
    RedisModuleDict *all = needed;
    needed = NULL;
    numbered_add_all(keys, QUEUED_ANYBODY, older.names);
    spent_take(&older.names, NULL, NULL);
    if (!all) return;
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(all, "^", NULL, 0);
    void *names;
    while (RedisModule_DictNextC(it, NULL, &names)) {
        RedisModuleDict *of_one = names;
        numbered_add_all(keys, QUEUED_ANYBODY, of_one);
        spent_take(&of_one, NULL, NULL);
    }
    RedisModule_DictIteratorStop(it);
    names_free(&all);
}

void lent_catch_up(numbered_handle *leave) {
    RedisModuleDict *keys = NULL;
    if ((!needed && !older.names) || role_mirrors() || role_loads(ckv.ctx)) return;
    take_all_needed(&keys);
    numbered_each(&keys, leave);
}

void lent_start(RedisModuleCtx *ctx) {
    timer_register(ctx, &back, take_back_all);
    if (!filter_tells_sender()) transactions_listen(on_count);
}
