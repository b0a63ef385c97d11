/* tryagain.c: whether a map may be on another node. See tryagain.h. */
#include "keyspace/tryagain.h"

#include "keyspace/places.h"
#include "server/filter.h"
#include "server/own_call.h"
#include "server/role.h"

#include <errno.h>

/* Where the cluster is down the server refuses before it looks whose the slot is: then nobody
 * knows. Where it may be read from nonetheless (cluster-allow-reads-when-down), a command that
 * reads is answered, or sent away. */
static bool is_refused(RedisModuleCallReply *reply, bool reads) {
    if (reply) RedisModule_FreeCallReply(reply);
    return !reply && (errno == EPERM || errno == ENETDOWN || (reads && errno == EROFS));
}

static bool refused(RedisModuleString *name) {
    /* Of a key that is not there, PERSIST does and announces nothing. */
    RedisModuleCallReply *reply = own_call(ckv.ctx, "PERSIST", "s", name);
    if (reply || errno != EROFS) return is_refused(reply, false);
    return is_refused(own_call(ckv.ctx, "OBJECT", "cs", "ENCODING", name), true);
}

tryagain_answer tryagain_ask(RedisModuleCtx *ctx, int db, uint32_t place) {
    if (places_layout() != PLACES_SLOTS || role_follows(ctx)) return TRYAGAIN_NO;
    RedisModule_SelectDb(ckv.ctx, db);
    RedisModuleString *name = places_name(place);
    bool elsewhere = refused(name);
    if (elsewhere && filter_renew_begin(ckv.ctx)) {
        elsewhere = refused(name);
        filter_renew_end(ckv.ctx);
    }
    RedisModule_FreeString(ckv.ctx, name);
    return elsewhere ? TRYAGAIN_YES : TRYAGAIN_NO;
}
