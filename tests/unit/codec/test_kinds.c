/* Kinds of values are told apart by their looks, and have a dictionary each where that pays. */
#include "../counting.h"
#include "../test.h"
#include "codec/codec_file.h"
#include "codec/codec_inside.h"
#include "codec/codec_train.h"

#include <string.h>

#define KINDS   4 /* in turn, as a store is hardly filled, but tests and benchmarks do */
#define OF_EACH 3000
#define RECORDS (KINDS * OF_EACH)

static char values[RECORDS][600], keys[RECORDS][32];
static phrase_sample value_samples[RECORDS], key_samples[RECORDS];

static unsigned number(void) {
    return (unsigned)(test_random() % 1000000);
}

/* Letters that nothing tells beforehand: any of 16, of which the next kind has 12. That
 * dictionaries of their own gain by it is certain then: 3 to 5%, whatever the random numbers. */
static size_t letters(char *to, int kind, int n) {
    for (int i = 0; i < n; i++) to[i] = (char)('A' + 4 * kind + (int)(test_random() % 16));
    to[n] = 0;
    return (size_t)n;
}

/* A long token, a row of a table, a profile, a short token. */
static size_t make_value(char *value, int kind) {
    char name[64];
    size_t len = letters(name, kind, 40);
    if (kind == 0) return (size_t)sprintf(value, "%s", name);
    if (kind == 1) return (size_t)sprintf(value, "%s;%u;%u", name, number() % 100, number() % 100);
    name[len / 2] = 0;
    if (kind == 3) return (size_t)sprintf(value, "%s", name);
    return (size_t)sprintf(value,
                           "{\"login\":\"%s\",\"url\":\"https://example.org/users/%s\","
                           "\"type\":\"User\",\"site_admin\":false,\"score\":%u}",
                           name, name, number() % 100);
}

static void make_records(void) {
    for (int i = 0; i < RECORDS; i++) {
        value_samples[i] = (phrase_sample){values[i], (uint32_t)make_value(values[i], i % KINDS)};
        key_samples[i] = (phrase_sample){keys[i], (uint32_t)sprintf(keys[i], "user:%d", i)};
    }
}

static void looks(void) {
    static kinds_model model, same;
    CHECK(kinds_learn(&mem_libc, NULL, 0, 1, &model) == 1);
    uint32_t kinds = kinds_learn(&mem_libc, value_samples, RECORDS, 1, &model);
    CHECK(kinds >= KINDS && kinds <= KINDS_MAX);
    CHECK(kinds_learn(&mem_libc, value_samples, RECORDS, 1, &same) == kinds);
    CHECK(!memcmp(&model, &same, sizeof model));
    /* No kind that was learned has values of two that are there. */
    int of[KINDS_MAX][KINDS] = {{0}};
    for (int i = 0; i < RECORDS; i++)
        of[kinds_of(&model, values[i], value_samples[i].len)][i % KINDS]++;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        int all = 0, most = 0;
        for (int i = 0; i < KINDS; i++) {
            all += of[kind][i];
            if (of[kind][i] > most) most = of[kind][i];
        }
        CHECK(most >= all * 0.99);
    }
    for (size_t n = 1; n < 300; n++) CHECK(kinds_of(&model, values[2], n) < kinds);
}

/* Values of one kind: all of them, or such that none is twice as large as it should be. */
static void cut(void) {
    static phrase_sample alone[OF_EACH];
    static kinds_model model;
    for (int i = 0; i < OF_EACH; i++) alone[i] = value_samples[KINDS * i];
    CHECK(kinds_learn(&mem_libc, alone, OF_EACH, 1, &model) == 1);
    uint32_t kinds = kinds_learn(&mem_libc, alone, OF_EACH, 0.25, &model), of[KINDS_MAX] = {0};
    for (int i = 0; i < OF_EACH; i++) of[kinds_of(&model, alone[i].data, alone[i].len)]++;
    for (uint32_t kind = 0; kind < kinds; kind++) CHECK(of[kind] < OF_EACH / 2);
}

static void repeated(void) {
    static phrase_sample twice[2 * RECORDS];
    bool again;
    memcpy(twice, value_samples, sizeof value_samples);
    memcpy(twice + RECORDS, value_samples, sizeof value_samples);
    CHECK(phrase_repeated(&mem_libc, twice, 2 * RECORDS, &again) && again);
    CHECK(phrase_repeated(&mem_libc, value_samples, RECORDS, &again) && !again);
    CHECK(phrase_repeated(&mem_libc, NULL, 0, &again) && !again);
}

static codec *train(const phrase_sample *samples, size_t n) {
    codec_samples s = {key_samples, RECORDS, samples, n, 0};
    codec *c = codec_train(&mem_libc, &s, 1 << 20, 3);
    CHECK(c && c->bytes <= 1 << 20);
    return c;
}

/* Of much that is stored more phrases save what they take; how many bytes dictionaries take. */
static void much_is_stored(void) {
    size_t bytes[2];
    for (int much = 0; much < 2; much++) {
        codec_samples s = {key_samples, RECORDS, value_samples, RECORDS, much ? 1ULL << 32 : 0};
        codec *c = codec_train(&mem_libc, &s, 160 << 10, 3);
        CHECK(c && c->bytes <= 170 << 10);
        bytes[much] = c->bytes;
        codec_free(&mem_libc, c);
    }
    CHECK(bytes[1] > bytes[0] + bytes[0] / 10);
}

/* A training that there is no memory for from some moment on, which is how one is given up, ends
 * without a codec and leaves nothing. */
