/*
 * hash_slot.h: Redis Cluster's hash slots.
 *
 * The slot of a key is the CRC16 (XMODEM: polynomial 0x1021, from zero, not reflected) of the key,
 * modulo 16384. If the key has a part in braces that is not empty, only what is between the first
 * '{' and the next '}' counts:
 *
 *      user:{4711}:name
 *            ^^^^
 *
 * The tag of a slot is the smallest number that hashes to it, written in decimal.
 */
#ifndef CKV_HASH_SLOT_H
#define CKV_HASH_SLOT_H

#include <stddef.h>
#include <stdint.h>

#define HASH_SLOTS 16384

uint32_t hash_slot_of_key(const void *key, size_t len);

/* Where the part that counts ends: behind the brace, bytes; keys that begin with these bytes are of
 * one slot. 0: all of the key counts. */
size_t hash_slot_tag_end(const uint8_t *key, size_t len);

/* Finds the tags of all slots; takes some 3 ms. */
void hash_slot_find_tags(uint32_t tags[HASH_SLOTS]);

#endif
