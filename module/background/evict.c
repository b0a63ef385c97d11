/* evict.c: making room. See evict.h. */
#include "background/evict.h"

#include "server/child.h"
#include "core/map/map_evict.h"
#include "background/evict_other_keys.h"
#include "keyspace/lookup.h"
#include "keyspace/removals.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Shares of a limit, see evict.h. */
#define FREE_SLOWLY  0.01
#define FREE_AT_ONCE 0.0005
#define NEAR         0.03
/* But at most so many bytes, and as if the limit were at least this. */
#define FREE_MOST   (64.0 * (1 << 20))
#define LIMIT_LEAST (32.0 * (1 << 20))
/* What the records take is added up again when this share of the limit has been written. */
#define REMEASURE(limit) ((uint64_t)(limit) / 2048)
/* Nothing was found that may go: how long that is believed. */
#define EXHAUSTED_MS      10000
#define EXHAUSTED_WRITTEN (64 << 10) /* bytes of new records */
/* How late another timer may be, at the most. */
#define LONG_OVERDUE_MS 10000
/* Bytes to free before replicas and AOF are told. */
#define AT_ONCE (256.0 * (1 << 10))

/* Bytes that records and other keys take, as far as they give way together. */
typedef struct balance {
    double records, others;
} balance;

static struct {
    bool evicts; /* the policy is other than noeviction */
    map_eviction how;
    uint8_t uses_of_write;
    uint64_t server_limit; /* bytes; 0: none */
    bool refuses; /* as of the start of the command: it must do all that it does, or nothing */
    RedisModuleCommandFilter *filter;
    maps_cursor hand;
    removals gone;
    uint32_t rounds_in_vain, calls_in_vain; /* of the hand, without a record that could go */
    int64_t exhausted_ms;                   /* when nothing was found; 0: not so */
    uint64_t exhausted_written;             /* what `written` was then */
    uint64_t records_bytes, unmeasured, written;
    uint64_t freed_records, freed_others; /* bytes, lately */
    balance weights;
    bool others_by_timer_only;
    size_t reserved;
    bool reservation_kept;
} evict;

/* ---- how full memory is ---------------------------------------------------------------------- */

static uint64_t measure_records(void) {
    maps_sum sum = maps_add_up(-1);
    evict.unmeasured = 0;
    evict.records_bytes =
        sum.totals.page_bytes + sum.totals.large_bytes + codecs_bytes(&ckv.shared.codecs);
    return evict.records_bytes;
}

void evict_note_written(size_t bytes) {
    evict.unmeasured += bytes;
    evict.written += bytes;
}

/* Bytes of memory that the server counts against maxmemory. */
static double server_used(void) {
    return (double)RedisModule_GetUsedMemoryRatio() * (double)evict.server_limit;
}

static double records_used(void) {
    if (evict.unmeasured > REMEASURE(ckv.config.maxmemory)) measure_records();
    return (double)evict.records_bytes;
}

/* Bytes to free, so that a share of the limit stays free beside what is reserved. */
static double excess_of(double used, double limit, double free_share, size_t reserved) {
    double kept_free = fmin(free_share * fmax(limit, LIMIT_LEAST), FREE_MOST);
    return used + (double)reserved + kept_free - limit;
}

/* Of the limit that is exceeded by more; negative: there is room. */
static double excess(double free_share, size_t reserved) {
    double server = (double)evict.server_limit, own = (double)ckv.config.maxmemory;
    double bytes = -DBL_MAX;
    if (server > 0) bytes = excess_of(server_used(), server, free_share, reserved);
    if (own > 0) bytes = fmax(bytes, excess_of(records_used(), own, free_share, reserved));
    return bytes;
}

/* What commands must find free beside the memory that they want. */
static size_t kept_for_others(void) {
    return evict.reservation_kept ? evict.reserved : 0;
}

/* ---- making room ----------------------------------------------------------------------------- */

/* The next bucket from which something may go; false: there is none. */
static bool move_hand(stored_map **s, uint32_t *bucket) {
    while (evict.rounds_in_vain <= MAP_EVICT_ROUNDS || evict.calls_in_vain <= MAP_EVICT_CALLS) {
        while (maps_cursor_next(&evict.hand, s, bucket)) {
            bool some = !evict.how.expiring_only || (*s)->m->totals.expiring > 0;
            if (some && maps_served(*s)) return true;
        }
        maps_cursor_start(&evict.hand);
        evict.rounds_in_vain++;
        evict.calls_in_vain++; /* even if there is no bucket */
    }
    evict.rounds_in_vain = evict.calls_in_vain = 0;
    evict.exhausted_ms = ckv_now_ms();
    evict.exhausted_written = evict.written;
    return false;
}

static uint64_t bytes_of(const map *m) {
    return m->totals.page_bytes + m->totals.large_bytes;
}

