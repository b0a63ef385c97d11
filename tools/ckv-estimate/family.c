/* family.c: see family.h. */
#include "family.h"

#include "common/common.h"
#include "printable.h"

#include <stdlib.h>
#include <string.h>

/* ---- the rule -------------------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    char small = (char)(c | 0x20);
    return (small >= 'a' && small <= 'z') || (unsigned char)c >= 0x80;
}

static bool is_separator(char c) {
    return !is_digit(c) && !is_letter(c);
}

static bool is_hex(char c) {
    char small = (char)(c | 0x20);
    return is_digit(c) || (small >= 'a' && small <= 'f');
}

bool family_rule_read(const char *text, family_rule *rule) {
    char *end;
    if (strcmp(text, "name") == 0 || strcmp(text, "all") == 0) {
        *rule = (family_rule){.kind = text[0] == 'n' ? BY_NAME : BY_NOTHING};
        return true;
    }
    bool separator = is_separator(*text) && *text;
    const char *number = text + separator;
    unsigned long count = strtoul(number, &end, 10);
    if (*end || (number < end && (!is_digit(*number) || count < 1 || count > 1024))) return false;
    if (number == end && !separator) return false;
    *rule = (family_rule){.kind = separator ? BY_SEPARATOR : BY_LENGTH,
                          .separator = *text,
                          .count = number < end ? count : 1};
    return true;
}

/* Whether a token is an id, as f47ac10b: of hexadecimal digits, a letter behind a digit. */
static bool is_id(const char *token, size_t len) {
    bool digit = false, letter_behind = false;
    size_t i = 0;
    for (; i < len && !is_separator(token[i]); i++) {
        if (!is_hex(token[i])) return false;
        letter_behind |= digit && !is_digit(token[i]);
        digit |= is_digit(token[i]);
    }
    return letter_behind;
}

/* What stands before the first digits or separators; separators at the start are of the name. */
static size_t by_name(const char *key, size_t len, size_t *prefix) {
    size_t start = 0, end;
    while (start < len && is_separator(key[start])) start++;
    for (end = start; end < len && is_letter(key[end]);) end++;
    if (end < len && is_digit(key[end]) && is_id(key + start, len - start)) end = start;
    *prefix = end + (end < len && end > start && is_separator(key[end]));
    return end;
}

static size_t by_separator(const family_rule *rule, const char *key, size_t len, size_t *prefix) {
    size_t left = rule->count;
    for (size_t i = 0; i < len; i++) {
        if (key[i] != rule->separator || --left > 0) continue;
        *prefix = i + 1;
        return i;
    }
    return *prefix = len;
}

size_t family_of_key(const family_rule *rule, const char *key, size_t len, size_t *prefix) {
    switch (rule->kind) {
    case BY_NAME:
        return by_name(key, len, prefix);
    case BY_SEPARATOR:
        return by_separator(rule, key, len, prefix);
    case BY_LENGTH:
        return *prefix = len < rule->count ? len : rule->count;
    default:
        return *prefix = 0;
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return (hash ^ len) * 1099511628211u;
}

static size_t slot_of(const families *f, uint64_t hash) {
    return (hash ^ hash >> 32) % f->table_size;
}

static void enter(families *f, size_t index) {
    size_t *first = &f->table[slot_of(f, f->all[index].hash)];
    f->all[index].next = *first;
    *first = index + 1;
}

static void grow(families *f) {
    size_t size = f->table_size ? 2 * f->table_size : 256;
    f->all = reallocate(f->all, size * sizeof *f->all);
    free(f->table);
    f->table = allocate(size * sizeof *f->table);
    f->table_size = size;
    for (size_t i = 0; i < f->count; i++) enter(f, i);
}

static void forget(family *f) {
    free(f->name);
    free(f->prefix);
    free(f->type);
}

static bool is_same(const family *a, const family *b) {
    return a->hash == b->hash && !strcmp(a->name, b->name) && !strcmp(a->type, b->type);
}

size_t families_find(families *f, const family_rule *rule, const char *key, size_t len,
                     const char *type) {
    size_t prefix, n = family_of_key(rule, key, len, &prefix);
    uint64_t hash = hash_text(hash_text(14695981039346656037u, key, n), type, strlen(type));
    family new = {.name = printable(key, n),
                  .prefix = printable(key, prefix),
                  .type = printable(type, strlen(type)),
                  .hash = hash};
    if (f->count == f->table_size) grow(f);
    for (size_t at = f->table[slot_of(f, hash)]; at; at = f->all[at - 1].next) {
        family *known = &f->all[at - 1];
        if (!is_same(known, &new)) continue;
        if (strcmp(known->prefix, new.prefix)) strcpy(known->prefix, new.name); /* not longer */
        forget(&new);
        return at - 1;
    }
    f->all[f->count] = new;
    enter(f, f->count);
    return f->count++;
}

void families_free(families *f) {
    for (size_t i = 0; i < f->count; i++) forget(&f->all[i]);
    free(f->all);
    free(f->table);
}

bool family_is_of_strings(const family *f) {
    return strcmp(f->type, "string") == 0;
}

/* The setting has room for 8192 bytes: for as many of this length as a report has rows. */
#define PREFIX_MAX 200

/* The setting has blanks between prefixes; a file of settings has lines and quotes. */
bool family_has_prefix(const family *f) {
    const char *p = f->prefix;
    return *p && strlen(p) <= PREFIX_MAX && strcmp(p, "*") != 0 && !p[strcspn(p, " \"'\\")];
}
