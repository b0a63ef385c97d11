/*
 * huffman.h: lengths of an optimal prefix code whose codes have a length limit.
 */
#ifndef CKV_HUFFMAN_H
#define CKV_HUFFMAN_H

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

#define HUFFMAN_LEN_MAX 24

/*
 * Writes to `lens` the code lengths, 1 to `limit` bits, that make the sum of
 * weight[i] * lens[i] as small as a prefix code can. `weight` ascends, so `lens` descends;
 * `limit` is at most HUFFMAN_LEN_MAX. `reserved` is the length of one more code, at most `limit`,
 * that the caller keeps for itself. The code is complete: the 2^-lens and 2^-reserved add up to 1.
 *
 * Needs 2^reserved <= n <= 2^(limit - 1). False: out of memory. Takes about n * limit / 4 + 32 * n
 * bytes while it works.
 */
bool huffman_lengths(const mem *m, const uint64_t *weight, uint32_t n, unsigned limit,
                     unsigned reserved, uint8_t *lens);

#endif
