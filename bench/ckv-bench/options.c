#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: ckv-bench --server STORE --data FILE [options]\n"
    "\n"
    "  --server STORE    strings, hashes, ckv or memcached; -zlib or -zstd after it: the client\n"
    "                    compresses each value (strings-zstd)\n"
    "  --data FILE       one record a line; *.u32le: each after its length, 4 bytes little-endian\n"
    "  --mode MODE       load (default), read, or mixed: every second pipeline writes\n"
    "  --records N       how many records the store has (default 100000)\n"
    "  --operations N    how many to read or write (default: one for each record)\n"
    "  --threads N       (default 1)\n"
    "  --clients N       connections, shared out among the threads (default: one a thread)\n"
    "  --pipeline N      requests under way on a connection (default 1)\n"
    "  --ttl SECONDS     records expire (default: never)\n"
    "  --zipf THETA      read some records more often, 0 < THETA < 1 (default: all alike)\n"
    "  --keys KIND       sequential (KEY:<n>, the default) or uuid\n"
    "  --bucket N        hashes: so many characters of the key name the hash (default: all but 3)\n"
    "  --host HOST       (default 127.0.0.1)\n"
    "  --port PORT       (default 6379; memcached 11211)\n"
    "  --socket PATH     a Unix socket instead\n"
    "  --json FILE       write the report there (default: standard output)\n";

static long number(const char *name, const char *text, long least, long most) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < least || n > most)
        fail(2, "--%s must be a number from %ld to %ld, not '%s'", name, least, most, text);
    return n;
}

static double fraction(const char *name, const char *text) {
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || !(x > 0 && x < 1))
        fail(2, "--%s must be between 0 and 1, not '%s'", name, text);
    return x;
}

static void set_server(Options *o, const char *text) {
    static const StoreKind *kinds[] = {&store_strings, &store_hashes, &store_ckv, &store_memcached};
    static const char *encodings[] = {
        [ENCODE_NONE] = "", [ENCODE_ZLIB] = "-zlib", [ENCODE_ZSTD] = "-zstd"};
    o->server = text;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i]->name);
        if (strncmp(text, kinds[i]->name, n) != 0) continue;
        for (int e = ENCODE_NONE; e <= ENCODE_ZSTD; e++) {
            if (strcmp(text + n, encodings[e]) != 0) continue;
            o->kind = kinds[i];
            o->encoding = (Encoding)e;
            return;
        }
    }
    fail(2,
         "--server must be strings, hashes, ckv or memcached, with -zlib or -zstd after it or "
         "not; not '%s'",
         text);
}

static void set_mode(Options *o, const char *text) {
    static const char *modes[] = {
        [MODE_LOAD] = "load", [MODE_READ] = "read", [MODE_MIXED] = "mixed"};
    for (int m = MODE_LOAD; m <= MODE_MIXED; m++) {
        if (strcmp(text, modes[m]) != 0) continue;
        o->mode = (Mode)m;
        return;
    }
    fail(2, "--mode must be load, read or mixed, not '%s'", text);
}

static void set_keys(Options *o, const char *text) {
    o->uuid = strcmp(text, "uuid") == 0;
    if (!o->uuid && strcmp(text, "sequential") != 0)
        fail(2, "--keys must be sequential or uuid, not '%s'", text);
}

static void set(Options *o, const char *name, const char *text) {
    if (strcmp(name, "server") == 0)
        set_server(o, text);
    else if (strcmp(name, "mode") == 0)
        set_mode(o, text);
    else if (strcmp(name, "keys") == 0)
        set_keys(o, text);
    else if (strcmp(name, "data") == 0)
        o->data = text;
    else if (strcmp(name, "json") == 0)
        o->json = text;
    else if (strcmp(name, "host") == 0)
        o->host = text;
    else if (strcmp(name, "socket") == 0)
        o->socket = text;
    else if (strcmp(name, "zipf") == 0)
        o->zipf = fraction(name, text);
    else if (strcmp(name, "port") == 0)
        o->port = number(name, text, 1, 65535);
    else if (strcmp(name, "records") == 0)
        o->records = number(name, text, 1, 10000000000);
    else if (strcmp(name, "operations") == 0)
        o->operations = number(name, text, 1, LONG_MAX);
    else if (strcmp(name, "threads") == 0)
        o->threads = number(name, text, 1, 1024);
    else if (strcmp(name, "clients") == 0)
        o->clients = number(name, text, 1, 10000);
    else if (strcmp(name, "pipeline") == 0)
        o->pipeline = number(name, text, 1, 10000);
    else if (strcmp(name, "ttl") == 0)
        o->ttl = number(name, text, 1, 30L * 86400);
    else
        o->bucket = number(name, text, 1, 12);
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
    static const char *names[] = {
        "server", "data", "mode", "records", "operations", "threads", "clients", "pipeline",
        "ttl",    "zipf", "keys", "bucket",  "host",       "port",    "socket",  "json"};
    enum { NAMES = sizeof names / sizeof *names };
    struct option known[NAMES + 2] = {{0}};
    for (int i = 0; i < NAMES; i++)
        known[i] = (struct option){names[i], required_argument, NULL, 's'};
    known[NAMES] = (struct option){"help", no_argument, NULL, 'h'};

    *o = (Options){.host = "127.0.0.1", .records = 100000, .threads = 1, .pipeline = 1};
    int found, at = 0;
    while ((found = getopt_long(argc, argv, "h", known, &at)) != -1) {
        if (found == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        if (found != 's') exit(2); /* getopt has said what is wrong */
        set(o, known[at].name, optarg);
    }
    if (optind < argc) fail(2, "unknown argument '%s'", argv[optind]);
    finish(o);
}
