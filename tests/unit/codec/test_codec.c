/* A codec learned from short and long values: every value comes back, from a saved copy as well. */
#include "../test.h"
#include "codec/codec_file.h"
#include "codec/codec_train.h"
#include "codec/codecs.h"

#include <string.h>
#include <zstd.h>

#define RECORDS 6000

static char values[RECORDS][1200], keys[RECORDS][32];
static phrase_sample value_samples[RECORDS], key_samples[RECORDS];

/* Letters that nothing tells beforehand, as in test_kinds.c: it is certain that two kinds pay. */
static size_t letters(char *to, char first, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = (char)(first + (char)(test_random() % 16));
    return n;
}

static size_t make_value(char *value, int i) {
    size_t len = (size_t)sprintf(value, "user %d says that ", i);
    if (i % 3) return len + letters(value + len, 'A', 40);
    for (int f = 0; f < 20; f++) {
        len += (size_t)sprintf(value + len, "{\"field_%d\":\"", f);
        len += letters(value + len, 'F', 20);
        len += (size_t)sprintf(value + len, "\",\"other\":%d},", f * f);
    }
    return len;
}

static void comes_back(codecs *all, codec_workspace *w, uint8_t id, codec_value encoded,
                       const void *value, size_t n) {
    size_t len;
    CHECK(encoded.raw_len == n && encoded.len <= n + 2);
    const uint8_t *back =
        codec_decode_value(codecs_get(all, id), w, encoded.bytes, encoded.len, &len);
    CHECK(back && len == n && !memcmp(back, value, n));
    CHECK(codec_value_len(codecs_get(all, id), encoded.bytes, encoded.len) == n);
}

/* A new value, encoded fast, and one that is moved, the cheapest way. */
static void round_trip(codecs *all, codec_workspace *w, uint8_t id, const void *value, size_t n) {
    codec_value encoded;
    codecs_use(all, id);
    CHECK(codecs_encode(all, w, value, n, &encoded));
    comes_back(all, w, id, encoded, value, n);
    CHECK(codecs_encode_moved(all, w, value, n, &encoded));
    comes_back(all, w, id, encoded, value, n);
}

static void all_round_trips(codecs *all, codec_workspace *w, uint8_t id) {
    static uint8_t noise[3 << 20];
    char key[300];
    for (int i = 0; i < RECORDS; i++) {
        round_trip(all, w, id, values[i], value_samples[i].len);
        size_t len =
            codec_encode_key(codecs_get(all, id), keys[i], key_samples[i].len, key, sizeof key);
        char back[300];
        CHECK(len != CODEC_NO_ROOM && len <= key_samples[i].len + 1u);
        CHECK(codec_decode_key(codecs_get(all, id), key, len, back, sizeof back) ==
              key_samples[i].len);
        CHECK(!memcmp(back, keys[i], key_samples[i].len));
    }
    size_t sizes[] = {0, 1, 2, 255, 256, 257, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(noise, 'a', sizes[i]);
        round_trip(all, w, id, noise, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) noise[j] = (uint8_t)test_random();
        round_trip(all, w, id, noise, sizes[i]);
    }
    workspace_trim(w);
}

/* Decodes what may be damaged: no value, or one that can be read to its end, is as long as
 * codec_value_len() says and no longer than a value of its kind may be. Whether there is one. */
static bool decodes(const codec *c, codec_workspace *w, const uint8_t *bytes, size_t n) {
    static uint8_t copy[CODEC_ZSTD_MAX];
    size_t len, expected = codec_value_len(c, bytes, n);
    const uint8_t *value = codec_decode_value(c, w, bytes, n, &len);
    if (!value) return false;
    CHECK(len == expected && len <= sizeof copy);
    memcpy(copy, value, len); /* as far as a sanitizer allows */
    return true;
}

