/*
 * key_shapes.h: which keys may have a record, by their shapes: an answer in the time that it takes
 * to read the key.
 *
 * The shape of a key is the key with every token that has a digit replaced by one mark. A token is
 * a run of letters, digits and bytes from 0x80 on.
 *
 *      user:123:name    user:#:name              bits
 *      user:9f3:name    user:#:name  --hash-->  +---+---+---+---+
 *      queue:mail       queue:mail   --hash-->  | 0 | 1 | 0 | 1 | ... KEY_SHAPES_BITS of them
 *                                               +---+---+---+---+
 *
 * Applications name their keys by few patterns, and those of strings differ mostly from those of
 * other types. "No" is certain. "Yes" may be wrong, and asks for a look-up: another key had the
 * shape, or another shape the bit. Where more than half of the bits are set, as keys without digits
 * in them would set, nearly all would be wrong, and every answer is yes.
 *
 * Nothing is ever taken out but all at once, when there are no records. The bits are also in files,
 * where pages do not tell their keys, so that what a shape is and its hash never change.
 */
#ifndef CKV_KEY_SHAPES_H
#define CKV_KEY_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_SHAPES_BITS  (1u << 16)
#define KEY_SHAPES_BYTES (KEY_SHAPES_BITS / 8)

/* At first nothing is kept. */
typedef struct key_shapes {
    bool kept;  /* somebody asks */
    bool whole; /* every record's shape is among the bits; otherwise every answer is yes */
    uint32_t set;
    uint8_t bits[KEY_SHAPES_BYTES];
} key_shapes;

/* From now on shapes are kept; `no_records`: there are none that would be missed. */
void key_shapes_keep(key_shapes *s, bool no_records);
void key_shapes_stop(key_shapes *s);
/* There are no records. */
void key_shapes_clear(key_shapes *s);

void key_shapes_add(key_shapes *s, const void *key, size_t len);
/* Whether a key may have a record. */
bool key_shapes_may_have(const key_shapes *s, const void *key, size_t len);

/* The bytes for a file, KEY_SHAPES_BYTES of them; 0: there is nothing to be told. */
size_t key_shapes_save(const key_shapes *s, const uint8_t **bytes);
/* Adds those of a file; of 0 bytes all is possible. False: they are none. */
bool key_shapes_load(key_shapes *s, const uint8_t *bytes, size_t n);

#endif
