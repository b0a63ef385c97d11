/* serve.c: what becomes of a command. See serve.h. */
#include "transparent/serve.h"

#include "keyspace/aof_form.h"
#include "keyspace/aside.h"
#include "keyspace/followed.h"
#include "keyspace/long_strings.h"
#include "keyspace/maps.h"
#include "keyspace/move.h"
#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/queued.h"
#include "keyspace/record.h"
#include "keyspace/untold.h"
#include "server/filter.h"
#include "server/no_touch.h"
#include "server/pause.h"
#include "server/renamed.h"
#include "server/reply.h"
#include "server/role.h"
#include "server/settings.h"
#include "server/version.h"
#include "server/within.h"
#include "transparent/arguments.h"
#include "transparent/catalogue.h"
#include "transparent/leave.h"
#include "transparent/lent.h"
#include "transparent/long_values.h"
#include "transparent/permission.h"
#include "transparent/positions.h"
#include "transparent/serve_run.h"
#include "transparent/served.h"
#include "transparent/sort_keys.h"
#include "transparent/transactions.h"

#include <string.h>

static bool matches(filtered *f, int i) {
    return prefixes_match_name(filter_arg(f, i)) != PREFIX_NONE;
}

/* ---- commands that only the server can run --------------------------------------------------- */

/* The command that the filter looks at. */
static struct looked_at {
    filtered *command;
    const catalogue_entry *entry;
    bool runs_later; /* as it is queued or a pause of all writes holds it back: is not seen again */
    enum { NOT_ASKED, REFUSED, ALLOWED } sender;
} now;

/* Whether the server will not refuse it. Who may not run a command has nothing done for it. */
static bool will_run(void) {
    if (now.sender == NOT_ASKED) now.sender = permission_may_send(now.command) ? ALLOWED : REFUSED;
    return now.sender == ALLOWED;
}

/* Whether a command is called by one that is under way. Redis 7.0 does not tell. */
static bool is_called(filtered *f) {
    RedisModuleClientInfo client = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    return filter_tells_sender() &&
           RedisModule_GetClientInfoById(&client, filter_sender(f)) != REDISMODULE_OK;
}

/* The same as is_called(), also on Redis 7.0 within a script, or an EXEC, of which no filter is
 * asked about its own commands. What clients send while a busy script is interrupted counts as
 * called as well. */
static bool is_within(filtered *f) {
    return within_exec_or_script() || is_called(f);
}

static bool runs_within(void) {
    return is_within(now.command);
}

/* Whether a command of the sender's is queued. Anybody can send MULTI, and it is refused. To ask
 * for the sender takes a call of the kernel. */
static bool is_queued(filtered *f) {
    if (!filter_tells_sender()) return now.runs_later;
    return now.runs_later && queued_in_transaction(filter_sender(f));
}

/* Whether the server runs a command that needs its keys. While a file is loaded that is what the
 * file's own commands call alone: what clients send is refused, and nobody would be told what has
 * moved for it. */
static bool will_use_keys(void) {
    return role_loads(ckv.ctx) ? runs_within() : will_run();
}

/* EXEC asks the server whether a watched key has expired, or had when it came to be watched. Of
 * other changes it is told. To watch one is allowed while a file is loaded, too. */
static void leave_watched(filtered *f, int argc) {
    bool loads = role_loads(ckv.ctx);
    for (int i = 1; i < argc; i++) {
        RedisModuleString *key = filter_arg(f, i);
        if (prefixes_match_name(key) == PREFIX_NONE) continue;
        aside_keep(key);
        bool later = loads && will_run();
        if (later) leave_when_loaded(key);
        bool out = leave_if(key, MOVE_EXPIRING) || (lent_has(key) && will_run());
        if (out || later) lent_to_watcher(filter_sender(f), key);
    }
}

static void leave_range(filtered *f, int argc, int first, int last, int step) {
    if (last < 0) last += argc;
    for (int i = first; i <= last && i < argc; i += (step > 0 ? step : 1))
        leave_key(filter_arg(f, i));
}

/* A command that waits runs when others have run, and is to find what they have set. */
static void await_begin(filtered *f) {
    queued_await_begin(filter_sender(f));
}

static void await_key(filtered *f, const RedisModuleString *key) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    if (prefixes_match(text, len) == PREFIX_SERVING) queued_await(filter_sender(f), text, len);
}

static void await_range(filtered *f, const catalogue_entry *e, int argc) {
    int last = e->last < 0 ? e->last + argc : e->last;
    if (last == e->first) return; /* it waits for this key, and sees what becomes of it */
    await_begin(f);
    for (int i = e->first; i <= last && i < argc; i++) await_key(f, filter_arg(f, i));
    transactions_count();
}

