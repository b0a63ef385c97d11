/*
 * family.h: keys that are named alike are a family.
 *
 *      user:1001:name   family "user"      prefix "user:"
 *      session_9f3a     family "session"   prefix "session_"
 *      4711             family ""          no prefix
 *
 * A family is a part of the key and the type of the value. Both are kept as they can be printed
 * (printable.h).
 */
#ifndef ESTIMATE_FAMILY_H
#define ESTIMATE_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the keys of a family have in common. */
typedef struct family_rule {
    enum { BY_NAME, BY_SEPARATOR, BY_LENGTH, BY_NOTHING } kind;
    char separator;
    size_t count; /* of separators, or characters */
} family_rule;

/* Reads "name", "all", "6", ":" or ":2". False: it is none of them. */
bool family_rule_read(const char *text, family_rule *rule);

/* How many bytes of a key are its family's name; *prefix becomes how many can be a prefix of
 * ckv.prefixes, which has the separator as well. */
size_t family_of_key(const family_rule *rule, const char *key, size_t len, size_t *prefix);

typedef struct family {
    char *name, *prefix, *type; /* as they are printed; of all its keys */
    uint64_t hash;
    size_t next; /* in the table */
} family;

typedef struct families {
    family *all;
    size_t count;
    size_t *table; /* of 1 + index; 0: none */
    size_t table_size;
} families;

/* The family of a key whose value has a type, a new one if there is none yet: its index. */
size_t families_find(families *f, const family_rule *rule, const char *key, size_t len,
                     const char *type);
void families_free(families *f);

bool family_is_of_strings(const family *f);
/* Whether ckv.prefixes can name its prefix. */
bool family_has_prefix(const family *f);

#endif
