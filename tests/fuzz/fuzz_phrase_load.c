/*
 * fuzz_phrase_load.c: any bytes as a saved dictionary, the bytes after it as encodings under it.
 *
 *      [length of the saved dictionary, 2 bytes][saved dictionary][encoding ...]
 *
 * Random bytes are hardly ever a dictionary, so with an odd length the saved dictionary is a valid
 * one in which the bytes are written over: [place, 2 bytes][byte] each.
 */
#include "core/phrase/phrase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *scratch;
static uint8_t *valid;
static size_t valid_len;

static void make_valid(void) {
    static char text[400][64];
    phrase_sample samples[400];
    uint64_t state = 1;
    for (unsigned i = 0; i < 400; i++) {
        char name[12];
        for (unsigned j = 0; j < sizeof name; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            name[j] = (char)('a' + (state >> 33) % 26);
        }
        int len = snprintf(text[i], sizeof text[i], "name %.12s, url %.12s, home %.12s", name, name,
                           name);
        samples[i] = (phrase_sample){text[i], (uint32_t)len};
    }
    phrase_dict *d =
        phrase_train(&mem_libc, samples, 400, 64 << 10, PHRASE_RECORDS * (64 << 10), true);
    if (!phrase_has_copies(d)) abort();
    valid_len = phrase_save(d, NULL, 0);
    valid = malloc(valid_len);
    phrase_save(d, valid, valid_len);
    phrase_free(d);
    scratch = malloc(phrase_scratch_bytes());
}

static void use(const phrase_dict *d, const uint8_t *bytes, size_t n) {
    uint8_t out[512], back[512];
    size_t len = phrase_decoded_len(d, bytes, n), got = phrase_decode(d, bytes, n, out, 300);
    if (len <= 300 && got != len) abort();
    if (len > 300 && len != PHRASE_CORRUPT && got != PHRASE_NO_ROOM) abort();
    size_t plain = n < 100 ? n : 100;
    got = phrase_encode(d, bytes, plain, out, 300);
    if (got == PHRASE_NO_ROOM || phrase_decode(d, out, got, back, sizeof back) != plain ||
        memcmp(back, bytes, plain) != 0)
        abort();
    got = phrase_encode_cheapest(d, scratch, bytes, plain, out, 300);
    if (got == PHRASE_NO_ROOM || phrase_decode(d, out, got, back, sizeof back) != plain ||
        memcmp(back, bytes, plain) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!valid) make_valid();
    if (n < 2) return 0;
    size_t len = data[0] | (size_t)data[1] << 8;
    if (len > n - 2) len = n - 2;
    phrase_dict *d;
    if (data[0] & 1) {
        uint8_t *damaged = malloc(valid_len);
        memcpy(damaged, valid, valid_len);
        for (size_t i = 0; i + 3 <= len; i += 3)
            damaged[(data[2 + i] | (size_t)data[3 + i] << 8) % valid_len] = data[4 + i];
        d = phrase_load(&mem_libc, damaged, valid_len);
        free(damaged);
    } else {
        d = phrase_load(&mem_libc, data + 2, len);
    }
    if (!d) return 0;
    use(d, data + 2 + len, n - 2 - len);
    phrase_free(d);
    return 0;
}