/* XREAD and XREADGROUP wait if they are told to. */
static bool waits(filtered *f, const catalogue_entry *e, int argc) {
    bool told = strncmp(e->name, "xread", 5) != 0;
    for (int i = 1; i < argc && !told; i++) told = arg_is(filter_arg(f, i), "block");
    return e->blocks && told;
}

static void leave_asked(filtered *f, const catalogue_entry *e, int argc) {
    RedisModuleString **argv = filter_args(f, &argc);
    int count = 0;
    int *at = RedisModule_GetCommandKeys(ckv.ctx, argv, argc, &count);
    for (int i = 0; at && i < count; i++) leave_key(argv[at[i]]);
    if (at && waits(f, e, argc)) {
        await_begin(f);
        for (int i = 0; i < count; i++) await_key(f, argv[at[i]]);
        transactions_count();
    }
    RedisModule_Free(at);
    RedisModule_Free(argv);
}

/* The database of who sends the command; -1: the server does not tell, as of what is called. */
static int db_as_told(void) {
    RedisModuleClientInfo client = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    bool told =
        RedisModule_GetClientInfoById(&client, filter_sender(now.command)) == REDISMODULE_OK;
    return told ? client.db : -1;
}

/* The same, or that of who has called the script that does: in a cluster there is one, but with
 * Valkey 9. */
static int script_db;

static int db_of_sender(void) {
    if (places_dbs() == 1) return 0;
    int db = db_as_told();
    return db >= 0 ? db : script_db;
}

/* The one that it keeps to; -1: it may be about others, or nobody knows. */
static int only_db(void) {
    bool may_change = now.runs_later || !now.entry->one_db || within_exec_or_script();
    return may_change ? -1 : db_as_told();
}

/* Keys of a script, which is about to run: while its slot is open the server would look for them
 * and find none that is a record, and send the script to the node where these are still to come. */
static void leave_script(filtered *f, int argc) {
    RedisModuleString **argv = filter_args(f, &argc);
    int count = 0;
    bool open = false;
    script_db = db_of_sender();
    int *at = RedisModule_GetCommandKeys(ckv.ctx, argv, argc, &count);
    for (int i = 0; at && i < count && !leave_tells_open(argv[at[i]], &open);) i++;
    for (int i = 0; open && i < count; i++) leave_key(argv[at[i]]);
    RedisModule_Free(at);
    RedisModule_Free(argv);
}

/* ---- commands that are served ---------------------------------------------------------------- */

/* Whether ours can do it: of several keys any may match, or all have to. */
static bool can_serve(filtered *f, const catalogue_entry *e, int argc, int first, int last,
                      int step) {
    bool any = served_keys_of(e->served) == SERVED_ANY;
    for (int i = first; i <= last; i += step)
        if (matches(f, i) == any) return any;
    return !any && arguments_known(f, e->name, argc, last) &&
           !long_values_stay(f, e, argc, first, last, step);
}

/* Whether a key's records, if there are any, are here. In a cluster they may be on their way to
 * this node as long as there is no map of its slot, in one of its databases (Valkey 9). */
static bool is_here(const char *key, size_t len) {
    if (!places_are_slots()) return true;
    return places_dbs() == 1 && maps_at(0, places_of_key(key, len));
}

/* While data is imported, what has expired is there for the source of the data and for nobody else,
 * as only the server can tell them apart. */
static void leave_expired(filtered *f, int first, int last, int step) {
    for (int i = first; i <= last && settings_import_mode(); i += step)
        leave_if(filter_arg(f, i), MOVE_EXPIRED);
}

/* Of a name under which the server had a long string. */
static bool has_record(const char *key, size_t len) {
    bool any = move_any_record(key, len, MOVE_ALL);
    if (any) long_strings_forget(key, len);
    return any;
}

static bool may_have_record(const char *key, size_t len) {
    if (settings_import_mode()) return move_any_record(key, len, MOVE_ALL);
    if (!key_shapes_may_have(&ckv.shared.shapes, key, len)) return false;
    return !long_strings_have(key, len) || has_record(key, len);
}

/* Whether none of the keys has a record, nor will have one when the command runs. Then the server's
 * own command does the same. */
static bool is_about_no_record(filtered *f, int first, int last, int step) {
    if (now.runs_later) return false;
    for (int i = first; i <= last; i += step) {
        size_t len;
        const char *key = RedisModule_StringPtrLen(filter_arg(f, i), &len);
        if (may_have_record(key, len) || !is_here(key, len)) return false;
    }
    return true;
}

