/*
 * fuzz_phrase_load.c: any bytes as a saved dictionary, the bytes after it as encodings under it.
 *
 *      [length of the saved dictionary, 2 bytes][saved dictionary][encoding ...]
 *
 * Random bytes are hardly ever a dictionary, so with an odd length the saved dictionary is a valid
 * one in which the bytes are written over: [place, 2 bytes][byte] each.
 */
#include "core/phrase/phrase.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *valid;
static size_t valid_len;

static void make_valid(void) {
    static char text[400][32];
    phrase_sample samples[400];
    for (unsigned i = 0; i < 400; i++) {
        for (unsigned j = 0; j < 32; j++) text[i][j] = "abcab xyz."[(i * 7 + j * j) % 10];
        samples[i] = (phrase_sample){text[i], 32};
    }
    phrase_dict *d = phrase_train(&mem_libc, samples, 400, 64 << 10);
    valid_len = phrase_save(d, NULL, 0);
    valid = malloc(valid_len);
    phrase_save(d, valid, valid_len);
    phrase_free(d);
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
