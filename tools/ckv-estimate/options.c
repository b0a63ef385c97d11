/* options.c: see options.h. */
#include "options.h"

#include "common/common.h"
#include "uri.h"

#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct option_kind option_kind;
struct option_kind {
    const char *name; /* one letter: a short option */
    void (*set)(options *o, const option_kind *kind, const char *text);
    size_t at; /* in options */
    const char *argument, *help;
    long min, max; /* of a number */
};

static void set_text(options *o, const option_kind *kind, const char *text) {
    *(const char **)((char *)o + kind->at) = text;
}

static void set_flag(options *o, const option_kind *kind, const char *text) {
    (void)text;
    *(bool *)((char *)o + kind->at) = true;
}

static const char *dashes(const option_kind *kind) {
    return kind->name[1] ? "--" : "-";
}

static void set_number(options *o, const option_kind *kind, const char *text) {
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < kind->min || number > kind->max)
        fail(2, "%s%s must be a number from %ld to %ld, not '%s'", dashes(kind), kind->name,
             kind->min, kind->max, text);
    *(long *)((char *)o + kind->at) = number;
}

static void set_uri(options *o, const option_kind *kind, const char *text) {
    (void)kind;
    if (!uri_read(text, &o->to, &o->database))
        fail(2, "-u must be redis://[[user]:password@]host[:port][/database], or rediss://");
}

static void set_rule(options *o, const option_kind *kind, const char *text) {
    (void)kind;
    if (!family_rule_read(text, &o->by))
        fail(2,
             "--by must be name, all, a number of characters, or a separator and how many of "
             "them (:2), not '%s'",
             text);
}

static void ask_password(options *o, const option_kind *kind, const char *text) {
    (void)kind, (void)text;
    o->to.password = getpass("Please input password: ");
}

#define TEXT(member)   set_text, offsetof(options, member)
#define FLAG(member)   set_flag, offsetof(options, member), NULL
#define NUMBER(member) set_number, offsetof(options, member), "N"

static const option_kind kinds[] = {
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
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What getopt calls options of several letters: from LONG_NAME on. */
enum { HELP = UCHAR_MAX + 1, LONG_NAME };

static void help(void) {
    puts("usage: ckv-estimate [options]\n\n"
         "Tells what the strings of a Redis or Valkey server would take with ckv. It reads a "
         "sample\n"
         "of the keys, changes nothing, and the server needs no module.\n");
    for (int i = 0; i < KINDS; i++) {
        const char *argument = kinds[i].argument ? kinds[i].argument : "";
        int room = 24 - (int)(strlen(dashes(&kinds[i])) + strlen(kinds[i].name));
        printf("  %s%s %-*s", dashes(&kinds[i]), kinds[i].name, room, argument);
        for (const char *at = kinds[i].help; *at; at++)
            *at == '\n' ? printf("\n%27s", "") : putchar(*at);
        putchar('\n');
    }
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
    struct option names[KINDS + 2] = {{0}};
    char letters[2 * KINDS + 1] = "";
    int long_names = 0;
    for (int i = 0; i < KINDS; i++) {
        if (kinds[i].name[1])
            names[long_names++] =
                (struct option){kinds[i].name, kinds[i].argument != NULL, NULL, LONG_NAME + i};
        else
            strcat(strcat(letters, kinds[i].name), ":");
    }
    names[long_names] = (struct option){"help", no_argument, NULL, HELP};
    *o = (options){.to = {.host = "127.0.0.1", .port = 6379},
                   .database = ALL_DATABASES,
                   .keys = 250000,
                   .rate = 20000};
    for (int found; (found = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        if (found == '?') exit(2); /* getopt has said what is wrong */
        if (found == HELP) {
            help();
            check_printed();
            exit(0);
        }
        int i = found >= LONG_NAME ? found - LONG_NAME : 0;
        while (found < LONG_NAME && (kinds[i].name[0] != found || kinds[i].name[1])) i++;
        kinds[i].set(o, &kinds[i], optarg);
    }
    if (optind < argc) fail(2, "unknown argument '%s'", argv[optind]);
    finish(o);
}
