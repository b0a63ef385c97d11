/* Which family a key belongs to, how families are named, which can be a prefix. */
#include "../test.h"

#include "family.h"

#include <string.h>

static void check_key(const char *rule_text, const char *key, const char *name,
                      const char *prefix) {
    family_rule rule;
    size_t prefix_len, len;
    CHECK(family_rule_read(rule_text, &rule));
    len = family_of_key(&rule, key, strlen(key), &prefix_len);
    if (len != strlen(name) || prefix_len != strlen(prefix))
        fprintf(stderr, "%s by %s: '%.*s', '%.*s'\n", key, rule_text, (int)len, key,
                (int)prefix_len, key);
    CHECK(len == strlen(name) && !memcmp(key, name, len));
    CHECK(prefix_len == strlen(prefix) && !memcmp(key, prefix, prefix_len));
}

static void check_by_name(void) {
    check_key("name", "user:1001:name", "user", "user:");
    check_key("name", "user1001", "user", "user");
    check_key("name", "KEY:100000001", "KEY", "KEY:");
    check_key("name", "session_9f3a", "session", "session_");
    check_key("name", "config", "config", "config");
    check_key("name", "4711", "", "");
    check_key("name", "", "", "");
    check_key("name", "{user1000}.following", "{user", "{user");
    check_key("name", ":1:views.page", ":", ":");
    check_key("name", "_kombu.binding", "_kombu", "_kombu.");
}

/* An id at the start is no name, wherever its first digit stands. */
static void check_ids(void) {
    check_key("name", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "", "");
    check_key("name", "de305d54-75b4-431b-adb2-eb6b9e546014", "", "");
    check_key("name", "session9f3a", "session", "session");
    check_key("name", "cafe1", "cafe", "cafe");
    check_key("name", "u:f47ac10b", "u", "u:");
}

static void check_other_rules(void) {
    check_key("all", "user:1", "", "");
    check_key("4", "user:1", "user", "user");
    check_key("40", "user:1", "user:1", "user:1");
    check_key(":", "user:1:name", "user", "user:");
    check_key(":2", "user:1:name", "user:1", "user:1:");
    check_key(":3", "user:1:name", "user:1:name", "user:1:name");
}

static void check_bad_rules(void) {
    static const char *const bad[] = {"", "names", ":0", ":-1", ":x", "0", "1x", "5000", "x:"};
    family_rule rule;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!family_rule_read(bad[i], &rule));
}

static size_t find(families *all, const char *key, const char *type) {
    static const family_rule by_name = {.kind = BY_NAME};
    return families_find(all, &by_name, key, strlen(key), type);
}

static void check_table(void) {
    families all = {0};
    size_t user = find(&all, "user:1", "string");
    CHECK(find(&all, "user:2", "string") == user);
    CHECK(find(&all, "user:3", "hash") != user);
    CHECK(find(&all, "users:3", "string") != user);
    CHECK(family_is_of_strings(&all.all[user]) && !strcmp(all.all[user].prefix, "user:"));
    CHECK(find(&all, "user-4", "string") == user && !strcmp(all.all[user].prefix, "user"));
    for (int i = 0; i < 3000; i++) {
        char key[8] = {(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676), 0};
        size_t one = find(&all, key, "list");
        CHECK(find(&all, key, "list") == one && !strcmp(all.all[one].name, key));
    }
    CHECK(find(&all, "user:5", "string") == user && all.count == 3003);
    families_free(&all);
}

static void check_name(const char *key, const char *name) {
    families all = {0};
    size_t i = find(&all, key, "string");
    CHECK(!strcmp(all.all[i].name, name));
    families_free(&all);
}

/* What is no text is told as redis-cli tells it. */
static void check_names(void) {
    check_name("\xff\x80:1", "\\xff\\x80");
    check_name("caf\xc3\xa9:1", "caf\xc3\xa9");
    check_name("\xed\xa0\x80", "\\xed\\xa0\\x80");
    check_name("\n:1", "\\x0a:");
}

static bool can_be_prefix(const char *key) {
    families all = {0};
    size_t i = find(&all, key, "string");
    bool can = family_has_prefix(&all.all[i]);
    families_free(&all);
    return can;
}

static void check_prefixes(void) {
    CHECK(can_be_prefix("user:1") && can_be_prefix("caf\xc3\xa9:1"));
    CHECK(!can_be_prefix("4711") && !can_be_prefix("a b:1") && !can_be_prefix("*"));
    CHECK(!can_be_prefix("say\"1") && !can_be_prefix("\xff:1"));
}

int main(void) {
    check_by_name();
    check_ids();
    check_other_rules();
    check_bad_rules();
    check_table();
    check_names();
    check_prefixes();
    return test_report("family");
}
