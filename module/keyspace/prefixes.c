/* prefixes.c: which keys' strings live in ckv, unseen. See prefixes.h. */
#include "keyspace/prefixes.h"

#include "server/clock.h"

#include <string.h>

#define PREFIXES_MAX 256                /* of a setting */
#define ROOM         (4 * PREFIXES_MAX) /* with those that are leaving, and those of files */
#define NAME_SHOWN   128                /* bytes of one in the log */
#define TEXT_MAX     8192               /* bytes of the setting */
#define CURSOR_US    60000000
/* Between the two states of a text of both: a blank as well to those who do not ask. */
#define BEHIND_SERVING '\n'
/* Of a map that has come, looked at for prefixes that were forgotten. */
#define REMEMBER_RECORDS 1000

typedef struct prefix {
    char *text;
    size_t len;                 /* 0: every key */
    prefix_state state, before; /* before: while the setting is read */
    bool set;                   /* in the setting */
} prefix;

static prefix all[ROOM];
static size_t count;
static size_t active;        /* of those that are not PREFIX_NONE: forgotten, or not followed */
static bool following;       /* what serves is what the primary says, and not the setting */
static bool first_byte[256]; /* of some prefix; what decides for most keys that match none */
static bool every_key;       /* some prefix is "*" */
static char *text_of[PREFIX_SERVING + 1];
static uint64_t changes[PREFIX_SERVING + 1];
static uint64_t version;
static bool loading;
static void (*told)(void);
static uint64_t cursor_us; /* when one was given; 0: never */

/* ---- words ----------------------------------------------------------------------------------- */

typedef struct word {
    const char *at;
    size_t len;
} word;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool next_word(const char **at, const char *end, word *w) {
    while (*at < end && is_blank(**at)) ++*at;
    w->at = *at;
    while (*at < end && !is_blank(**at)) ++*at;
    w->len = (size_t)(*at - w->at);
    return w->len > 0;
}

/* Keys of maps. They match nothing, whatever the setting. */
static bool is_map_name(const char *key, size_t len) {
    size_t own = strlen(CKV_MAP_PREFIX);
    return len >= own && !memcmp(key, CKV_MAP_PREFIX, own);
}

/* ---- the list -------------------------------------------------------------------------------- */

static size_t prefix_len(word w) {
    return w.len == 1 && *w.at == '*' ? 0 : w.len;
}

static prefix *find(word w) {
    size_t len = prefix_len(w);
    for (size_t i = 0; i < count; i++)
        if (all[i].len == len && !memcmp(all[i].text, w.at, len)) return &all[i];
    return NULL;
}

static bool begins(const prefix *p, const char *key, size_t len) {
    return p->len <= len && !memcmp(p->text, key, p->len);
}

static void drop_forgotten(void) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].state == PREFIX_NONE && !all[i].set)
            RedisModule_Free(all[i].text);
        else
            all[kept++] = all[i];
    }
    count = kept;
}

/* NULL: there is no room for it. */
static prefix *find_or_make(word w) {
    prefix *known = find(w);
    if (known) return known;
    if (count == ROOM) drop_forgotten();
    if (count == ROOM) {
        ckv_log("warning", "too many prefixes: strings under '%.*s' are out of reach",
                (int)(w.len < NAME_SHOWN ? w.len : NAME_SHOWN), w.at);
        return NULL;
    }
    char *copy = RedisModule_Alloc(w.len + 1);
    memcpy(copy, w.at, w.len);
    copy[w.len] = 0;
    all[count] = (prefix){.text = copy, .len = prefix_len(w)};
    return &all[count++];
}

/* Whether it has come to be in that state. */
static bool add(word w, prefix_state state) {
    prefix *p = find_or_make(w);
    bool rises = p && p->state < state;
    if (rises) p->state = state;
    return rises;
}

static bool add_all(const char *text, const char *end, prefix_state state) {
    bool added = false;
    word w;
    while (next_word(&text, end, &w)) added |= add(w, state);
    return added;
}

/* Of those that serve some may have to leave now. */
static void stop_serving(void) {
    for (size_t i = 0; i < count; i++)
        if (all[i].state == PREFIX_SERVING) all[i].state = PREFIX_LEAVING;
}

