/* tryagain.c: whether a map may be on another node. See tryagain.h. */
#include "keyspace/tryagain.h"

#include "keyspace/places.h"
#include "server/filter.h"
#include "server/own_call.h"
#include "server/role.h"

#include <errno.h>

static bool refused(RedisModuleString *name) {
    /* Of a key that is not there, PERSIST does and announces nothing. */
    RedisModuleCallReply *reply = own_call(ckv.ctx, "PERSIST", "s", name);
    bool refused = !reply && errno == EPERM;
    if (reply) RedisModule_FreeCallReply(reply);
    return refused;
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
