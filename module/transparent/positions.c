/* positions.c: see positions.h. */
#include "transparent/positions.h"

#include "server/reply.h"
#include "transparent/served.h"

#include <string.h>

/* OBJECT ENCODING key, MEMORY USAGE key. What is not well-formed is the server's to refuse. */
static bool is_about_key(filtered *f, const catalogue_entry *e, int argc) {
    static const char *const words[] = {"encoding", "freq", "idletime", "refcount"};
    if (!strcmp(e->name, "memory")) return argc > 2 && arg_is(filter_arg(f, 1), "usage");
    for (size_t w = 0; argc == 3 && w < sizeof words / sizeof *words; w++)
        if (arg_is(filter_arg(f, 1), words[w])) return true;
    return false;
}

bool positions_of(filtered *f, const catalogue_entry *e, int argc, int *first, int *last,
                  int *step) {
    *first = *last = *step = 1;
    switch (served_keys_of(e->served)) {
    case SERVED_FIRST:
    case SERVED_STORE:
        return argc > 1;
    case SERVED_SECOND:
        *first = *last = 2;
        return is_about_key(f, e, argc);
    case SERVED_ANY:
        *last = argc - 1;
        return true;
    case SERVED_PAIRS:
        *last = argc - 2;
        *step = 2;
        return argc % 2 == 1;
    case SERVED_COUNTED: {
        long long pairs;
        bool number = RedisModule_StringToLongLong(filter_arg(f, 1), &pairs) == REDISMODULE_OK;
        if (!number || pairs <= 0 || pairs > (argc - 2) / 2) return false;
        *first = 2;
        *last = 2 * (int)pairs;
        *step = 2;
        return true;
    }
    case SERVED_KEYLESS:
    case SERVED_CURSOR:
    case SERVED_FIGURES:
        break;
    }
    return false;
}