static void serve_setting(void) {
    stop_serving();
    for (size_t i = 0; i < count; i++)
        if (all[i].set) all[i].state = PREFIX_SERVING;
}

static void write_text(prefix_state state) {
    size_t len = 0;
    for (size_t i = 0; i < count; i++) len += strlen(all[i].text) + 1;
    char *text = RedisModule_Alloc(len + 1), *to = text;
    for (size_t i = 0; i < count; i++) {
        if (all[i].state != state) continue;
        if (to > text) *to++ = ' ';
        to = stpcpy(to, all[i].text);
    }
    *to = 0;
    RedisModule_Free(text_of[state]);
    text_of[state] = text;
}

static void changed(void) {
    memset(first_byte, 0, sizeof first_byte);
    every_key = false;
    active = 0;
    for (size_t i = 0; i < count; i++) {
        changes[all[i].state] += all[i].state != all[i].before;
        all[i].before = all[i].state;
        if (all[i].state == PREFIX_NONE) continue;
        active++;
        every_key |= all[i].len == 0;
        first_byte[(unsigned char)*all[i].text] |= all[i].len > 0;
    }
    write_text(PREFIX_SERVING);
    write_text(PREFIX_LEAVING);
    version++;
    if (told) told();
}

void prefixes_give_back(void) {
    for (size_t i = 0; i < count; i++) RedisModule_Free(all[i].text);
    RedisModule_Free(text_of[PREFIX_SERVING]);
    RedisModule_Free(text_of[PREFIX_LEAVING]);
}

uint64_t prefixes_changes(prefix_state to) {
    return changes[to];
}

uint64_t prefixes_version(void) {
    return version;
}

void prefixes_listen(void (*listener)(void)) {
    told = listener;
}

char *prefixes_all(void) {
    const char *serving = prefixes_text(PREFIX_SERVING), *leaving = prefixes_text(PREFIX_LEAVING);
    char *text = RedisModule_Alloc(strlen(serving) + strlen(leaving) + 2);
    char *to = stpcpy(text, serving);
    *to++ = BEHIND_SERVING;
    strcpy(to, leaving);
    return text;
}

const char *prefixes_refuse(const char *text, size_t len) {
    if (memchr(text, 0, len)) return "a prefix can't hold a zero byte";
    if (is_map_name(text, len)) return "keys under '" CKV_MAP_PREFIX "' are ckv's own";
    return len == 0 ? "a prefix can't be empty; '*' is every key" : NULL;
}

bool prefixes_set(const char *text, size_t len, const char **error) {
    const char *at = text, *end = text + len;
    size_t words = 0, more = 0;
    word w;
    while (next_word(&at, end, &w)) {
        prefix *known = find(w);
        words++;
        more += !known || known->state == PREFIX_NONE;
        *error = prefixes_refuse(w.at, w.len);
        if (*error) return false;
    }
    if (len > TEXT_MAX || words > PREFIXES_MAX || active + more > ROOM) {
        *error = "too many prefixes";
        return false;
    }
    for (size_t i = 0; i < count; i++) all[i].set = false;
    for (at = text; next_word(&at, end, &w);) {
        prefix *p = find_or_make(w);
        if (p) p->set = true;
    }
    if (!following) serve_setting();
    changed();
    return true;
}

void prefixes_add_of_file(const char *text, size_t len) {
    if (!add_all(text, text + len, PREFIX_LEAVING)) return;
    changed();
    ckv_log("warning",
            "the file has strings under prefixes that are not in ckv.prefixes: they are served, "
            "but none are added: %s",
            prefixes_text(PREFIX_LEAVING));
}

const char *prefixes_serving_of(const char *text, size_t len, size_t *serving) {
    const char *end = memchr(text, BEHIND_SERVING, len);
    *serving = end ? (size_t)(end - text) : 0;
    return end ? text : NULL;
}

static bool serves_setting(void) {
    for (size_t i = 0; i < count; i++)
        if (all[i].set != (all[i].state == PREFIX_SERVING)) return false;
    return true;
}

void prefixes_follow(const char *text, size_t len) {
    following = true;
    stop_serving();
    add_all(text, text + len, PREFIX_SERVING);
    changed();
    if (!serves_setting())
        ckv_log("notice",
                "the primary's ckv.prefixes are not those of this replica, which serves as it "
                "does: %s",
                prefixes_text(PREFIX_SERVING));
}

