/* arguments.c: see arguments.h. */
#include "transparent/arguments.h"

#include "commands/expire_args.h"
#include "core/base/expiry.h"
#include "server/clock.h"
#include "server/reply.h"
#include "server/role.h"

#include <string.h>

/* What has expired when it is given its expiry is the server's, as servers differ in what they
 * tell; and what would be further away than a record can keep. `unit` in ms. But what its primary
 * has made a record of comes later to a replica, behind its time perhaps. */
static bool is_time_for_server(RedisModuleString *number, bool absolute, long long unit) {
    long long at, now = absolute ? clock_now_ms() / unit : 0;
    if (RedisModule_StringToLongLong(number, &at) != REDISMODULE_OK) return false;
    bool past = at <= now && !(absolute && role_mirrors());
    return past || at - now >= EXPIRY_TTL_MAX_MS / unit;
}

/* EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, SETEX, PSETEX. */
static bool expires_in_server(filtered *f, const char *name, int argc) {
    const char *behind = strstr(name, "expire");
    bool sets = !strcmp(name, "setex") || !strcmp(name, "psetex");
    if ((!behind && !sets) || argc < 3) return false;
    bool absolute = behind && !strcmp(behind, "expireat");
    return is_time_for_server(filter_arg(f, 2), absolute, *name == 'p' ? 1 : 1000);
}

/* There may be options that we don't know, or that this server doesn't. */
static bool knows_options(filtered *f, int first, int argc) {
    static const char *const words[] = {"nx", "xx", "get", "keepttl", "persist"};
    for (int i = first; i < argc; i++) {
        int unit = expire_option(filter_arg(f, i));
        size_t w = 0, n = sizeof words / sizeof *words;
        while (unit < 0 && w < n && !arg_is(filter_arg(f, i), words[w])) w++;
        if (w == n) return false;
        if (unit < 0) continue;
        i++; /* its time */
        if (i < argc && is_time_for_server(filter_arg(f, i), unit & EXPIRE_ABSOLUTE,
                                           unit & EXPIRE_SECONDS ? 1000 : 1))
            return false;
    }
    return true;
}

/* Servers differ in whether they look at a time that is none before they look at the key. */
static bool knows_time(filtered *f, int argc) {
    long long time;
    return argc < 4 || RedisModule_StringToLongLong(filter_arg(f, 3), &time) == REDISMODULE_OK;
}

bool arguments_known(filtered *f, const char *name, int argc, int last) {
    if (argc == 2) return true; /* a key alone */
    if (!strcmp(name, "set")) return knows_options(f, 3, argc);
    if (!strcmp(name, "getex")) return knows_time(f, argc) && knows_options(f, 2, argc);
    if (!strcmp(name, "msetex")) return knows_options(f, last + 2, argc);
    return !expires_in_server(f, name, argc);
}
