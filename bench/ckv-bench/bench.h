/* ckv-bench: loads records into a store, reads them back, compares each and times it.
 *
 *   main.c       threads, progress, the report
 *   options.c    the command line
 *   keys.c       the records' keys
 *   random.c     which record is next
 *   histogram.c  latencies
 *   encode.c     compression on the client's side
 *   redis.c      strings, hashes and ckv, by hiredis
 *   memcached.c  by libmemcached
 *   cache.h      a cache by its statistics: the modes fill, age and replay
 */
#ifndef CKV_BENCH_H
#define CKV_BENCH_H

#include "cache.h"

#define KEY_SIZE 40

typedef enum { MODE_LOAD, MODE_READ, MODE_MIXED, MODE_FILL, MODE_AGE, MODE_REPLAY } Mode;
typedef enum { ENCODE_NONE, ENCODE_ZLIB, ENCODE_ZSTD } Encoding;

typedef struct StoreKind StoreKind;

typedef struct {
    const char *server; /* as given: "strings-zstd" */
    const StoreKind *kind;
    Encoding encoding;
    const char *data;
    const char *host;
    const char *socket; /* path of a Unix socket instead of host and port, or NULL */
    Mode mode;
    long port, records, operations, threads, clients, pipeline, ttl, bucket;
    long first, digits; /* of the keys' numbers */
    int uuid;
    Cache cache; /* its zipf is that of read and mixed as well; 0: every record is as likely */
    const char *caches;
    int random_values;
    long row, rate, turn, turns, pid;
} Options;

/* Connections of one kind of store. send() and receive() deal with `count` records, one pipeline;
 * both end the program with a message when the store fails or returns anything but what was stored.
 */
typedef struct Connection Connection;
struct StoreKind {
    const char *name, *write, *read; /* the latter two: commands of Redis */
    Connection *(*open)(const Options *options, const Records *records);
    void (*send)(Connection *c, int writes, const uint64_t *numbers, size_t count);
    void (*receive)(Connection *c, int writes, const uint64_t *numbers, size_t count);
    void (*close)(Connection *c);
};

extern const char *const mode_names[];
extern const StoreKind store_strings, store_hashes, store_ckv, store_memcached;

void options_parse(Options *options, int argc, char **argv);

uint64_t now_ns(void);
struct redisContext *redis_connect(const Options *options);

size_t record_key(char key[KEY_SIZE], const Options *options, uint64_t number);

/* By the statistics of options->cache; each prints a report. */
void cache_fill(const Options *options, const Records *records);
void cache_age(const Options *options, const Records *records);
void cache_replay(const Options *options, const Records *records);

/* Log-linear: 64 steps for each power of two of nanoseconds, an error below 1.6%. */
#define HISTOGRAM_STEPS 64
typedef struct {
    uint64_t counts[64 * HISTOGRAM_STEPS];
    uint64_t total, longest;
} Histogram;
void histogram_add(Histogram *h, uint64_t ns);
void histogram_merge(Histogram *into, const Histogram *from);
uint64_t histogram_percentile(const Histogram *h, double percent);

/* Buffers and contexts of one connection. */
typedef struct Encoder Encoder;
Encoder *encoder_create(Encoding encoding, size_t longest);
void encoder_free(Encoder *e);
/* What is stored for a value; valid until the next call. */
Value encoder_encode(Encoder *e, const Value *value);
/* Ends the program unless `stored` decodes to `expected`. */
void encoder_check(Encoder *e, Value stored, const Value *expected, const char *key);

#endif
