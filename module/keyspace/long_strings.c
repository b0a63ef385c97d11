/* long_strings.c: see long_strings.h. */
#include "keyspace/long_strings.h"

#include "keyspace/spent.h"
#include "server/names.h"

/* Names, and bytes of one: some megabytes at most where strings take gigabytes. */
#define NAMES_MAX    65536
#define NAME_LEN_MAX 1024

static RedisModuleDict *names; /* NULL: none */

void long_strings_note(const char *name, size_t len) {
    if (len > NAME_LEN_MAX) return;
    if (names && RedisModule_DictSize(names) == NAMES_MAX) spent_take(&names, NULL, NULL);
    spent_free_some();
    names_put(&names, name, len, NULL);
}

bool long_strings_have(const char *name, size_t len) {
    return names_have(names, name, len);
}

void long_strings_forget(const char *name, size_t len) {
    names_drop(&names, name, len);
}