/* Bytes that are no encoding at all but for the first ones, which say of what kind it would be. */
static void nonsense(const codec *c, codec_workspace *w) {
    uint8_t bytes[64];
    long decoded = 0, refused = 0;
    for (int i = 0; i < 20000; i++) {
        size_t n = test_random() % sizeof bytes;
        for (size_t j = 0; j < n; j++) bytes[j] = (uint8_t)test_random();
        if (n > 0 && i % 3) bytes[0] = (uint8_t)(0xfe + i % 2);
        if (n > 1) bytes[1] %= 4;
        *(decodes(c, w, bytes, n) ? &decoded : &refused) += 1;
    }
    CHECK(decoded > 0 && refused > 0);
}

/* Encodings with flipped bits, or cut short. */
static void flipped_bits(codecs *all, codec_workspace *w, uint8_t id) {
    const codec *c = codecs_get(all, id);
    static uint8_t bytes[4096];
    long same = 0, other = 0;
    codecs_use(all, id);
    for (int i = 0; i < RECORDS; i++) {
        codec_value encoded;
        CHECK(codecs_encode(all, w, values[i], value_samples[i].len, &encoded));
        CHECK(encoded.len > 0 && encoded.len <= sizeof bytes);
        memcpy(bytes, encoded.bytes, encoded.len);
        CHECK(decodes(c, w, bytes, encoded.len));
        for (uint64_t flips = test_random() % 4; flips > 0; flips--)
            bytes[test_random() % encoded.len] ^= (uint8_t)(1 << test_random() % 8);
        size_t n = test_random() % 4 ? encoded.len : test_random() % encoded.len, len;
        if (!decodes(c, w, bytes, n)) continue;
        const uint8_t *value = codec_decode_value(c, w, bytes, n, &len);
        bool as_before = len == value_samples[i].len && !memcmp(value, values[i], len);
        *(as_before ? &same : &other) += 1;
    }
    CHECK(same > 0 && other > 0);
}

/* A value of so many bytes, in codes of phrases. Whether it can be read, and its length be told. */
static bool phrases_can_be_read(const codec *c, codec_workspace *w, size_t n) {
    static uint8_t text[CODEC_PHRASE_MAX + 1000], bytes[2 * sizeof text];
    CHECK(n <= sizeof text);
    for (size_t i = 0; i < n; i++) text[i] = (uint8_t)values[i / 60 % RECORDS][i % 60];
    size_t len = phrase_encode(c->values[0], text, n, bytes, sizeof bytes);
    size_t told = codec_value_len(c, bytes, len), got;
    const uint8_t *value = codec_decode_value(c, w, bytes, len, &got);
    CHECK(value ? told == n && got == n && !memcmp(value, text, n) : told == CODEC_NO_ROOM);
    return value != NULL;
}

/* Codes for more than CODEC_PHRASE_MAX bytes are no value, whatever room there is. */
static void too_long(const codec *c, codec_workspace *w) {
    static uint8_t bytes[CODEC_PHRASE_MAX + 3];
    CHECK(!decodes(c, w, bytes, sizeof bytes));
    for (int i = 0; i < 2; i++) {
        CHECK(phrases_can_be_read(c, w, CODEC_PHRASE_MAX));
        CHECK(!phrases_can_be_read(c, w, CODEC_PHRASE_MAX + 1));
        CHECK(!phrases_can_be_read(c, w, CODEC_PHRASE_MAX + 1000));
        CHECK(workspace_reserve(w, &w->decoded, 1 << 20));
    }
    workspace_free(w);
    CHECK(workspace_init(w, &mem_libc));
}

/* Of however much there is, up to exabytes, about as much is looked at. */
static void sampling(void) {
    const uint64_t wanted = 32 << 20;
    CHECK(codec_sample_chance(0, wanted) == CODEC_SAMPLE_ALL);
    CHECK(codec_sample_chance(wanted, wanted) == CODEC_SAMPLE_ALL);
    for (uint64_t bytes = 2 * wanted; bytes < 1ULL << 50; bytes *= 3) {
        double chance = (double)codec_sample_chance(bytes, wanted) / (double)CODEC_SAMPLE_ALL;
        double looked_at = chance * (double)bytes;
        CHECK(looked_at > 0.99 * (double)wanted && looked_at <= (double)wanted);
    }
}

