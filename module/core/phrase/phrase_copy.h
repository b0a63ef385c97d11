/*
 * phrase_copy.h: copies of what stands earlier in the same record.
 *
 * A record repeats what no dictionary can know: a login in fifteen URLs. The last phrases of a
 * dictionary that has copies are pseudo-phrases without a text, each a group of its own; all are of
 * one class, the last. What stands behind their codes tells what they stand for:
 *
 *      copy k, k = 0 .. 7       [code][length, k bits][source]
 *      the same copy again, 8   [code]                            same source, same length
 *
 *      k         0    1     2      3       4       5        6         7
 *      length    4   5-6   7-10  11-18   19-34   35-66   67-130   131-258
 *
 * The source is where the bytes to copy begin, from the record's start, in as many bits as the last
 * place before the copy needs; it is among the first 64 KB. A copy may run into what it writes.
 */
#ifndef CKV_PHRASE_COPY_H
#define CKV_PHRASE_COPY_H

#include <stddef.h>
#include <stdint.h>

#define COPY_CLASSES     8
#define COPY_AGAIN       8 /* number of the pseudo-phrase */
#define COPY_CODES       9 /* how many pseudo-phrases there are */
#define COPY_LEN_MIN     4u
#define COPY_LEN_MAX     258u
#define COPY_SOURCE_BITS 16
#define COPY_SOURCES     (1u << COPY_SOURCE_BITS)

typedef struct phrase_copy {
    uint32_t from, len; /* len 0: there was none yet */
} phrase_copy;

/* The number of the pseudo-phrase for a copy of so many bytes. */
static inline unsigned copy_class(uint32_t len) {
    return 31u - (unsigned)__builtin_clz(len - (COPY_LEN_MIN - 1));
}

/* The least length of a class. */
static inline uint32_t copy_shortest(unsigned class) {
    return COPY_LEN_MIN - 1 + (1u << class);
}

/* Bits of a source, for a copy to the place `at` > 0 of the record. */
static inline unsigned copy_source_bits(size_t at) {
    if (at >= COPY_SOURCES) return COPY_SOURCE_BITS;
    return at < 2 ? 0 : 32u - (unsigned)__builtin_clz((uint32_t)at - 1);
}

/* Of a hash table of the places of a record of n bytes: log2 of its size, at most `most`. */
static inline unsigned copy_table_bits(size_t n, unsigned most) {
    unsigned bits = n < 32 ? 5 : 64u - (unsigned)__builtin_clzll(n);
    return bits < most ? bits : most;
}

/* What stands behind the code of a copy to the place `at`: that many bits, and which. */
static inline unsigned copy_bits(size_t at, uint32_t len) {
    return copy_class(len) + copy_source_bits(at);
}
static inline uint32_t copy_tail(size_t at, phrase_copy copy) {
    return (copy.len - copy_shortest(copy_class(copy.len))) << copy_source_bits(at) | copy.from;
}

#endif