static void given_up(void) {
    static phrase_sample few[RECORDS / 4];
    codec_samples s = {key_samples, RECORDS, few, RECORDS / 4, 0};
    for (int i = 0; i < RECORDS / 4; i++) few[i] = value_samples[i % (RECORDS / 8)];
    codec *c = NULL;
    for (long most = 0; !c; most = 3 * most + 1) {
        allocations_left = most;
        c = codec_train(counting(), &s, 512 << 10, 3);
        CHECK(c || live_blocks == 0);
    }
    allocations_left = -1;
    CHECK(codec_has_kinds(c));
    codec_free(counting(), c);
    CHECK(live_blocks == 0);
}

/* Values that no codec has seen come back, and take about what their kind's dictionary promised;
 * how many bytes they take in the cheapest way. */
static size_t encoded_bytes(const codec *c, codec_workspace *w, int kind) {
    size_t sum = 0, fast = 0, len;
    double expected = 0;
    char value[600];
    for (int i = 0; i < 500; i++) {
        size_t n = make_value(value, kind);
        for (int pace = CODEC_FAST; pace <= CODEC_CHEAPEST; pace++) {
            codec_value out;
            codec_effort effort = {(codec_pace)pace, 3};
            CHECK(codec_encode_value(c, w, &w->written, effort, value, n, &out));
            const uint8_t *back = codec_decode_value(c, w, out.bytes, out.len, &len);
            CHECK(back && len == n && !memcmp(back, value, n));
            CHECK(codec_value_len(c, out.bytes, out.len) == n);
            if (pace == CODEC_CHEAPEST) {
                sum += out.len;
            } else {
                fast += out.len;
                expected += out.expected_len;
            }
        }
    }
    CHECK(!codec_has_kinds(c) || ((double)fast > 0.9 * expected && (double)fast < 1.1 * expected));
    return sum;
}

/* Several kinds take fewer bytes than with one dictionary for all; one kind has one. */
static void pay(const codec *several, codec_workspace *w) {
    static phrase_sample alone[OF_EACH];
    CHECK(codec_has_kinds(several) && codec_kinds(several) > 1);
    for (int i = 0; i < OF_EACH; i++) alone[i] = value_samples[KINDS * i];
    codec *one = train(alone, OF_EACH);
    CHECK(!codec_has_kinds(one) && codec_kinds(one) == 1);
    phrase_free(one->values[0]);
    one->values[0] = phrase_train(&mem_libc, value_samples, RECORDS, 768 << 10,
                                  PHRASE_RECORDS * (768 << 10), true);
    size_t sums[2] = {0};
    for (int kind = 0; kind < KINDS; kind++) {
        sums[0] += encoded_bytes(several, w, kind);
        sums[1] += encoded_bytes(one, w, kind);
    }
    CHECK((double)sums[0] < 0.99 * (double)sums[1]);
    codec_free(&mem_libc, one);
}

/* A codec is the same when it is loaded; what was written over or cut short is refused, or
 * harmless. */
static void files(const codec *c, codec_workspace *w) {
    size_t n = codec_save_size(c);
    uint8_t *file = malloc(n), *again = malloc(n);
    codec_save(c, file);
    codec *loaded = codec_load(&mem_libc, file, n, 3);
    CHECK(loaded && codec_kinds(loaded) == codec_kinds(c) && codec_save_size(loaded) == n);
    codec_save(loaded, again);
    CHECK(!memcmp(file, again, n));
    CHECK(loaded->bytes < c->bytes + 1024 && c->bytes < loaded->bytes + 1024); /* by libc's whim */
    for (int kind = 0; kind < KINDS; kind++) encoded_bytes(loaded, w, kind);
    codec_free(&mem_libc, loaded);
    size_t model = 0; /* where the kinds begin */
    while (memcmp(file + model, "\xcakd", 3)) model++;
    for (int i = 0; i < 1000; i++) {
        memcpy(again, file, n);
        size_t at = i < 500 ? model + test_random() % 64 : test_random() % n;
        again[at] ^= (uint8_t)(1 << test_random() % 8);
        size_t len = i % 4 ? n : test_random() % n;
        uint8_t *exact = malloc(len + !len);
        memcpy(exact, again, len);
        codec *damaged = codec_load(&mem_libc, exact, len, 3);
        free(exact);
        if (!damaged) continue;
        codec_value out;
        codec_effort effort = {CODEC_FAST, 3};
        size_t back;
        CHECK(codec_encode_value(damaged, w, &w->written, effort, values[i], value_samples[i].len,
                                 &out));
        codec_decode_value(damaged, w, out.bytes, out.len, &back);
        codec_free(&mem_libc, damaged);
    }
    free(file);
    free(again);
}

/* Encodings that are none: of a kind that there is not, or any bytes. */
static void nonsense(const codec *c, codec_workspace *w) {
    uint32_t kinds = codec_kinds(c);
    uint8_t bytes[40];
    size_t len;
    for (int i = 0; i < 100000; i++) {
        size_t n = 1 + test_random() % sizeof bytes;
        for (size_t j = 0; j < n; j++) bytes[j] = (uint8_t)test_random();
        const uint8_t *value = codec_decode_value(c, w, bytes, n, &len);
        if (bytes[0] < 0xfe && codec_lead(bytes[0]) >= kinds) CHECK(!value);
        if (value && len > 0) CHECK(codec_value_len(c, bytes, n) == len);
    }
    uint8_t by_length[] = {0xfe, 2, 0x10, 0x20};
    CHECK(!codec_decode_value(c, w, by_length, sizeof by_length, &len));
}

int main(void) {
    codec_workspace w;
    make_records();
    CHECK(workspace_init(&w, &mem_libc));
    looks();
    cut();
    repeated();
    much_is_stored();
    given_up();
    codec *c = train(value_samples, RECORDS);
    pay(c, &w);
    files(c, &w);
    nonsense(c, &w);
    codec_free(&mem_libc, c);
    workspace_free(&w);
    return test_report("kinds");
}
