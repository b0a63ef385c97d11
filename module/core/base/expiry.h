/*
 * expiry.h: the moment when a record expires, in two bytes.
 *
 *       15      12 11                     0
 *      +----------+------------------------+
 *      |  unit k  |         count          |
 *      +----------+------------------------+
 *
 * Time is counted in ticks of 1/512 s since 1970. A unit is 4^k ticks. The count is the
 * expiry time in that unit, rounded up, modulo 4096. A TTL takes the smallest unit whose
 * window of 4095 units holds it, so a record never expires early, and late by at most
 * 1/1024 of its TTL, or by 2 ms for a TTL under 8 s. Range: 2 ms to 272 years.
 *
 * A code means something only next to a base time: the owner (a page) keeps one, no later
 * than the expiry of any code that it holds, and no live code lies further than 4095 of
 * its units behind it. Whoever moves the base calls expiry_rebase() on every code first.
 */
#ifndef CKV_EXPIRY_H
#define CKV_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#define EXPIRY_NONE   0xffff    /* never expires */
#define EXPIRY_PAST   0xfffe    /* has expired, some time before the base */
#define EXPIRY_WINDOW 4095      /* units */
#define EXPIRY_NEVER  INT64_MAX /* ms: what expiry_ms() returns for EXPIRY_NONE */
/* The longest TTL, ms. One unit is lost to rounding, two codes are reserved. */
#define EXPIRY_TTL_MAX_MS ((int64_t)((EXPIRY_WINDOW - 4) * (1LL << 30) / 512 * 1000))

/* Ticks since 1970 of a time in ms, rounded down. */
uint64_t expiry_ticks(int64_t ms);

/* The code of an absolute time `at_ms` that is set at `now_ms`. EXPIRY_NEVER gives EXPIRY_NONE,
 * a time that is not after now EXPIRY_PAST. The caller keeps at_ms - now_ms <= EXPIRY_TTL_MAX_MS.
 */
uint16_t expiry_code(int64_t at_ms, int64_t now_ms);

/* Whether a code that is right next to `base` means the same next to `other` (both in ticks). */
bool expiry_fits(uint16_t code, uint64_t base, uint64_t other);

/* The absolute time of a code, ms, rounded up. EXPIRY_NONE: EXPIRY_NEVER. EXPIRY_PAST: 0. */
int64_t expiry_ms(uint16_t code, uint64_t base);

/* The time that a record with this expiry really expires. Whoever sets that time later, elsewhere,
 * sets the same: it is what replicas and files are told. A past time stays as it is. */
int64_t expiry_kept_ms(int64_t at_ms, int64_t now_ms);

/* The same moment as seen from another base; EXPIRY_PAST if it is not after it. A base that
 * moves back (the clock was set back) may need a coarser unit: later by at most 1/1024 of the
 * new distance. */
uint16_t expiry_rebase(uint16_t code, uint64_t base, uint64_t new_base);

#endif