bool prefixes_follow_setting(void) {
    if (!following) return false;
    following = false;
    serve_setting();
    changed();
    return true;
}

void prefixes_loading(bool began) {
    loading = began;
}

void prefixes_note_cursor(void) {
    cursor_us = clock_monotonic_us();
}

void prefixes_forget_leaving(void) {
    if (cursor_us && clock_monotonic_us() - cursor_us < CURSOR_US) return;
    if (!prefixes_any_in(PREFIX_LEAVING)) return;
    for (size_t i = 0; i < count; i++)
        if (all[i].state == PREFIX_LEAVING) all[i].state = PREFIX_NONE;
    changed();
}

/* A search for prefixes to be remembered. */
typedef struct remembering {
    size_t left; /* records that may still be looked at */
    bool found, stopped;
} remembering;

/* Goes on as long as there is something to remember. A key that is served anyway needs none. */
static bool remember_for(void *context, const uint8_t *bytes, size_t len, const map_pos *pos) {
    (void)pos;
    remembering *r = context;
    const char *key = (const char *)bytes;
    r->stopped = r->left == 0;
    if (r->stopped) return false;
    r->left--;
    if (prefixes_match(key, len) != PREFIX_NONE) return true;
    bool more = false;
    for (size_t i = 0; i < count; i++) {
        bool forgotten = all[i].state == PREFIX_NONE;
        bool found = forgotten && begins(&all[i], key, len);
        if (found) all[i].state = PREFIX_LEAVING;
        r->found |= found;
        more |= forgotten && !found;
    }
    return more;
}

/* But those whose keys are served anyway. Whether there are others. */
static bool remember_all(void) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (all[i].state != PREFIX_NONE) continue;
        if (prefixes_match(all[i].text, all[i].len) != PREFIX_NONE) continue;
        all[i].state = PREFIX_LEAVING;
        any = true;
    }
    return any;
}

/* Of a map that would take long to look at, all may be wanted: those that are not are forgotten by
 * the mover, which a replica in a cluster leaves to the primary that it becomes. */
void prefixes_remember(map *m) {
    remembering r = {.left = REMEMBER_RECORDS};
    if (active == count) return;
    map_each_record(m, remember_for, &r);
    bool remembered = r.found | (r.stopped && remember_all());
    if (!remembered) return;
    changed();
    ckv_log("notice",
            "a map has come, with strings under prefixes that were set once: they are "
            "served, but none are added: %s",
            prefixes_text(PREFIX_LEAVING));
}

void prefixes_note_own_record(const RedisModuleString *name) {
    size_t len, kept = 0;
    if (active == count) return;
    const char *key = RedisModule_StringPtrLen(name, &len);
    if (prefixes_match(key, len) != PREFIX_NONE) return;
    for (size_t i = 0; i < count; i++) {
        if (all[i].state == PREFIX_NONE && !all[i].set && begins(&all[i], key, len))
            RedisModule_Free(all[i].text);
        else
            all[kept++] = all[i];
    }
    count = kept;
}

const char *prefixes_text(prefix_state state) {
    return text_of[state] ? text_of[state] : "";
}

bool prefixes_any(void) {
    return active > 0;
}

bool prefixes_any_in(prefix_state state) {
    return *prefixes_text(state) != 0;
}

/* ---- matching -------------------------------------------------------------------------------- */

prefix_state prefixes_match(const char *key, size_t len) {
    if (!every_key && (len == 0 || !first_byte[(unsigned char)*key])) return PREFIX_NONE;
    prefix_state best = PREFIX_NONE;
    for (size_t i = 0; i < count && best != PREFIX_SERVING; i++)
        if (all[i].state > best && begins(&all[i], key, len)) best = all[i].state;
    if (best == PREFIX_NONE || is_map_name(key, len)) return PREFIX_NONE;
    return loading ? PREFIX_SERVING : best;
}

bool prefixes_begins(const char *prefix, const char *key, size_t len) {
    size_t n = prefix_len((word){prefix, strlen(prefix)});
    return n <= len && !memcmp(prefix, key, n) && !is_map_name(key, len);
}

prefix_state prefixes_match_name(const RedisModuleString *key) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(key, &len);
    return prefixes_match(text, len);
}
