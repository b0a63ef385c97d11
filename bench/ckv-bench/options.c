#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Option Option;
struct Option {
    const char *name;
    void (*set)(Options *o, const Option *option, const char *text);
    size_t at; /* of the member */
    const char *argument, *help;
    long least, most; /* of a number */
};

static void set_text(Options *o, const Option *option, const char *text) {
    *(const char **)((char *)o + option->at) = text;
}

static void set_number(Options *o, const Option *option, const char *text) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < option->least || n > option->most)
        fail(2, "--%s must be a number from %ld to %ld, not '%s'", option->name, option->least,
             option->most, text);
    *(long *)((char *)o + option->at) = n;
}

static void set_zipf(Options *o, const Option *option, const char *text) {
    char *end;
    o->zipf = strtod(text, &end);
    if (end == text || *end || !(o->zipf > 0 && o->zipf < 1))
        fail(2, "--%s must be between 0 and 1, not '%s'", option->name, text);
}

static void set_server(Options *o, const Option *option, const char *text) {
    static const StoreKind *kinds[] = {&store_strings, &store_hashes, &store_ckv, &store_memcached};
    static const char *encodings[] = {
        [ENCODE_NONE] = "", [ENCODE_ZLIB] = "-zlib", [ENCODE_ZSTD] = "-zstd"};
    o->server = text;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i]->name);
        for (int e = ENCODE_NONE; e <= ENCODE_ZSTD; e++) {
            if (strncmp(text, kinds[i]->name, n) != 0 || strcmp(text + n, encodings[e]) != 0)
                continue;
            o->kind = kinds[i];
            o->encoding = (Encoding)e;
            return;
        }
    }
    fail(2,
         "--%s must be strings, hashes, ckv or memcached, with -zlib or -zstd after it or not; "
         "not '%s'",
         option->name, text);
}

static void set_mode(Options *o, const Option *option, const char *text) {
    for (int m = MODE_LOAD; m <= MODE_MIXED; m++) {
        if (strcmp(text, mode_names[m]) != 0) continue;
        o->mode = (Mode)m;
        return;
    }
    fail(2, "--%s must be load, read or mixed, not '%s'", option->name, text);
}

static void set_keys(Options *o, const Option *option, const char *text) {
    o->uuid = strcmp(text, "uuid") == 0;
    if (!o->uuid && strcmp(text, "sequential") != 0)
        fail(2, "--%s must be sequential or uuid, not '%s'", option->name, text);
}

#define NUMBER(name) set_number, offsetof(Options, name), "N"
#define TEXT(name)   set_text, offsetof(Options, name)

static const Option known[] = {
    {"server", set_server, 0, "STORE",
     "strings, hashes, ckv or memcached; -zlib or -zstd after it: the client\n"
     "compresses each value (strings-zstd)",
     0, 0},
    {"data", TEXT(data), "FILE",
     "one record a line; *.u32le: each after its length, 4 bytes little-endian", 0, 0},
    {"mode", set_mode, 0, "MODE", "load (default), read, or mixed: every second pipeline writes", 0,
     0},
    {"records", NUMBER(records), "how many records the store has (default 100000)", 1, 10000000000},
    {"operations", NUMBER(operations), "how many to read or write (default: one for each record)",
     1, LONG_MAX},
    {"threads", NUMBER(threads), "(default 1)", 1, 1024},
    {"clients", NUMBER(clients),
     "connections, shared out among the threads (default: one a thread)", 1, 10000},
    {"pipeline", NUMBER(pipeline), "requests under way on a connection (default 1)", 1, 10000},
    {"ttl", NUMBER(ttl), "seconds until a record expires (default: never)", 1, 30L * 86400},
    {"zipf", set_zipf, 0, "THETA",
     "read some records more often, 0 < THETA < 1 (default: all alike)", 0, 0},
    {"keys", set_keys, 0, "KIND", "sequential (KEY:<n>, the default) or uuid", 0, 0},
    {"first", NUMBER(first), "n of the first key (default 100000000)", 0, 1000000000000000000},
    {"digits", NUMBER(digits), "n is written with so many at least (default 1)", 1, 20},
    {"bucket", NUMBER(bucket),
     "hashes: so many characters of the key name the hash (default: all but 3)", 1, 12},
    {"host", TEXT(host), "HOST", "(default 127.0.0.1)", 0, 0},
    {"port", NUMBER(port), "(default 6379; memcached 11211)", 1, 65535},
    {"socket", TEXT(socket), "PATH", "a Unix socket instead", 0, 0},
};
enum { KNOWN = sizeof known / sizeof *known };

static void help(void) {
    puts("usage: ckv-bench --server STORE --data FILE [options]\n");
    for (int i = 0; i < KNOWN; i++) {
        int room = 15 - (int)strlen(known[i].name);
        printf("  --%s %-*s", known[i].name, room, known[i].argument);
        for (const char *at = known[i].help; *at; at++)
            *at == '\n' ? printf("\n%20s", "") : putchar(*at);
        putchar('\n');
    }
}

static void finish(Options *o) {
    if (!o->server) fail(2, "--server is missing; --help lists the options");
    if (!o->data) fail(2, "--data is missing; --help lists the options");
    if (!o->port) o->port = o->kind == &store_memcached ? 11211 : 6379;
    if (!o->clients) o->clients = o->threads;
    if (o->clients < o->threads) fail(2, "--clients must not be fewer than --threads");
    if (o->kind == &store_hashes && o->ttl) fail(2, "--ttl: a field of a hash cannot expire");
    if (o->kind != &store_hashes && o->bucket) fail(2, "--bucket is for --server hashes");
    if (o->mode == MODE_LOAD && o->zipf > 0) fail(2, "--zipf is for --mode read and mixed");
    if (o->mode == MODE_LOAD && o->operations) fail(2, "--operations is for --mode read and mixed");
    if (!o->operations) o->operations = o->records;
}

void options_parse(Options *o, int argc, char **argv) {
    struct option names[KNOWN + 2] = {{0}};
    for (int i = 0; i < KNOWN; i++)
        names[i] = (struct option){known[i].name, required_argument, NULL, 's'};
    names[KNOWN] = (struct option){"help", no_argument, NULL, 'h'};
    *o = (Options){.host = "127.0.0.1",
                   .records = 100000,
                   .threads = 1,
                   .pipeline = 1,
                   .first = 100000000,
                   .digits = 1};
    int found, at = 0;
    while ((found = getopt_long(argc, argv, "h", names, &at)) != -1) {
        if (found == 'h') {
            help();
            exit(0);
        }
        if (found != 's') exit(2); /* getopt has said what is wrong */
        known[at].set(o, &known[at], optarg);
    }
    if (optind < argc) fail(2, "unknown argument '%s'", argv[optind]);
    finish(o);
}
