/* options.c: see options.h. */
#include "options.h"

#include "common/command_line.h"
#include "common/common.h"
#include "uri.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void set_uri(void *all, const Option *option, const char *text) {
    options *o = all;
    (void)option;
    if (!uri_read(text, &o->to, &o->database))
        fail(2, "-u must be redis://[[user]:password@]host[:port][/database], or rediss://");
}

static void set_rule(void *all, const Option *option, const char *text) {
    options *o = all;
    (void)option;
    if (!family_rule_read(text, &o->by))
        fail(2,
             "--by must be name, all, a number of characters, or a separator and how many of "
             "them (:2), not '%s'",
             text);
}

static void ask_password(void *all, const Option *option, const char *text) {
    options *o = all;
    (void)option, (void)text;
    o->to.password = getpass("Please input password: ");
}

#define TEXT(member)   option_text, offsetof(options, member)
#define FLAG(member)   option_flag, offsetof(options, member), NULL
#define NUMBER(member) option_number, offsetof(options, member), "N"

static const Option known[] = {
    {"h", TEXT(to.host), "HOST", "(default 127.0.0.1)", 0, 0},
    {"p", NUMBER(to.port), "the port (default 6379)", 1, 65535},
    {"s", TEXT(to.socket), "PATH", "a Unix socket instead", 0, 0},
    {"a", TEXT(to.password), "PASSWORD", "or in the environment, as REDISCLI_AUTH", 0, 0},
    {"pass", TEXT(to.password), "PASSWORD", "the same as -a", 0, 0},
    {"askpass", ask_password, 0, NULL, "ask for the password", 0, 0},
    {"user", TEXT(to.user), "NAME", "an ACL user", 0, 0},
    {"u", set_uri, 0, "URI", "redis://[[user]:password@]host[:port][/database], rediss:// for TLS",
     0, 0},
    {"n", NUMBER(database), "one database (default: all that have keys)", 0, INT_MAX},
    {"tls", FLAG(to.tls), "a TLS connection", 0, 0},
    {"sni", TEXT(to.sni), "HOST", "the server's name, for TLS", 0, 0},
    {"cacert", TEXT(to.ca_file), "FILE", "certificates that are trusted (default: the system's)", 0,
     0},
    {"cacertdir", TEXT(to.ca_dir), "DIR", "a folder of them", 0, 0},
    {"insecure", FLAG(to.insecure), "trust any certificate", 0, 0},
    {"cert", TEXT(to.certificate), "FILE", "the client's certificate", 0, 0},
    {"key", TEXT(to.key), "FILE", "its key", 0, 0},
    {"tls-ciphers", TEXT(to.ciphers), "LIST", "of TLS 1.2", 0, 0},
    {"tls-ciphersuites", TEXT(to.ciphersuites), "LIST", "of TLS 1.3", 0, 0},
    {"keys", NUMBER(keys), "how many keys are looked at (default 250000)", 100, 100000000},
    {"rate", NUMBER(rate), "how many a second, 0: as fast as it goes (default 20000)", 0, INT_MAX},
    {"by", set_rule, 0, "RULE",
     "what a family of keys has in common: name, what stands before the first\n"
     "digits or separators (default); :2, what stands before the second ':';\n"
     "6, the first six characters; all",
     0, 0},
    {"json", FLAG(json), "print JSON", 0, 0},
    {"prefixes", FLAG(prefixes), "print the line for redis.conf", 0, 0},
    {"html", TEXT(html), "FILE", "write a page to hand on", 0, 0},
};
enum { KNOWN = sizeof known / sizeof *known };

static void help(void) {
    puts("usage: ckv-estimate [options]\n\n"
         "Tells what the strings of a Redis or Valkey server would take with ckv. It reads a "
         "sample\n"
         "of the keys, changes nothing, and the server needs no module.\n");
    options_print(known, KNOWN, 24);
    puts("\nAn ACL user needs +@read +@connection +info +memory|stats and %R~* (before Redis 7: "
         "~*).\n"
         "In a cluster it is about the one node that it is connected to.\n"
         "With TLS, as with redis-cli, a certificate's chain is verified and no host name.");
}

/* The password of a user, wherever it came from. */
static void finish(options *o) {
    if (!o->to.password) o->to.password = getenv("REDISCLI_AUTH");
    if (o->to.user && !o->to.password)
        fail(2, "--user is given and no password (-a, or REDISCLI_AUTH)");
    if (o->json && o->prefixes) fail(2, "--json and --prefixes exclude each other");
    if (o->to.socket && o->to.tls) fail(2, "--tls is not for a Unix socket");
}

void options_parse(options *o, int argc, char **argv) {
    *o = (options){.to = {.host = "127.0.0.1", .port = 6379},
                   .database = ALL_DATABASES,
                   .keys = 250000,
                   .rate = 20000};
    options_read(o, known, KNOWN, help, argc, argv);
    finish(o);
}
