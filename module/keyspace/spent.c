/* spent.c: dictionaries of names that nobody needs any more. See spent.h. */
#include "keyspace/spent.h"

/* Names. A name takes about a microsecond. */
#define AT_ONCE 16
#define A_STEP  256

typedef struct spent {
    struct spent *next;
    RedisModuleDict *names;
    spent_told *told;
    void *context;
} spent;

static spent *last; /* that has come, and the first to go; NULL: none */

/* Returns how many it has freed. */
static int free_names(spent *s, int most) {
    RedisModuleDictIter *it = RedisModule_DictIteratorStartC(s->names, "^", NULL, 0);
    char *name;
    size_t len;
    int count = 0;
    while (count < most && (name = RedisModule_DictNextC(it, &len, NULL))) {
        if (s->told) s->told(s->context, name, len);
        RedisModule_DictDelC(s->names, name, len, NULL);
        RedisModule_DictIteratorReseekC(it, "^", NULL, 0);
        count++;
    }
    RedisModule_DictIteratorStop(it);
    return count;
}

static void free_last(int names) {
    while (last && names > 0) {
        names -= free_names(last, names);
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
