/* tryagain.c: whether a map may be on another node. See tryagain.h. */
#include "keyspace/tryagain.h"

#include "keyspace/places.h"
#include "server/own_call.h"
#include "server/role.h"

#include <errno.h>

tryagain_answer tryagain_ask(RedisModuleCtx *ctx, int db, uint32_t place) {
    if (places_layout() != PLACES_SLOTS || role_follows(ctx)) return TRYAGAIN_NO;
    RedisModule_SelectDb(ckv.ctx, db);
    RedisModuleString *name = places_name(place);
    /* Of a key that is not there, PERSIST does and announces nothing. */
    RedisModuleCallReply *reply = own_call(ckv.ctx, "PERSIST", "s", name);
    bool refused = !reply && errno == EPERM;
    RedisModule_FreeString(ckv.ctx, name);
    if (reply) RedisModule_FreeCallReply(reply);
    return refused ? TRYAGAIN_YES : TRYAGAIN_NO;
}
