/*
 * bench_codec.c: bytes and speed of the codecs alone, as JSON.
 *
 *      bench_codec [file ...]      one record a line; *.u32le: each after a 4-byte length
 *
 * Each file is learned from its first half (16 MB at most) and measured on the rest, 40,000 records
 * at most: phrases, of several kinds where that pays, in the cheapest way, as what is stored is in
 * the end, and in the fast one, as what is written is at first; of both, what was decoded must be
 * what was encoded. Sets of keys that every server knows are made up and measured too. Bytes are
 * averages for one record: what it takes without its length, and for zstd without its frame header.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include "common/common.h"
#include "core/base/random.h"
#include "core/codec/codec_inside.h"
#include "core/codec/codec_values.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zdict.h>
#include <zstd.h>

#define LEARN_BYTES  (16u << 20)
#define TEST_RECORDS 40000u
#define PASSES       5
#define ZSTD_LEVEL   3
#define RECORD_DICT  (256u << 10)
#define PAGE_DICT    (1u << 20)
#define PAGE_BYTES   8192
#define TABLES_MAX   (4u << 20) /* as much as 65,536 phrases may want */
#define TABLES_MIN   (64u << 10)
#define TABLES_SHARE 0.03 /* of the data */
#define KEYS         600000u

typedef struct data_set {
    const char *name;
    uint8_t *bytes;
    size_t len;
    phrase_sample *records;
    size_t n, learn, test; /* records; the first `learn`, then `test` of them are used */
    size_t learn_bytes, test_bytes, longest;
} data_set;

typedef struct timing {
    double encode, decode; /* seconds for all test records */
} timing;

/* CPU seconds of this thread: other programs on the machine count less. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- an allocator that knows its peak -------------------------------------------------------- */

static size_t allocated, peak;

static void *peak_alloc(size_t n) {
    void *block = malloc(n);
    allocated += block ? malloc_usable_size(block) : 0;
    if (allocated > peak) peak = allocated;
    return block;
}
static void peak_free(void *block) {
    allocated -= malloc_usable_size(block);
    free(block);
}
static void *peak_realloc(void *block, size_t n) {
    (void)block;
    (void)n;
    fail(1, "nothing in the codec reallocates");
}
static const mem peak_mem = {peak_alloc, peak_realloc, peak_free, malloc_usable_size};

/* ---- records --------------------------------------------------------------------------------- */

static void add_record(data_set *d, const uint8_t *at, size_t len) {
    if ((d->n & (d->n - 1)) == 0)
        d->records = reallocate(d->records, (d->n ? 2 * d->n : 1) * sizeof *d->records);
    d->records[d->n++] = (phrase_sample){at, (uint32_t)len};
}

static data_set read_file(const char *path) {
    Records file;
    records_read(&file, path);
    data_set d = {.name = file_name(path), .bytes = (uint8_t *)file.file, .len = file.size};
    for (size_t i = 0; i < file.count; i++)
        add_record(&d, (const uint8_t *)file.values[i].bytes, file.values[i].length);
    free(file.values);
    return d;
}

static uint64_t rnd(void) {
    static uint64_t state = 88172645463325252u;
    return random_next(&state);
}

