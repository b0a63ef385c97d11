/* maxmemory.c: the limits of memory. See maxmemory.h. */
#include "keyspace/maxmemory.h"

#include "keyspace/maps.h"
#include "server/child.h"
#include "server/machine.h"
#include "server/settings.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is kept free is a share of the limit and room for a command. */
#define FREE_ALWAYS (1.0 * (1 << 10))

/* For strings that move out: twice what evictions keep free at most, so much at least. */
#define FREE_SHARE       0.01
#define FREE_FOR_STRINGS (1.0 * (1 << 20))

#define LEARNED_SHARE(n) ((n) / 2)

static maxmemory_settings settings;
static uint64_t raised;
static uint8_t uses_of_write;
static bool reads_are_uses;
static bool refuses;
static uint64_t written;

/* ---- how full memory is ---------------------------------------------------------------------- */

uint64_t maxmemory_records_used(void) {
    map_group sum = maps_totals(), unserved = maps_totals_unserved();
    map_group_add(&sum, &unserved);
    uint64_t learned = codecs_bytes(&ckv.shared.codecs), own = (uint64_t)ckv.config.maxmemory;
    if (own > 0 && learned > LEARNED_SHARE(own)) learned = LEARNED_SHARE(own);
    return map_record_bytes(&sum.totals) + ckv.shared.hot.bytes + learned;
}

void maxmemory_note_written(size_t bytes) {
    written += bytes;
}

uint64_t maxmemory_written(void) {
    return written;
}

/* Bytes of memory that the server counts against maxmemory. */
static double server_used(void) {
    return (double)RedisModule_GetUsedMemoryRatio() * (double)(settings.server_limit + raised);
}

static double excess_of(double used, double limit, double free_share, size_t reserved) {
    double kept_free = fmin(free_share * limit + FREE_ALWAYS, MAXMEMORY_FREE_MOST);
    return used + (double)reserved + kept_free - limit;
}

double maxmemory_server_excess(double free_share, size_t reserved) {
    double limit = (double)settings.server_limit;
    return limit > 0 ? excess_of(server_used(), limit, free_share, reserved) : -DBL_MAX;
}

double maxmemory_own_excess(double free_share, size_t reserved) {
    double own = (double)ckv.config.maxmemory;
    return own > 0 ? excess_of((double)maxmemory_records_used(), own, free_share, reserved)
                   : -DBL_MAX;
}

double maxmemory_excess(double free_share, size_t reserved) {
    double server = (double)settings.wanted_limit, own = maxmemory_own_excess(free_share, reserved);
    if (server == 0) return own;
    return fmax(own, excess_of(server_used(), server, free_share, reserved));
}

int64_t maxmemory_room(void) {
    double limit = (double)settings.wanted_limit;
    if (limit == 0) return machine_spare_bytes();
    double kept_free = fmax(2 * fmin(FREE_SHARE * limit, MAXMEMORY_FREE_MOST), FREE_FOR_STRINGS);
    return (int64_t)(limit - kept_free - server_used());
}

/* ---- a limit that is lowered ----------------------------------------------------------------- */

/* Of what is used: the setting stays so much above it, and goes down in steps of so much. On a
 * small server that is less than clients' buffers come and go by. */
#define STEP       0.01
#define HELD_ABOVE (256.0 * (1 << 10))

static bool stepping;

static void set_server_limit(uint64_t bytes, uint64_t above) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)(bytes + above));
    stepping = true;
    bool set = settings_set(ckv.ctx, "maxmemory", text);
    stepping = false;
    if (!set) return;
    settings.server_limit = bytes;
    raised = above;
}

bool maxmemory_stepping(void) {
    return stepping;
}

/* Where the setting may be by what is used. */
static double held_limit(void) {
    return fmax((double)settings.wanted_limit, server_used() * (1 + STEP) + HELD_ABOVE);
}

bool maxmemory_held(void) {
    return settings.server_limit != settings.wanted_limit;
}

void maxmemory_hold(void) {
    if (settings.wanted_limit > 0 && held_limit() > (double)settings.server_limit)
        set_server_limit((uint64_t)held_limit(), raised);
}

void maxmemory_step_down(bool room_is_made) {
    if (!maxmemory_held()) return;
    double limit = held_limit();
    if (!room_is_made || limit <= (double)settings.wanted_limit)
        set_server_limit(settings.wanted_limit, raised);
    else if (limit < (double)settings.server_limit * (1 - STEP))
        set_server_limit((uint64_t)limit, raised);
}

void maxmemory_raise(uint64_t bytes) {
    if (settings.wanted_limit > 0 && bytes != raised)
        set_server_limit(settings.server_limit, bytes);
}

uint64_t maxmemory_raised(void) {
    return raised;
}

bool maxmemory_moved(void) {
    return maxmemory_held() || raised > 0;
}

/* ---- refusing -------------------------------------------------------------------------------- */

void maxmemory_decide(void) {
    double own = (double)ckv.config.maxmemory;
    refuses = !settings.evicts && own > 0 && (double)maxmemory_records_used() > own;
}

void maxmemory_permit(void) {
    refuses = false;
}

bool maxmemory_refuses(void) {
    return refuses;
}

/* ---- policy ---------------------------------------------------------------------------------- */

bool maxmemory_counts_reads(void) {
    return ckv.shared.count_uses && reads_are_uses && !child_at_work();
}

uint8_t maxmemory_uses_of_write(void) {
    return ckv.shared.count_uses ? uses_of_write : 0;
}

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && !strcmp(text + len - end_len, end);
}

/* Newer servers have policies of their own; all are "volatile-" or "allkeys-" and what goes first.
 * What we do not know is taken for a kind of LRU. */
static void set_policy(const char *policy) {
    settings.evicts = strcmp(policy, "noeviction") != 0;
    settings.expiring_only = !strncmp(policy, "volatile-", 9);
    settings.order = ends_with(policy, "-random") ? MAP_EVICT_RANDOM
                     : ends_with(policy, "-ttl")  ? MAP_EVICT_FIRST_TO_EXPIRE
                                                  : MAP_EVICT_LEAST_USED;
    uses_of_write = ends_with(policy, "-lfu") ? 0 : 1;
    reads_are_uses = !ends_with(policy, "-lrm"); /* least recently modified: Redis 8.6 */
}

void maxmemory_configure(RedisModuleCtx *ctx, bool server_limit) {
    RedisModuleServerInfoData *memory = RedisModule_GetServerInfo(ctx, "memory");
    int error;
    settings.server_limit = RedisModule_ServerInfoGetFieldUnsigned(memory, "maxmemory", &error);
    if (server_limit) raised = 0;
    settings.server_limit -= raised;
    if (server_limit) settings.wanted_limit = settings.server_limit;
    const char *policy = RedisModule_ServerInfoGetFieldC(memory, "maxmemory_policy");
    set_policy(policy ? policy : "noeviction");
    RedisModule_FreeServerInfo(ctx, memory);

    settings.limited = settings.wanted_limit > 0 || ckv.config.maxmemory > 0;
    ckv.shared.count_uses =
        settings.limited && settings.evicts && settings.order == MAP_EVICT_LEAST_USED;
    refuses = false;
}

const maxmemory_settings *maxmemory_now(void) {
    return &settings;
}