/* Evicts from one bucket; adds to *evicted. False: nothing is left that may go. */
static bool evict_bucket(RedisModuleCtx *ctx, uint64_t *evicted) {
    stored_map *s;
    uint32_t bucket;
    if (!move_hand(&s, &bucket)) return false;
    RedisModule_SelectDb(ctx, s->db);
    evict.how.now_ms = ckv_now_ms();
    uint64_t before = bytes_of(s->m);
    uint32_t n = map_evict(s->m, bucket, &evict.how, removals_note, &evict.gone);
    evict.calls_in_vain++;
    if (n == 0) return true;
    if (bytes_of(s->m) < before) evict.freed_records += before - bytes_of(s->m);
    evict.rounds_in_vain = evict.calls_in_vain = 0;
    *evicted += n;
    ckv.stats.evicted += n;
    removals_announce(ctx, &evict.gone, REDISMODULE_NOTIFY_EVICTED, "evicted");
    keyspace_drop_if_empty(ctx, s);
    if (ckv.config.maxmemory > 0) measure_records();
    return true;
}

static void weigh(void) {
    balance b = {(double)measure_records(), 0};
    double own = (double)ckv.config.maxmemory;
    bool own_limit_is_why = own > 0 && excess_of(b.records, own, FREE_SLOWLY, evict.reserved) > 0;
    if (evict.server_limit > 0 && !own_limit_is_why) b.others = others_bytes(ckv.ctx, &evict.how);
    /* Only what was freed lately is to count. */
    evict.freed_records /= 2;
    evict.freed_others /= 2;
    evict.weights = b;
}

static bool turn_of_others(void) {
    return (double)evict.freed_others * evict.weights.records <
           (double)evict.freed_records * evict.weights.others;
}

/* Frees so many bytes of data; stops at a time (monotonic, us; 0: never). What used memory says
 * meanwhile is no guide: what replicas and AOF will be told is waiting in it. Returns how many
 * records went. */
static uint64_t make_room(RedisModuleCtx *ctx, double bytes, uint64_t deadline_us, bool others) {
    uint64_t evicted = 0;
    double wanted = (double)(evict.freed_records + evict.freed_others) + bytes;
    while ((double)(evict.freed_records + evict.freed_others) < wanted) {
        size_t freed = others && turn_of_others() ? others_evict(ctx, &evict.how) : 0;
        evict.freed_others += freed;
        if (freed == 0 && !evict_bucket(ctx, &evicted)) break;
        if (deadline_us && ckv_monotonic_us() >= deadline_us) break;
    }
    return evicted;
}

static bool exhausted(void) {
    if (ckv_now_ms() - evict.exhausted_ms > EXHAUSTED_MS) evict.exhausted_ms = 0;
    if (evict.written - evict.exhausted_written > EXHAUSTED_WRITTEN) evict.exhausted_ms = 0;
    return evict.exhausted_ms != 0;
}

static bool may_evict(RedisModuleCtx *ctx) {
    return evict.evicts && !exhausted() && keyspace_may_expire(ctx);
}

bool evict_near(void) {
    return evict.filter && excess(NEAR, evict.reserved) > 0;
}

bool evict_step(RedisModuleCtx *ctx, uint64_t deadline_us) {
    if (!evict.filter) return false;
    if (ckv.config.maxmemory > 0) measure_records();
    double bytes = excess(FREE_SLOWLY, evict.reserved);
    if (bytes <= 0 || !may_evict(ctx)) return false;
    weigh();
    make_room(ctx, bytes, deadline_us, true);
    return true;
}

uint64_t evict_now(RedisModuleCtx *ctx) {
    double bytes = excess(FREE_AT_ONCE, kept_for_others());
    if (!may_evict(ctx)) return 0;
    return make_room(ctx, bytes < AT_ONCE ? bytes : AT_ONCE, 0, !evict.others_by_timer_only);
}

/* ---- reservations ---------------------------------------------------------------------------- */

void evict_reserve(size_t bytes) {
    evict.reserved = bytes;
    if (bytes == 0) evict.reservation_kept = false;
}

bool evict_reserved(void) {
    bool free = excess(FREE_AT_ONCE, evict.reserved) <= 0;
    if (!evict.filter || free || !may_evict(ckv.ctx)) evict.reservation_kept = true;
    return evict.reservation_kept;
}

/* ---- before each command --------------------------------------------------------------------- */

/* Evicts some. Returns false if nothing went. It is a command of its own, so that what it tells
 * replicas and AOF is on its way when it is done: "!" lets it replicate. */
static bool call_evict(void) {
    RedisModuleCallReply *reply = RedisModule_Call(ckv.ctx, "CEVICT", "!");
    bool some = reply && RedisModule_CallReplyInteger(reply) > 0;
    if (reply) RedisModule_FreeCallReply(reply);
    return some;
}