static bool same_value(const codec *c, codec_workspace *w, const codec_value *encoded,
                       const void *value, size_t n) {
    size_t len;
    const uint8_t *back = codec_decode_value(c, w, encoded->bytes, encoded->len, &len);
    return back && len == n && !memcmp(back, value, n);
}

/* A frame that ckv never writes, whatever has been read before. */
static void empty_frame(const codec *c, codec_workspace *w) {
    static uint8_t bytes[] = {0xfe, 0, 0x20, 0, 1, 0, 0};
    codec_value encoded = {.bytes = bytes, .len = sizeof bytes};
    CHECK(same_value(c, w, &encoded, "", 0));
}

static void estimates(codec_workspace *w) {
    static uint8_t bytes[CODEC_ZSTD_MAX];
    uint64_t state = 1;
    const size_t lengths[] = {1, 9000, 100000, sizeof bytes};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i];
        for (size_t k = 0; k < n; k++)
            bytes[k] =
                (uint8_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
        CHECK(codec_estimate_len(w, bytes, n) >= n); /* noise */
        for (size_t k = 0; k < n; k++) bytes[k] = (uint8_t)values[k / 60 % RECORDS][k % 60];
        CHECK(n == 1 || codec_estimate_len(w, bytes, n) < n / 2);
    }
}

/* Long values are read by any codec, those of an earlier version once they have been moved. */
static void long_values(codecs *all, codec_workspace *w, codec *c) {
    static uint8_t text[CODEC_ZSTD_MAX + 2], frame[2 * CODEC_ZSTD_MAX];
    codec_value encoded;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)values[i / 60 % RECORDS][i % 60];
    c->zstd_dict = malloc(c->zstd_dict_len = 20000);
    memcpy(c->zstd_dict, values, 20000);
    CHECK(codec_use_zstd_dict(&mem_libc, c, 3));
    codecs_use(all, (uint8_t)codecs_add(all, c));
    CHECK(!codec_is_common("", 0));
    for (size_t n = CODEC_PHRASE_MAX - 1; n < sizeof text; n = n < 70000 ? n + 1 : n + 170001) {
        CHECK(codecs_encode(all, w, text, n, &encoded));
        CHECK(codec_is_common(encoded.bytes, encoded.len) == (n > CODEC_PHRASE_MAX));
        if (n > CODEC_PHRASE_MAX)
            CHECK(same_value(codecs_get(all, CODEC_RAW), w, &encoded, text, n));
        if (n == CODEC_PHRASE_MAX + 20) n = 69999;
    }
    size_t n = CODEC_ZSTD_MAX;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t len = ZSTD_compress_usingCDict(context, frame, sizeof frame, text, n, c->zstd_write);
    ZSTD_freeCCtx(context);
    CHECK(!ZSTD_isError(len));
    uint8_t *old = frame + 2; /* its prefix in place of the magic */
    old[0] = 0xfe;
    old[1] = 1;
    encoded = (codec_value){.bytes = old, .len = len - 2, .raw_len = n};
    CHECK(!codec_is_common(old, len - 2) && same_value(c, w, &encoded, text, n));
    CHECK(codecs_encode_moved(all, w, text, n, &encoded) && encoded.len < n / 2);
    CHECK(codec_is_common(encoded.bytes, encoded.len));
    CHECK(same_value(codecs_get(all, CODEC_RAW), w, &encoded, text, n));
}

