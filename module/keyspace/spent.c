/* spent.c: dictionaries of names that nobody needs any more. See spent.h. */
#include "keyspace/spent.h"

#include "server/names.h"

/* What names count as. A short one takes about a microsecond. */
#define AT_ONCE 16
#define A_STEP  256

typedef struct spent {
    struct spent *next;
    RedisModuleDict *names;
    spent_told *told;
    void *context;
} spent;

static spent *last; /* that has come, and the first to go; NULL: none */

/* Returns what those count as that it has freed. */
static size_t free_names(spent *s, size_t most) {
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(s->names, "^", NULL, 0);
    char *name;
    size_t len;
    size_t freed = 0;
    while (freed < most && (name = RedisModule_DictNextC(it, &len, NULL))) {
        if (s->told) s->told(s->context, name, len);
        RedisModule_DictDelC(s->names, name, len, NULL);
        RedisModule_DictIteratorReseekC(it, "^", NULL, 0);
        freed += names_cost(len);
    }
    RedisModule_DictIteratorStop(it);
    return freed;
}

static void free_last(size_t most) {
    for (size_t freed = 0; last && freed < most;) {
        freed += free_names(last, most - freed);
        if (RedisModule_DictSize(last->names) > 0) return;
        spent *empty = last;
        last = empty->next;
        RedisModule_FreeDict(NULL, empty->names);
        RedisModule_Free(empty);
    }
}

void spent_take(RedisModuleDict **names, spent_told *told, void *context) {
    if (!*names) return;
    spent *s = RedisModule_Alloc(sizeof *s);
    *s = (spent){last, *names, told, context};
    last = s;
    *names = NULL;
    free_last(AT_ONCE);
}

void spent_free_some(void) {
    free_last(AT_ONCE);
}

bool spent_step(void) {
    free_last(A_STEP);
    return last != NULL;
}