static void before_command(RedisModuleCommandFilterCtx *command) {
    (void)command;
    if (!evict.evicts) {
        evict.refuses = ckv.config.maxmemory > 0 && records_used() > (double)ckv.config.maxmemory;
        return;
    }
    while (excess(FREE_AT_ONCE, kept_for_others()) > 0 && may_evict(ckv.ctx)) {
        /* A script's commands are one with the script. */
        if (RedisModule_GetContextFlags(ckv.ctx) & REDISMODULE_CTX_FLAGS_LUA) return;
        if (!call_evict()) return;
    }
}

bool evict_refuses(void) {
    return evict.refuses;
}

/* ---- policy ---------------------------------------------------------------------------------- */

bool evict_counts_uses(void) {
    return ckv.shared.count_uses && !child_at_work();
}

uint8_t evict_uses_of_write(void) {
    return ckv.shared.count_uses ? evict.uses_of_write : 0;
}

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && !strcmp(text + len - end_len, end);
}

/* Newer servers have policies of their own; all are "volatile-" or "allkeys-" and what goes first.
 * What we do not know is taken for a kind of LRU. */
static void set_policy(const char *policy) {
    evict.evicts = strcmp(policy, "noeviction") != 0;
    evict.how.expiring_only = !strncmp(policy, "volatile-", 9);
    evict.how.order = ends_with(policy, "-random") ? MAP_EVICT_RANDOM
                      : ends_with(policy, "-ttl")  ? MAP_EVICT_FIRST_TO_EXPIRE
                                                   : MAP_EVICT_LEAST_USED;
    evict.uses_of_write = ends_with(policy, "-lfu") ? 0 : 1;
}

static void configure(RedisModuleCtx *ctx) {
    RedisModuleServerInfoData *memory = RedisModule_GetServerInfo(ctx, "memory");
    int error;
    evict.server_limit = RedisModule_ServerInfoGetFieldUnsigned(memory, "maxmemory", &error);
    const char *policy = RedisModule_ServerInfoGetFieldC(memory, "maxmemory_policy");
    set_policy(policy ? policy : "noeviction");
    RedisModule_FreeServerInfo(ctx, memory);

    bool limited = evict.server_limit > 0 || ckv.config.maxmemory > 0;
    ckv.shared.count_uses = limited && evict.evicts && evict.how.order == MAP_EVICT_LEAST_USED;
    evict.exhausted_ms = 0;
    evict.refuses = false;
    weigh();
    if (limited && !evict.filter) {
        evict.filter =
            RedisModule_RegisterCommandFilter(ctx, before_command, REDISMODULE_CMDFILTER_NOSELF);
    } else if (!limited && evict.filter) {
        RedisModule_UnregisterCommandFilter(ctx, evict.filter);
        evict.filter = NULL;
    }
}

static bool about_memory(const RedisModuleConfigChange *change) {
    for (uint32_t i = 0; i < change->num_changes; i++)
        if (strstr(change->config_names[i], "maxmemory")) return true;
    return false;
}

static void make_all_room(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    if (evict.filter && may_evict(ctx)) make_room(ctx, excess(FREE_SLOWLY, 0), 0, true);
}

/* Only what concerns memory counts: a file that is being saved changes settings, map by map, and
 * no record may go while it is written. What is replicated within CONFIG SET would make that a
 * write, to be replicated itself. So room is made by a timer, which must come before the one that
 * the server has just set to make room itself: that would take maps. Of those that are due the
 * server begins with what it was told last; but all timers of modules are one to it, told when a
 * timer is due before all others. Ours has been due for longer than any other. */
static void on_config(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)sub;
    if (!about_memory(data)) return;
    configure(ctx);
    if (!evict.filter || !may_evict(ctx) || excess(FREE_SLOWLY, 0) <= 0) return;
    /* Not before the machine was started, where the server's clock begins. */
    uint64_t up_ms = ckv_monotonic_us() / 1000;
    mstime_t overdue_ms = up_ms < LONG_OVERDUE_MS ? (mstime_t)up_ms : LONG_OVERDUE_MS;
    RedisModule_CreateTimer(ctx, -overdue_ms, make_all_room, NULL);
}

/* Another module may call a command while it has a key open: then is no time to evict keys. */
static void look_for_modules(RedisModuleCtx *ctx) {
    RedisModuleCallReply *list = RedisModule_Call(ctx, "MODULE", "c", "LIST");
    evict.others_by_timer_only = !list || RedisModule_CallReplyLength(list) > 1;
    if (list) RedisModule_FreeCallReply(list);
}

static void on_module(RedisModuleCtx *ctx, RedisModuleEvent e, uint64_t sub, void *data) {
    (void)e, (void)sub, (void)data;
    look_for_modules(ctx);
}

void evict_start(RedisModuleCtx *ctx) {
    maps_cursor_register(&evict.hand);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ModuleChange, on_module);
    look_for_modules(ctx);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Config, on_config);
    configure(ctx);
}