static int key_9_digits(char *to) {
    return sprintf(to, "KEY:%u", 100000000u + (unsigned)(rnd() % 900000000u));
}
static int key_stem(char *to) {
    return sprintf(to, "KEY:%u", 1000000u + (unsigned)(rnd() % 9000000u));
}
static int key_user(char *to) {
    return sprintf(to, "user:%08u:profile", (unsigned)(rnd() % 100000000u));
}
static int key_uuid(char *to) {
    uint64_t a = rnd(), b = rnd();
    return sprintf(to, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
                   (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
                   (unsigned)(b >> 48 & 0x3fff) | 0x8000u,
                   (unsigned long long)(b & 0xffffffffffff));
}

static data_set make_keys(const char *name, int (*make)(char *)) {
    data_set d = {.name = name, .bytes = allocate(KEYS * 40)};
    for (uint32_t i = 0; i < KEYS && d.len < 8u << 20; i++) {
        int len = make((char *)d.bytes + d.len);
        add_record(&d, d.bytes + d.len, (size_t)len);
        d.len += (size_t)len;
    }
    return d;
}

static void choose(data_set *d) {
    size_t share = d->n / 2;
    for (; d->learn < share && d->learn_bytes < LEARN_BYTES; d->learn++)
        d->learn_bytes += d->records[d->learn].len;
    memmove(d->records + d->learn, d->records + share, (d->n - share) * sizeof *d->records);
    for (; d->test < d->n - share && d->test < TEST_RECORDS; d->test++) {
        size_t len = d->records[d->learn + d->test].len;
        d->test_bytes += len;
        if (len > d->longest) d->longest = len;
    }
    if (d->test == 0 || d->test_bytes == 0) fail(1, "a file has too few records");
}

/* ---- the codecs ------------------------------------------------------------------------------ */

/* How the test records come out of a codec: each one's bytes, one after the other. */
typedef struct encoded {
    uint8_t *bytes;
    size_t *len;
    double average;
    timing time;
} encoded;

typedef struct coder {
    size_t (*encode)(void *self, const phrase_sample *record, uint8_t *to, size_t cap);
    size_t (*decode)(void *self, const uint8_t *from, size_t len, uint8_t *to, size_t cap);
    void *self;
    size_t header; /* bytes of each encoding that are not counted */
} coder;

static encoded encode_all(const data_set *d, const coder *c) {
    const phrase_sample *test = d->records + d->learn;
    size_t each = ZSTD_COMPRESSBOUND(d->longest) + 3 * d->longest, sum = 0;
    encoded e = {.len = allocate(d->test * sizeof *e.len),
                 .bytes = allocate(3 * d->test_bytes + 64 * d->test + each),
                 .time = {1e9, 1e9}};
    uint8_t *back = allocate(d->longest + 64);
    for (int pass = 0; pass < PASSES; pass++) {
        uint8_t *at = e.bytes;
        double start = now();
        for (size_t i = 0; i < d->test; i++)
            at += e.len[i] = c->encode(c->self, &test[i], at, each);
        double middle = now();
        at = e.bytes;
        for (size_t i = 0; i < d->test; at += e.len[i++])
            c->decode(c->self, at, e.len[i], back, d->longest + 64);
        double end = now();
        if (middle - start < e.time.encode) e.time.encode = middle - start;
        if (end - middle < e.time.decode) e.time.decode = end - middle;
    }
    uint8_t *at = e.bytes;
    for (size_t i = 0; i < d->test; at += e.len[i++]) {
        size_t got = c->decode(c->self, at, e.len[i], back, d->longest + 64);
        if (got != test[i].len || memcmp(back, test[i].data, got) != 0)
            fail(1, "a record came back wrong");
        sum += e.len[i] - (e.len[i] < c->header ? e.len[i] : c->header);
    }
    e.average = (double)sum / (double)d->test;
    free(back);
    return e;
}

static void free_encoded(encoded *e) {
    free(e->bytes);
    free(e->len);
}

/* Dictionaries for values, or one for keys in the place of the first; and room to parse in. */
typedef struct phrases {
    codec of;
    void *scratch;
} phrases;

static const phrase_dict *dict_for(const codec *c, const phrase_sample *r) {
    return c->values[c->kinds && r->len ? kinds_of(c->kinds, r->data, r->len) : 0];
}

static const phrase_dict *dict_of(const codec *c, const uint8_t *from) {
    return c->values[c->kinds ? codec_lead(*from) : 0];
}

static size_t phrase_encode_record(void *self, const phrase_sample *r, uint8_t *to, size_t cap) {
    return phrase_encode(dict_for(&((phrases *)self)->of, r), r->data, r->len, to, cap);
}

static size_t cheapest_encode_record(void *self, const phrase_sample *r, uint8_t *to, size_t cap) {
    phrases *p = self;
    return phrase_encode_cheapest(dict_for(&p->of, r), p->scratch, r->data, r->len, to, cap);
}
static size_t phrase_decode_record(void *self, const uint8_t *from, size_t len, uint8_t *to,
                                   size_t cap) {
    return phrase_decode(dict_of(&((phrases *)self)->of, from), from, len, to, cap);
}

typedef struct zstd {
    ZSTD_CCtx *write;
    ZSTD_DCtx *read;
    void *dict;
    size_t dict_len;
} zstd;

static size_t zstd_check(size_t code) {
    if (ZSTD_isError(code)) fail(1, "%s", ZSTD_getErrorName(code));
    return code;
}
static size_t zstd_encode_record(void *self, const phrase_sample *r, uint8_t *to, size_t cap) {
    return zstd_check(ZSTD_compress2(((zstd *)self)->write, to, cap, r->data, r->len));
}
static size_t zstd_decode_record(void *self, const uint8_t *from, size_t len, uint8_t *to,
                                 size_t cap) {
    return zstd_check(ZSTD_decompressDCtx(((zstd *)self)->read, to, cap, from, len));
}

/* Learns a dictionary; without one if the data is too little for it. */
static zstd zstd_learn(const data_set *d, size_t dict_bytes) {
    zstd z = {ZSTD_createCCtx(), ZSTD_createDCtx(), allocate(dict_bytes), 0};
    uint8_t *joined = allocate(d->learn_bytes + 1), *at = joined;
    size_t *lens = allocate(d->learn * sizeof *lens);
    for (size_t i = 0; i < d->learn; i++) {
        lens[i] = d->records[i].len;
        memcpy(at, d->records[i].data, lens[i]);
        at += lens[i];
    }
    size_t got = ZDICT_trainFromBuffer(z.dict, dict_bytes, joined, lens, (unsigned)d->learn);
    z.dict_len = ZDICT_isError(got) ? 0 : got;
    free(joined);
    free(lens);
    zstd_check(ZSTD_CCtx_setParameter(z.write, ZSTD_c_compressionLevel, ZSTD_LEVEL));
    zstd_check(ZSTD_CCtx_setParameter(z.write, ZSTD_c_dictIDFlag, 0));
    zstd_check(ZSTD_CCtx_setParameter(z.write, ZSTD_c_format, ZSTD_f_zstd1_magicless));
    zstd_check(ZSTD_DCtx_setParameter(z.read, ZSTD_d_format, ZSTD_f_zstd1_magicless));
    zstd_check(ZSTD_CCtx_loadDictionary(z.write, z.dict, z.dict_len));
    zstd_check(ZSTD_DCtx_loadDictionary(z.read, z.dict, z.dict_len));
    return z;
}

static void zstd_free(zstd *z) {
    ZSTD_freeCCtx(z->write);
    ZSTD_freeDCtx(z->read);
    free(z->dict);
}

/* Joins neighbouring test records into pages and returns the bytes that each record then takes. */
static double measure_pages(const data_set *d) {
    zstd z = zstd_learn(d, PAGE_DICT);
    const phrase_sample *test = d->records + d->learn;
    size_t cap = PAGE_BYTES + d->longest, len = 0, sum = 0;
    uint8_t *page = allocate(cap), *to = allocate(ZSTD_COMPRESSBOUND(cap));
    for (size_t i = 0; i < d->test; i++) {
        memcpy(page + len, test[i].data, test[i].len);
        len += test[i].len;
        if (len < PAGE_BYTES && i + 1 < d->test) continue;
        sum += zstd_check(ZSTD_compress2(z.write, to, ZSTD_COMPRESSBOUND(cap), page, len));
        len = 0;
    }
    free(page);
    free(to);
    zstd_free(&z);
    return (double)sum / (double)d->test;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* What is stored for each record: as it is and a byte more, or what a codec makes of it. */
static double measure_best(const data_set *d, const encoded *a, const encoded *b, size_t header) {
    size_t sum = 0;
    for (size_t i = 0; i < d->test; i++) {
        size_t best = d->records[d->learn + i].len + 1;
        if (a->len[i] < best) best = a->len[i];
        if (b && b->len[i] - header < best) best = b->len[i] - header;
        sum += best;
    }
    return (double)sum / (double)d->test;
}

static void print_codec(const data_set *d, const char *name, const encoded *e) {
    double us = 1e6 / (double)d->test, mb = (double)d->test_bytes / 1e6;
    printf(",\n  \"%s\": {\"bytes\": %.3f, \"encode_mb_s\": %.1f, \"decode_mb_s\": %.1f, "
           "\"encode_us\": %.3f, \"decode_us\": %.3f}",
           name, e->average, mb / e->time.encode, mb / e->time.decode, e->time.encode * us,
           e->time.decode * us);
}

/* The dictionaries as they are used for values, the fast way first; keys are encoded fast only. */
static encoded measure_ways(const data_set *d, const char *name, phrases *p, bool values) {
    coder c = {phrase_encode_record, phrase_decode_record, p, 0};
    encoded e = encode_all(d, &c);
    if (values) {
        char fast[64];
        snprintf(fast, sizeof fast, "%s_fast", name);
        print_codec(d, fast, &e);
        free_encoded(&e);
        c.encode = cheapest_encode_record;
        e = encode_all(d, &c);
    }
    print_codec(d, name, &e);
    return e;
}

static void learn_phrases(const data_set *d, phrases *p, size_t max_bytes, bool values) {
    if (values) {
        if (codec_train_values(&peak_mem, &p->of, d->records, d->learn, max_bytes,
                               PHRASE_RECORDS * max_bytes))
            return;
    } else {
        p->of.values[0] = phrase_train(&peak_mem, d->records, d->learn, max_bytes,
                                       PHRASE_RECORDS * max_bytes, false);
        if (p->of.values[0]) return;
    }
    fail(1, "out of memory");
}

/* Learns phrases in tables of at most max_bytes and measures them. */
static encoded measure_phrases(const data_set *d, const char *name, size_t max_bytes, bool values) {
    phrases p = {.scratch = allocate(phrase_scratch_bytes())};
    double start = now();
    size_t before = peak = allocated, bytes = 0;
    learn_phrases(d, &p, max_bytes, values);
    double seconds = now() - start;
    encoded e = measure_ways(d, name, &p, values);
    uint32_t kinds = codec_kinds(&p.of);
    for (uint32_t i = 0; i < kinds; i++) bytes += phrase_bytes(p.of.values[i]);
    printf(",\n  \"%s_training\": {\"seconds\": %.2f, \"peak_mb\": %.1f, \"table_bytes\": %zu, "
           "\"kinds\": %u}",
           name, seconds, (double)(peak - before) / 1e6, bytes, kinds);
    for (uint32_t i = 0; i < kinds; i++) phrase_free(p.of.values[i]);
    if (p.of.kinds) peak_free(p.of.kinds);
    free(p.scratch);
    return e;
}

static void measure(data_set *d, bool values, bool first) {
    choose(d);
    printf("%s{\"name\": \"%s\", \"records\": %zu, \"raw\": %.3f", first ? "" : ",\n", d->name,
           d->test, (double)d->test_bytes / (double)d->test);
    zstd z = zstd_learn(d, RECORD_DICT);
    coder c = {zstd_encode_record, zstd_decode_record, &z, 2};
    encoded records = encode_all(d, &c);
    print_codec(d, "zstd", &records);
    zstd_free(&z);
    if (values) printf(",\n  \"zstd_pages\": {\"bytes\": %.3f}", measure_pages(d));
    size_t small = (size_t)(TABLES_SHARE * (double)d->len);
    encoded e = measure_phrases(d, "phrase_small", small < TABLES_MIN ? TABLES_MIN : small, values);
    free_encoded(&e);
    e = measure_phrases(d, "phrase", TABLES_MAX, values);
    printf(",\n  \"best\": {\"bytes\": %.3f}}", measure_best(d, &e, values ? &records : NULL, 2));
    fflush(stdout);
    free_encoded(&e);
    free_encoded(&records);
    free(d->bytes);
    free(d->records);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*make)(char *);
    } keys[] = {{"keys KEY:<9 digits>", key_9_digits},
                {"keys KEY:<7 digits>", key_stem},
                {"keys UUID", key_uuid},
                {"keys user:<8 digits>:profile", key_user}};
    printf("[");
    for (int i = 1; i < argc; i++) {
        data_set d = read_file(argv[i]);
        measure(&d, true, i == 1);
    }
    for (int i = 0; i < 4; i++) {
        data_set d = make_keys(keys[i].name, keys[i].make);
        measure(&d, false, argc == 1 && i == 0);
    }
    printf("]\n");
    return 0;
}
