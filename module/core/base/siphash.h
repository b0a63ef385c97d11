/*
 * siphash.h: SipHash-1-3, a keyed 64-bit hash that resists flooding.
 *
 * Source of the algorithm: Aumasson and Bernstein, "SipHash: a fast short-input PRF"
 * (2012), with one compression and three finalisation rounds as in the hash tables of
 * Rust and Python.
 */
#ifndef CKV_SIPHASH_H
#define CKV_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Hash of `n` bytes under a 128-bit secret. */
uint64_t siphash13(const void *bytes, size_t n, const uint64_t secret[2]);

#endif