/* Whether a script names keys of several slots of a cluster: the server refuses its own command, by
 * its name. */
static bool crosses_slots(filtered *f, int first, int last, int step) {
    if (last <= first || !places_are_slots()) return false;
    if (!within_script()) return false;
    uint32_t slot = places_of_string(filter_arg(f, first));
    for (int i = first + step; i <= last; i += step)
        if (places_of_string(filter_arg(f, i)) != slot) return true;
    return false;
}

/* Rules that a transaction changes, or a command that a pause holds back, change when nobody looks.
 */
static bool acl_queued;

static void end_change_of_rules(void) {
    if (!within_exec() && !transactions_held_back()) permission_changed();
}

/* Puts our command in the place of the server's. False: that is left. */
static bool serve_by(filtered *f, const catalogue_entry *e, bool whoever) {
    if (permission_changing()) end_change_of_rules();
    permission_way way = permission_way_of(f, e->served);
    if (way == PERMISSION_ASKING)
        filter_rename(f, served_asking(e->served));
    else if (way == PERMISSION_BY_RULES || (way == PERMISSION_NATIVE && whoever))
        filter_rename(f, served_by_rules(e->served));
    else
        return way == PERMISSION_DENIED;
    return true;
}

/* Keys of a command of a transaction, which the server would not queue as it finds none of them. */
static bool queued_in_open_slot(filtered *f, int first, int last, int step) {
    bool open = false;
    if (!places_are_slots() || !is_queued(f)) return false;
    for (int i = first; i <= last && !leave_tells_open(filter_arg(f, i), &open);) i += step;
    return open;
}

/* What the server writes of its own and replicas are told in words of which they make a record (of
 * SET k v IFNE x: SET k v) is none on replicas in a cluster either: they are told so behind it. */
static void tell_replicas(filtered *f, int first, int last, int step) {
    if (!places_are_slots() || now.runs_later || role_follows(ckv.ctx)) return;
    if (!will_run()) return;
    for (int i = first; i <= last; i += step)
        if (matches(f, i)) untold_note((uint64_t)db_of_sender(), filter_arg(f, i));
}

static bool fits(const catalogue_entry *e, int argc) {
    return e->arity > 0 ? argc == e->arity : argc >= -e->arity;
}

/* SET with GET: who may only write is refused as it is queued, and with it the transaction. */
static bool is_refused_later(filtered *f, const catalogue_entry *e, int argc) {
    bool reads = false;
    if (!now.runs_later || strcmp(e->name, "set") != 0) return false;
    for (int i = 3; i < argc; i++) reads |= arg_is(filter_arg(f, i), "get");
    return reads && is_queued(f) && !will_run();
}

