/*
 * fuzz_phrase_roundtrip.c: trains on the input cut at its newlines, then every part, and the
 * whole, must come back, from the dictionary and from a saved and loaded copy of it: learned for
 * either of the two ways to encode, and encoded in either, with a lead of up to three bits.
 */
#include "core/phrase/phrase.h"

#include <stdlib.h>
#include <string.h>

#define PARTS 256

/* Either of the two ways to encode. */
static size_t encode(const phrase_dict *d, bool cheapest, const void *bytes, size_t n,
                     uint8_t *encoded, size_t cap) {
    if (!cheapest) return phrase_encode(d, bytes, n, encoded, cap);
    void *scratch = malloc(phrase_scratch_bytes());
    size_t len = phrase_encode_cheapest(d, scratch, bytes, n, encoded, cap);
    free(scratch);
    return len;
}

static void check(const phrase_dict *d, const phrase_dict *copy, bool cheapest, const void *bytes,
                  size_t n) {
    uint8_t *encoded = malloc(3 * n + 1), *back = malloc(n + 1);
    size_t len = encode(d, cheapest, bytes, n, encoded, 3 * n + 1);
    if (len == PHRASE_NO_ROOM || (len > 0 && encoded[0] >= 0xfe)) abort();
    if (phrase_decoded_len(copy, encoded, len) != n) abort();
    if (phrase_decode(copy, encoded, len, back, n) != n || memcmp(back, bytes, n) != 0) abort();
    if (len > 0 &&
        encode(copy, cheapest, bytes, n, back, len - 1 < n ? len - 1 : n) != PHRASE_NO_ROOM &&
        len - 1 < n)
        abort();
    free(encoded);
    free(back);
}

static void learn_and_check(const uint8_t *data, size_t n, bool cheapest) {
    phrase_sample parts[PARTS];
    size_t count = 0, from = 0;
    for (size_t i = 0; i < n && count < PARTS; i++) {
        if (data[i] != '\n') continue;
        parts[count++] = (phrase_sample){data + from, (uint32_t)(i - from)};
        from = i + 1;
    }
    if (count < PARTS) parts[count++] = (phrase_sample){data + from, (uint32_t)(n - from)};
    phrase_dict *d =
        phrase_train(&mem_libc, parts, count, 1 << 20, PHRASE_RECORDS * (1 << 20), cheapest);
    if (!d) abort();
    size_t saved_len = phrase_save(d, NULL, 0);
    uint8_t *saved = malloc(saved_len);
    phrase_save(d, saved, saved_len);
    phrase_dict *copy = phrase_load(&mem_libc, saved, saved_len);
    if (!copy) abort();
    unsigned lead = n % 4;
    phrase_set_lead(d, lead ? (1u << lead) - 2 : 0, lead);
    phrase_set_lead(copy, lead ? (1u << lead) - 2 : 0, lead);
    for (int way = 0; way < 2; way++) {
        for (size_t i = 0; i < count; i++) check(d, copy, way, parts[i].data, parts[i].len);
        check(d, copy, way, data, n);
    }
    free(saved);
    phrase_free(copy);
    phrase_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    learn_and_check(data, n, false);
    learn_and_check(data, n, true);
    return 0;
}
