/* zstd joins in where it saves more than its dictionary and tables take, and not where they would
 * cost more. */
#include "../test.h"
#include "codec/codec_train.h"

#include <string.h>

#define WORDS   1500
#define VALUES  1001
#define RECORDS 8008 /* each value comes again */
#define BYTES   4000

static char words[WORDS][12], values[VALUES][BYTES];
static phrase_sample samples[RECORDS];

static void make_words(void) {
    for (int i = 0; i < WORDS; i++) {
        size_t len = 3 + test_random() % 7;
        for (size_t j = 0; j < len; j++) words[i][j] = (char)('a' + test_random() % 20);
    }
}

/* Words in no order: zstd finds little that phrases do not know, but values that come again. */
static size_t make_value(char *value) {
    size_t len = 0, wanted = (size_t)16 << test_random() % 8;
    while (len < wanted) len += (size_t)sprintf(value + len, "%s ", words[test_random() % WORDS]);
    return len;
}

/* Bytes that a codec makes of all values. */
static double encoded(const codec *c, codec_workspace *w) {
    codec_effort cheapest = {CODEC_CHEAPEST, 3};
    double bytes = 0;
    for (int i = 0; i < RECORDS; i++) {
        codec_value value;
        CHECK(
            codec_encode_value(c, w, &w->moved, cheapest, samples[i].data, samples[i].len, &value));
        bytes += (double)value.len;
    }
    return bytes;
}

/* What zstd saves of the data that such a codec is for, without what it takes; 0: it is not used.
 */
static double gain(size_t max_bytes) {
    codec_samples s = {NULL, 0, samples, RECORDS, 0};
    codec_workspace w;
    codec *c = codec_train(&mem_libc, &s, max_bytes, 3);
    CHECK(c && workspace_init(&w, &mem_libc));
    double raw = 0, saved = 0, bytes = (double)c->bytes;
    for (int i = 0; i < RECORDS; i++) raw += samples[i].len;
    if (c->zstd_classes) {
        double with = encoded(c, &w);
        codec_forget_zstd_dict(&mem_libc, c);
        c->zstd_classes = 0;
        saved = (encoded(c, &w) - with) / raw * PHRASE_RECORDS * (double)max_bytes -
                (bytes - (double)c->bytes);
    }
    workspace_free(&w);
    codec_free(&mem_libc, c);
    return saved;
}

int main(void) {
    make_words();
    for (int i = 0; i < RECORDS; i++) {
        char *value = values[i % VALUES];
        samples[i] =
            (phrase_sample){value, (uint32_t)(i < VALUES ? make_value(value) : strlen(value))};
    }
    CHECK(gain(800 << 10) >= 0);
    return test_report("codec_zstd");
}