static void serve_command(filtered *f, const catalogue_entry *e, int argc) {
    int first = 1, last = 1, step = 1;
    if (!fits(e, argc)) return;
    bool lists = served_lists(e->served);
    bool keyless = lists || served_keys_of(e->served) == SERVED_FIGURES;
    if (!keyless && !positions_of(f, e, argc, &first, &last, &step)) return;
    if (crosses_slots(f, first, last, step)) return;
    if (!keyless && queued_in_open_slot(f, first, last, step)) {
        leave_range(f, argc, first, last, step);
        return;
    }
    if (!keyless && !can_serve(f, e, argc, first, last, step)) {
        leave_range(f, argc, first, last, step);
        if (served_writes_strings(e->served)) tell_replicas(f, first, last, step);
        return;
    }
    if (is_refused_later(f, e, argc)) return;
    if (!keyless) leave_expired(f, first, last, step);
    if (!keyless && !served_writes_strings(e->served) && is_about_no_record(f, first, last, step))
        return;
    if (!serve_by(f, e, lists) && !keyless) leave_range(f, argc, first, last, step);
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* With arguments it is refused, and in a script; but who sends one while a script of somebody's is
 * under way, as the server lets him when that takes long, begins a transaction. */
static void on_multi(filtered *f, int argc) {
    if (argc != 1 || is_called(f)) return;
    queued_begin(filter_sender(f));
    transactions_count();
}

static void on_end(uint64_t client) {
    queued_end(client);
    lent_forget(client);
}

static void on_exec(filtered *f) {
    untold_exec();
    script_db = db_of_sender();
    leave_queued(filter_sender(f));
    queued_exec(filter_sender(f));
    if (acl_queued) permission_change();
    acl_queued &= queued_open(QUEUED_ANYBODY);
}

static void on_debug(filtered *f, const catalogue_entry *e, int argc) {
    bool serves = (argc == 2 && arg_is(filter_arg(f, 1), "digest")) ||
                  (argc == 3 && arg_is(filter_arg(f, 1), "set-active-expire"));
    if (!serves)
        leave_range(f, argc, 2, -1, 1);
    else if (settings_debug_allowed())
        serve_command(f, e, argc);
}

/* Ours looks for the keys of a pattern when it runs: what is sorted may be another list by then,
 * and who may not sort it is not to have it gone over. */
static void on_sort(filtered *f, const catalogue_entry *e, int argc) {
    leave_asked(f, e, argc);
    RedisModuleString **argv = filter_args(f, &argc);
    bool any = sort_keys_any(argv, argc), can = any && sort_keys_can_tell(argv, argc);
    if (any && !(can && serve_by(f, e, false)) && will_run())
        sort_keys_leave(NULL, argv, argc, leave_key);
    RedisModule_Free(argv);
}

static void on_cluster(filtered *f, const catalogue_entry *e, int argc) {
    if (argc == 3 && arg_is(filter_arg(f, 1), "countkeysinslot")) serve_command(f, e, argc);
}

static void look_at(filtered *f, const catalogue_entry *e, int argc) {
    switch ((catalogue_kind)e->kind) {
    case COMMAND_SERVED:
        serve_command(f, e, argc);
        break;
    case COMMAND_RANGE:
        leave_range(f, argc, e->first, e->last, e->step);
        if (e->blocks) await_range(f, e, argc);
        break;
    case COMMAND_ASK:
        leave_asked(f, e, argc);
        break;
    case COMMAND_SORT:
        on_sort(f, e, argc);
        break;
    case COMMAND_SCRIPT:
        leave_script(f, argc);
        break;
    case COMMAND_WATCH:
        leave_watched(f, argc);
        break;
    case COMMAND_UNWATCH:
        if (!is_queued(f)) lent_forget(filter_sender(f));
        break;
    case COMMAND_DEBUG:
        on_debug(f, e, argc);
        break;
    case COMMAND_CLIENT:
        if (leave_untold() && argc == 2 && arg_is(filter_arg(f, 1), "unpause"))
            serve_command(f, e, argc);
        break;
    case COMMAND_CLUSTER:
        on_cluster(f, e, argc);
        break;
    case COMMAND_MULTI:
        on_multi(f, argc);
        break;
    case COMMAND_EXEC:
        on_exec(f);
        break;
    case COMMAND_DISCARD:
        on_end(filter_sender(f));
        break;
    case COMMAND_ACL:
        if (permission_changes_by(f)) {
            permission_change();
            acl_queued |= is_queued(f);
        }
        if (!strcmp(e->name, "config") && argc == 2 && arg_is(filter_arg(f, 1), "resetstat"))
            serve_command(f, e, argc);
        break;
    case COMMAND_KEYLESS:
        break;
    }
}

/* Whether a command runs within a script or a transaction, which the server has let pass for keys
 * that it has not found. Who sends one by itself to where his slot is to come has asked where it is
 * now (ASK): there is no such record. Where that is not known (Redis 7.0) what is about other types
 * than strings does not wait. */
static bool waits_for_records(void) {
    bool sure = filter_tells_sender();
    bool queued = is_queued(now.command) && (sure || now.entry->leaves_strings);
    return (within_script() || queued) && will_run();
}

/* A command with a key that awaits something: the server itself refuses it where the slot is
 * another node's, and what is not well-formed. */
static void put_off(filtered *f, const catalogue_entry *e, const leave_how *left) {
    if (left->crosses || !fits(e, filter_argc(f))) {
        RedisModule_FreeString(NULL, left->awaits);
    } else if (left->defers) {
        serve_run_instead(f, e->name, e->reads, left->awaits);
    } else {
        RedisModule_CommandFilterArgInsert(f, 1, left->awaits);
        filter_rename(f, served_moving());
    }
}

static bool names_map(filtered *f) {
    bool named = false;
    for (int i = 1; i < filter_argc(f) && !named; i++)
        named = places_of_name(filter_arg(f, i)) != PLACES_NONE;
    return named;
}

/* What a replica in a cluster has under the name of a map its primary did not have when it took in
 * the one that comes (an import of the slot had failed there, say). The server would keep it, and
 * the replica would go on without the other. */
static void restore_over(filtered *f) {
    int argc = filter_argc(f);
    if (argc < 4 || !role_mirrors() || places_of_name(filter_arg(f, 1)) == PLACES_NONE) return;
    RedisModule_CommandFilterArgInsert(f, argc, RedisModule_CreateString(NULL, "REPLACE", 7));
}

/* Whether a command writes a file, or EXEC may run one that does, or that is about a map. */
static bool writes_file(filtered *f) {
    static const renamed_command of[] = {RENAMED_BGSAVE, RENAMED_SAVE,         RENAMED_PSYNC,
                                         RENAMED_SYNC,   RENAMED_BGREWRITEAOF, RENAMED_SHUTDOWN,
                                         RENAMED_DEBUG,  RENAMED_EXEC};
    const char *name = renamed_sent(filter_arg(f, 0));
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (renamed_is(name, of[i])) return true;
    return false;
}

static void filter(filtered *f) {
    size_t len;
    bool paused = pause_holds(), defers = serve_run_has_to() && is_called(f);
    if (!defers) leave_loaded();
    if (!paused && !defers && !(leave_untold() && is_within(f))) leave_catch_up();
    if ((paused || lent_any()) && !is_called(f)) {
        if (names_map(f)) leave_before_map();
        if (writes_file(f)) lent_before_file();
    }
    const char *name = RedisModule_StringPtrLen(filter_arg(f, 0), &len);
    const catalogue_entry *e = catalogue_find(name, len);
    if (!e) return;
    if (paused) transactions_hold_back();
    /* In the midst of one that is looked at, another module may call one: it is told of moves. */
    struct looked_at before = now;
    bool runs_later = paused || (queued_open(QUEUED_ANYBODY) && queued_open(filter_sender(f)));
    now = (struct looked_at){.command = f, .entry = e, .runs_later = runs_later};
    bool restores = !strncmp(e->name, "restore", strlen("restore"));
    bool arrives = restores && strcmp(e->name, "restore") != 0; /* -asking: as a map does */
    leave_how around = leave_begin((leave_how){.client = filter_sender(f),
                                               .runs_later = runs_later,
                                               .leaves_strings = e->leaves_strings,
                                               .reads = e->reads,
                                               .will_run = will_use_keys,
                                               .is_called = runs_within,
                                               .only_db = only_db,
                                               .waits = arrives ? NULL : waits_for_records,
                                               .db = db_of_sender,
                                               .defers = defers});
    look_at(f, e, filter_argc(f));
    leave_how left = leave_begin(around);
    if (left.awaits) put_off(f, e, &left);
    if (restores) restore_over(f);
    now = before;
}

/* ---- settings and events --------------------------------------------------------------------- */

/* A key has come to be in the server: by another module, or in a way that no filter sees. */
static int on_new_key(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key) {
    (void)type, (void)event;
    if (!record_announces(key) && prefixes_match_name(key) != PREFIX_NONE)
        move_drop_record(ctx, key);
    return REDISMODULE_OK;
}

/* Valkey before 9.1 forgets the database that a client has selected when a module listens and a key
 * comes to be in another one (MOVE, COPY). */
static bool may_listen(void) {
    return version_is_redis(REDIS_ANY) || version_is_valkey(VALKEY_9_1);
}

static void listen_to_new_keys(RedisModuleCtx *ctx) {
    static bool listening;
    if (!listening && may_listen())
        RedisModule_SubscribeToKeyspaceEvents(ctx, REDISMODULE_NOTIFY_NEW, on_new_key);
    listening = true;
}

/* COMMAND takes milliseconds. */
static void read_catalogue(bool again) {
    static bool known;
    known &= !again;
    if (!prefixes_any() || known) return;
    catalogue_read(ckv.ctx, served_find);
    known = true;
}

static void configure(void) {
    if (prefixes_any()) {
        aof_form_prefixes_changed();
        /* Of a file that is half loaded nobody knows what is to come. */
        key_shapes_keep(&ckv.shared.shapes, !maps_any() && !role_loads_any(ckv.ctx));
        acl_queued = true;
        transactions_begin_unseen();
        listen_to_new_keys(ckv.ctx);
        read_catalogue(false);
    } else {
        key_shapes_stop(&ckv.shared.shapes);
    }
    permission_change(); /* without a filter nobody sees it, and what is queued has yet to run */
    filter_set(ckv.ctx, FILTER_SERVE, prefixes_any() ? filter : NULL);
    followed_changed();
}

void serve_modules_changed(void) {
    read_catalogue(true);
}

static void on_client(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)ctx, (void)e;
    const RedisModuleClientInfo *client = data;
    if (sub == REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED) {
        on_end(client->id);
        no_touch_forget(client->id);
    }
}

void serve_start(RedisModuleCtx *ctx) {
    leave_start(ctx);
    transactions_start(ctx);
    lent_start(ctx);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ClientChange, on_client);
    prefixes_listen(configure);
    configure();
}
