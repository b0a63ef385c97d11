/* move_call.c: see move_call.h. */
#include "keyspace/move_call.h"

#include "server/acl.h"
#include "server/own_call.h"

void move_call(const char *command, uint64_t db, RedisModuleString *key) {
    bool trusted = acl_trust(true);
    RedisModule_SelectDb(ckv.ctx, (int)db);
    own_call_drop(own_call(ckv.ctx, command, "!s", key));
    acl_trust(trusted);
}
