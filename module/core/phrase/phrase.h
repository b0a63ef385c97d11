/*
 * phrase.h: a codec for short records.
 *
 * General compressors find repetitions inside what they are given; a record of 75 bytes has
 * none. A phrase dictionary is trained once on a sample of the records and then turns each
 * record on its own into fewer bytes, and back: any record can be read without the others.
 *
 *      phrase_sample samples[] = {{"hello world", 11}, ...};
 *      phrase_dict *d = phrase_train(&mem_libc, samples, n, 1 << 20, 32 << 20, false);
 *      size_t len = phrase_encode(d, record, record_len, out, sizeof out);
 *      size_t back = phrase_decode(d, out, len, record, sizeof record);
 *      phrase_free(d);
 *
 * The dictionary holds up to 65,536 phrases of 1 to 64 bytes, each single byte among them, so
 * that everything can be encoded. A record is cut into phrases, and each phrase is written as a
 * Huffman code that depends on what kind of phrase stood before it; what a record repeats of its
 * own is written as a copy. After OnPair (arXiv 2508.02280), which writes 16 bits for each phrase.
 *
 * What the caller may rely on:
 * - An encoding carries neither its length nor an end mark; keep its length.
 * - Its first byte is never 0xfe or 0xff: the caller can use them as escapes of its own.
 * - Nothing encodes to no bytes, if there is no lead. Equal records encode to equal bytes under one
 *   dictionary, by either of the two functions that encode.
 * - A dictionary does not change once it is built; any number of threads may use it at a time.
 */
#ifndef CKV_PHRASE_H
#define CKV_PHRASE_H

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

#define PHRASE_NO_ROOM ((size_t)-1) /* the result does not fit into the buffer */
#define PHRASE_CORRUPT ((size_t)-2) /* the bytes are no encoding */

typedef struct phrase_dict phrase_dict;

typedef struct phrase_sample {
    const void *data;
    uint32_t len;
} phrase_sample;

/* For each byte that a dictionary may take, so many of records are stored, or more. */
#define PHRASE_RECORDS 33

/* What codes of a record of n bytes may take, or it is better kept as it is: a longer one has to
 * save a sixteenth. (To read what zlib had compressed took 2.6 times a string's time, for 4% of
 * it.) */
static inline size_t phrase_most(size_t n) {
    return n < 128 ? n : n - n / 16;
}

/* Nobody who chooses records should know this: what is learned, encoded and decoded is the same
 * under every secret, but who knows it can make that slow. To be set before any other thread is
 * there, for the dictionaries that are made from then on. */
void phrase_set_secret(const uint64_t secret[2]);

/*
 * Learns a dictionary from `n` samples, which are only read. Up to 16 MB of samples are looked at.
 * `max_bytes` is what phrase_bytes() may be, or a 16th more if that makes a dictionary that fills
 * what the allocator sets aside for it (mem_class_near); it is exceeded by more only if it is below
 * what the smallest dictionary takes, about 12 KB. Not all of it is taken where that saves less
 * than it takes, of `stored` bytes of records. Equal samples give equal
 * dictionaries. `cheapest`: records will be encoded the cheapest way, and may be copies of
 * themselves in part. NULL: out of memory.
 */
phrase_dict *phrase_train(const mem *m, const phrase_sample *samples, size_t n, size_t max_bytes,
                          uint64_t stored, bool cheapest);

/* Tells whether many of such samples come again: phrase_train() learns them whole then if it has
 * the room. False: out of memory. */
bool phrase_repeated(const mem *m, const phrase_sample *samples, size_t n, bool *repeated);

void phrase_free(phrase_dict *d);

/* From now on all encodings begin with the lowest `len` bits of `lead`, by which the caller knows
 * the dictionary: 7 at most, one of them 0. To be said before it is used; it is not
 * saved with the dictionary, and decoding skips it. */
void phrase_set_lead(phrase_dict *d, uint32_t lead, unsigned len);

/* Memory that the dictionary takes, as its allocator counts it. */
size_t phrase_bytes(const phrase_dict *d);

/* Whether its encodings have copies; programs that knew none cannot read it then. */
bool phrase_has_copies(const phrase_dict *d);

/* Encoded / raw bytes of samples like those it was trained on, in the fast way; 1 if there were
 * none. */
double phrase_expected_ratio(const phrase_dict *d);

/* Measures that on n other samples, if there are any: with the lead. False: out of memory. */
bool phrase_rate(phrase_dict *d, phrase_sample *samples, size_t n);

/* Encodes n bytes into at most `cap` bytes. Returns how many, or PHRASE_NO_ROOM as soon as it is
 * clear that they do not fit. */
size_t phrase_encode(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap);

/* The same in the cheapest way that there is, or nearly, several times slower. `scratch` is room of
 * phrase_scratch_bytes(), aligned as malloc() does. */
size_t phrase_encode_cheapest(const phrase_dict *d, void *scratch, const void *src, size_t n,
                              void *dst, size_t cap);
size_t phrase_scratch_bytes(void);

/* Decodes n bytes into at most `cap` bytes. Returns how many, PHRASE_NO_ROOM or PHRASE_CORRUPT;
 * what dst[0, cap) holds beyond the result, or after an error, is undefined. */
size_t phrase_decode(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap);

/* How many bytes phrase_decode() would give, or PHRASE_CORRUPT. */
size_t phrase_decoded_len(const phrase_dict *d, const void *src, size_t n);

/* Writes the dictionary in its portable form. Returns how many bytes that is, also if `cap` is
 * less: then nothing is written. */
size_t phrase_save(const phrase_dict *d, void *dst, size_t cap);

/* Reads what phrase_save() wrote, trusting nothing of it. NULL: no dictionary, or out of memory. */
phrase_dict *phrase_load(const mem *m, const void *bytes, size_t n);

#endif
