/* tryagain.c: whether a map may be on another node. See tryagain.h. */
#include "keyspace/tryagain.h"

#include "keyspace/places.h"
#include "server/clock.h"
#include "server/filter.h"
#include "server/own_call.h"
#include "server/role.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Why the server has refused a call that has just been made; 0: it has not. */
static int refusal(RedisModuleCallReply *reply) {
    if (!reply) return errno;
    RedisModule_FreeCallReply(reply);
    return 0;
}

/* Asks for a key by a command that writes, but does and announces nothing where there is no such
 * key. */
static int refusal_to_write(RedisModuleString *name) {
    return refusal(own_call(ckv.ctx, "persist", "s", name));
}

static int refusal_to_read(RedisModuleString *name) {
    return refusal(own_call(ckv.ctx, "object|encoding", "cs", "ENCODING", name));
}

/* While the cluster is down the server refuses before it looks whose the slot is: nobody knows
 * (ENETDOWN). But where it may be read from (EROFS: cluster-allow-reads-when-down), a command that
 * reads is answered, or sent away. */
static bool refused(RedisModuleString *name) {
    int why = refusal_to_write(name);
    if (why != EROFS) return why == EPERM || why == ENETDOWN;
    return refusal_to_read(name) != 0;
}

/* A key of that name may stand beside the record, and keeps its expiry. */
static bool sent_away(RedisModuleString *key) {
    return refusal_to_read(key) == EPERM;
}

static bool is_elsewhere(int db, RedisModuleString *name, bool (*is)(RedisModuleString *)) {
    RedisModule_SelectDb(ckv.ctx, db);
    bool elsewhere = is(name);
    if (elsewhere && filter_renew_begin(ckv.ctx)) {
        elsewhere = is(name);
        filter_renew_end(ckv.ctx);
    }
    return elsewhere;
}

bool tryagain_may_be_elsewhere(RedisModuleCtx *ctx, int db, uint32_t place) {
    if (!places_are_slots() || role_follows(ctx)) return false;
    RedisModuleString *name = places_name(place);
    bool elsewhere = is_elsewhere(db, name, refused);
    RedisModule_FreeString(ckv.ctx, name);
    return elsewhere;
}

bool tryagain_is_open(RedisModuleCtx *ctx, int db, RedisModuleString *key) {
    bool asks = places_are_slots() && !role_follows(ctx);
    return asks && is_elsewhere(db, key, sent_away);
}

/* Whether a word is in what a command of CLUSTER tells. */
typedef enum { TOLD_NOTHING, TOLD_WITHOUT, TOLD_WITH } told;

static told cluster_tells(const char *command, const char *subcommand, const char *word) {
    size_t len = 0;
    RedisModuleCallReply *reply = own_call(ckv.ctx, command, "c", subcommand);
    const char *text = reply ? RedisModule_CallReplyStringPtr(reply, &len) : NULL;
    told tells = !text                                   ? TOLD_NOTHING
                 : memmem(text, len, word, strlen(word)) ? TOLD_WITH
                                                         : TOLD_WITHOUT;
    own_call_drop(reply);
    return tells;
}

bool tryagain_is_down(uint64_t believed_us) {
    static uint64_t asked_us;
    static bool down;
    uint64_t now_us = clock_monotonic_us();
    if (!places_are_slots()) return false;
    if (now_us - asked_us < believed_us) return down;
    asked_us = now_us;
    return down = cluster_tells("cluster|info", "INFO", "cluster_state:fail") == TOLD_WITH;
}

bool tryagain_is_given_back(uint32_t place) {
    char open[sizeof " [16383-"]; /* as this node's line says, and no other's */
    snprintf(open, sizeof open, " [%u-", place);
    return !tryagain_is_down(0) && cluster_tells("cluster|nodes", "NODES", open) == TOLD_WITHOUT;
}
