#include "bench.h"

#include "common/command_line.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static void set_ttls(void *options, const Option *option, const char *text) {
    Options *o = options;
    (void)option;
    cache_set_ttls(&o->cache, text);
}

static void set_values(void *options, const Option *option, const char *text) {
    Options *o = options;
    o->random_values = strcmp(text, "random") == 0;
    if (!o->random_values && strcmp(text, "records") != 0)
        fail(2, "--%s must be records or random, not '%s'", option->name, text);
}

static void set_server(void *options, const Option *option, const char *text) {
    Options *o = options;
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

static void set_mode(void *options, const Option *option, const char *text) {
    Options *o = options;
    for (int m = MODE_LOAD; m <= MODE_REPLAY; m++) {
        if (strcmp(text, mode_names[m]) != 0) continue;
        o->mode = (Mode)m;
        return;
    }
    fail(2, "--%s must be load, read, mixed, fill, age or replay, not '%s'", option->name, text);
}

static void set_keys(void *options, const Option *option, const char *text) {
    Options *o = options;
    o->uuid = strcmp(text, "uuid") == 0;
    if (!o->uuid && strcmp(text, "sequential") != 0)
        fail(2, "--%s must be sequential or uuid, not '%s'", option->name, text);
}

#define NUMBER(name) option_number, offsetof(Options, name), "N"
#define REAL(name)   option_real, offsetof(Options, cache.name), "X"
#define TEXT(name)   option_text, offsetof(Options, name)

static const Option known[] = {
    {"server", set_server, 0, "STORE",
     "strings, hashes, ckv or memcached; -zlib or -zstd after it: the client\n"
     "compresses each value (strings-zstd)",
     0, 0},
    {"data", TEXT(data), "FILE",
     "one record a line; *.u32le: each after its length, 4 bytes little-endian", 0, 0},
    {"mode", set_mode, 0, "MODE",
     "load (default), read, or mixed: every second pipeline writes; of a cache: fill, age\nor "
     "replay",
     0, 0},
    {"records", NUMBER(records), "how many records the store has (default 100000)", 1, 10000000000},
    {"operations", NUMBER(operations), "how many to read or write (default: one for each record)",
     1, LONG_MAX},
    {"threads", NUMBER(threads), "(default 1)", 1, 1024},
    {"clients", NUMBER(clients),
     "connections, shared out among the threads (default: one a thread)", 1, 10000},
    {"pipeline", NUMBER(pipeline), "requests under way on a connection (default 1)", 1, 10000},
    {"ttl", NUMBER(ttl), "seconds until a record expires (default: never)", 1, 30L * 86400},
    {"zipf", REAL(zipf),
     "read some records more often, by Zipf's law of that exponent (default 0: all alike)", 0, 10},
    {"keys", set_keys, 0, "KIND", "sequential (KEY:<n>, the default) or uuid", 0, 0},
    {"first", NUMBER(first), "n of the first key (default 100000000)", 0, 1000000000000000000},
    {"digits", NUMBER(digits), "n is written with so many at least (default 1)", 1, 20},
    {"bucket", NUMBER(bucket),
     "hashes: so many characters of the key name the hash (default: all but 3)", 1, 12},
    {"cache", NUMBER(row),
     "the cache of that number in the table of --caches; the following say it otherwise, or of "
     "a\ncache of your own (defaults: the middle of the published ones)",
     0, LONG_MAX},
    {"caches", TEXT(caches), "FILE", "its statistics: CSV, columns by name", 0, 0},
    {"key-bytes", REAL(key_bytes), "on average", 10, 400},
    {"value-bytes", REAL(value_bytes), "on average", 1, 1 << 20},
    {"spread", REAL(spread), "of the logarithm of the values' lengths (default 0.5)", 0, 2},
    {"values", set_values, 0, "KIND",
     "records (of --data, cut or joined; the default) or random bytes", 0, 0},
    {"requests-per-object", REAL(requests_per_object), "on average", 1, 1000000},
    {"one-hit", REAL(one_hit), "share of the objects that are asked for once", 0, 1},
    {"misses", REAL(misses), "share of the gets", 0, 1},
    {"sets", REAL(sets), "share of the requests, those after a miss included", 0, 1},
    {"increments", REAL(increments), "likewise", 0, 1},
    {"deletes", REAL(deletes), "likewise", 0, 1},
    {"adds", REAL(adds), "likewise; the others are gets", 0, 1},
    {"ttls", set_ttls, 0, "TIMES", "with their shares: '1d:0.65, 90s:0.35'; '': nothing expires", 0,
     0},
    {"rate", NUMBER(rate), "requests a second (default: of a cache 20000, else as fast as they go)",
     1, 10000000},
    {"turns", NUMBER(turns), "take turns of 0.25 s with other such runs: so many", 1, 100},
    {"turn", NUMBER(turn), "the which of them this is, from 0", 0, 99},
    {"pid", NUMBER(pid), "of the server: the report tells the time of its main thread", 1,
     LONG_MAX},
    {"host", TEXT(host), "HOST", "(default 127.0.0.1)", 0, 0},
    {"port", NUMBER(port), "(default 6379; memcached 11211)", 1, 65535},
    {"socket", TEXT(socket), "PATH", "a Unix socket instead", 0, 0},
};
enum { KNOWN = sizeof known / sizeof *known };

static void help(void) {
    puts("usage: ckv-bench --server STORE --data FILE [options]\n");
    options_print(known, KNOWN, 17);
}

/* What an option said has been looked at: what is wrong here is the table's. */
static void check_row(const Options *o) {
    for (const Option *option = known; option < known + KNOWN; option++) {
        double n;
        if (option->set != option_real) continue;
        memcpy(&n, (const char *)o + option->at, sizeof n);
        if (!option_allows(option, n))
            fail(1, "%s: of cluster %ld --%s would be %g, which must be from %ld to %ld", o->caches,
                 o->row, option->name, n, option->least, option->most);
    }
}

static void finish_cache(Options *o) {
    const Cache *c = &o->cache;
    if (o->row) check_row(o);
    if (o->turn >= o->turns) fail(2, "--turn must be below --turns");
    if (o->kind != &store_strings || o->encoding != ENCODE_NONE)
        fail(2, "--mode %s is for --server strings", mode_names[o->mode]);
    if (c->sets + c->increments + c->deletes + c->adds > 1 + CACHE_ROUNDED)
        fail(2, "--sets, --increments, --deletes and --adds are more than all requests");
}

static void finish_hashes(const Options *o) {
    char key[KEY_SIZE];
    long shortest = (long)record_key(key, o, 0);
    if (o->ttl) fail(2, "--ttl: a field of a hash cannot expire");
    if (o->bucket >= shortest)
        fail(2, "--bucket must be less than the %ld characters of the first key", shortest);
}

static void finish(Options *o) {
    if (!o->server) fail(2, "--server is missing; --help lists the options");
    if (!o->data) fail(2, "--data is missing; --help lists the options");
    if (!o->port) o->port = o->kind == &store_memcached ? 11211 : 6379;
    if (!o->clients) o->clients = o->threads;
    if (o->clients < o->threads) fail(2, "--clients must not be fewer than --threads");
    if (o->kind == &store_hashes) finish_hashes(o);
    if (o->kind != &store_hashes && o->bucket) fail(2, "--bucket is for --server hashes");
    if (o->mode >= MODE_FILL) finish_cache(o);
    if (o->mode == MODE_LOAD && o->cache.zipf > 0) fail(2, "--zipf is for --mode read and mixed");
    if (o->mode == MODE_LOAD && o->operations) fail(2, "--operations is for --mode read and mixed");
    if (!o->operations) o->operations = o->records;
}

void options_parse(Options *o, int argc, char **argv) {
    static const Options defaults = {.host = "127.0.0.1",
                                     .records = 100000,
                                     .threads = 1,
                                     .pipeline = 1,
                                     .first = 100000000,
                                     .digits = 1,
                                     .turns = 1};
    *o = defaults;
    options_read(o, known, KNOWN, help, argc, argv);
    if (o->mode >= MODE_FILL) {
        /* What is said of the cache counts before what its row says. */
        Cache cache = cache_usual;
        if (o->row && !o->caches) fail(2, "--cache needs --caches");
        if (o->row) cache_read_row(&cache, o->caches, o->row);
        *o = defaults;
        o->cache = cache;
        o->rate = 20000;
        options_read(o, known, KNOWN, help, argc, argv);
    }
    finish(o);
}
