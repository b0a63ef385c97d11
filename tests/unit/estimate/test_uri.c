/* URIs as redis-cli reads them. */
#include "../test.h"

#include "uri.h"

#include <string.h>

static bool same(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

static void forget(const address *to) {
    if (strcmp(to->host, "default")) free((void *)to->host);
    free((void *)to->user);
    free((void *)to->password);
}

static void check_uri(const char *text, address wanted, long wanted_database) {
    address to = {.host = "default", .port = 1};
    long database = -1;
    CHECK(uri_read(text, &to, &database));
    CHECK(same(to.host, wanted.host) && to.port == wanted.port && database == wanted_database);
    CHECK(same(to.user, wanted.user) && same(to.password, wanted.password) && to.tls == wanted.tls);
    forget(&to);
}

static void check_refused(const char *text) {
    address to = {.host = "default", .port = 1};
    long database = -1;
    CHECK(!uri_read(text, &to, &database));
    forget(&to);
}

int main(void) {
    check_uri("redis://example.com", (address){.host = "example.com", .port = 1}, -1);
    check_uri("redis://example.com:6380/3", (address){.host = "example.com", .port = 6380}, 3);
    check_uri("redis://:pw@h", (address){.host = "h", .port = 1, .password = "pw"}, -1);
    check_uri("redis://pw@h/", (address){.host = "h", .port = 1, .password = "pw"}, -1);
    check_uri("redis://u:p%40%3a%zz@h:2/0",
              (address){.host = "h", .port = 2, .user = "u", .password = "p@:%zz"}, 0);
    check_uri("redis://u:p%4@h", (address){.host = "h", .port = 1, .user = "u", .password = "p%4"},
              -1);
    check_uri("rediss://[::1]:7/1", (address){.host = "::1", .port = 7, .tls = true}, 1);
    check_uri("redis://", (address){.host = "default", .port = 1}, -1);
    check_refused("http://h");
    check_refused("redis://h:x");
    check_refused("redis://h:70000");
    check_refused("redis://h/x");
    check_refused("redis://[::1");
    return test_report("uri");
}