/* Codecs of files before format 4: long values have a dictionary of their own. */
static void by_length(codecs *all, codec_workspace *w, codec *c) {
    static phrase_sample longs[RECORDS];
    size_t n = 0, len;
    for (int i = 0; i < RECORDS; i++)
        if (value_samples[i].len >= CODEC_LONG) longs[n++] = value_samples[i];
    CHECK(codec_kinds(c) == 1);
    c->values[1] = phrase_train(&mem_libc, longs, n, 64 << 10, PHRASE_RECORDS * (64 << 10), true);
    len = codec_save_size(c);
    uint8_t *saved = malloc(len);
    codec_save(c, saved);
    codec_free(&mem_libc, c);
    c = codec_load(&mem_libc, saved, len, 3);
    free(saved);
    CHECK(c && codec_kinds(c) == 2 && !codec_has_kinds(c));
    uint8_t id = (uint8_t)codecs_add(all, c);
    all_round_trips(all, w, id);
    codec_value encoded;
    CHECK(codecs_encode(all, w, longs[0].data, longs[0].len, &encoded));
    CHECK(encoded.bytes[0] == 0xfe && encoded.bytes[1] == 2);
}

/* Bytes of which so many do not occur: codes of the others save 4 or 19%. */
static void hardly_smaller(codecs *all, codec_workspace *w, int bytes, bool encoded) {
    enum { LEN = 500, COUNT = 2000 };
    static uint8_t text[COUNT][LEN];
    static phrase_sample samples[COUNT];
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < LEN; j++) text[i][j] = (uint8_t)(test_random() % (uint32_t)bytes);
        samples[i] = (phrase_sample){text[i], LEN};
    }
    codec_samples s = {NULL, 0, samples, COUNT, 0};
    uint8_t id = (uint8_t)codecs_add(all, codec_train(&mem_libc, &s, 64 << 10, 3));
    codecs_use(all, id);
    for (int i = 0; i < COUNT; i++) {
        codec_value v;
        CHECK(codecs_encode_moved(all, w, text[i], LEN, &v));
        CHECK(encoded ? v.len < LEN * 9 / 10 : v.len >= LEN && v.len <= LEN + 1);
        comes_back(all, w, id, v, text[i], LEN);
    }
}

int main(void) {
    sampling();
    codecs all;
    codec_workspace w;
    for (int i = 0; i < RECORDS; i++) {
        value_samples[i] = (phrase_sample){values[i], (uint32_t)make_value(values[i], i)};
        key_samples[i] = (phrase_sample){keys[i], (uint32_t)sprintf(keys[i], "user:%d", i)};
    }
    codecs_init(&all, &mem_libc, 3);
    CHECK(workspace_init(&w, &mem_libc));
    empty_frame(codecs_get(&all, CODEC_RAW), &w);
    estimates(&w);
    all_round_trips(&all, &w, CODEC_RAW);
    codec_samples s = {key_samples, RECORDS, value_samples, RECORDS, 0};
    codec *c = codec_train(&mem_libc, &s, 2 << 20, 3);
    CHECK(c && codec_kinds(c) > 1);
    CHECK(c->bytes <= 2 << 20);
    size_t n = codec_save_size(c);
    uint8_t *saved = malloc(n);
    codec_save(c, saved);
    codec *again = codec_load(&mem_libc, saved, n, 3);
    CHECK(again != NULL && codec_load(&mem_libc, saved, n - 1, 3) == NULL);
    free(saved);
    all_round_trips(&all, &w, (uint8_t)codecs_add(&all, c));
    all_round_trips(&all, &w, (uint8_t)codecs_add(&all, again));
    nonsense(codecs_get(&all, 1), &w);
    flipped_bits(&all, &w, 1);
    too_long(codecs_get(&all, 1), &w);
    long_values(&all, &w, codec_train(&mem_libc, &s, 64 << 10, 3));
    by_length(&all, &w, codec_train(&mem_libc, &s, 64 << 10, 3));
    hardly_smaller(&all, &w, 206, false);
    hardly_smaller(&all, &w, 90, true);
    codecs_free(&all);
    workspace_free(&w);
    return test_report("codec");
}
