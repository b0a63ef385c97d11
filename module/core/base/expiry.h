/*
 * expiry.h: the moment when a record expires, in two bytes.
 *
 *       15      12 11                     0
 *      +----------+------------------------+
 *      |  unit k  |         count          |
 *      +----------+------------------------+
 *
 * Time is counted in ticks of 1/512 s since 1970. A unit is 4^k ticks. As with the server's own
 * keys, a record is there up to the ms of its time, and has expired in the next one. The count is
 * that one in that unit, rounded up, modulo 4096. A TTL takes the smallest unit whose
 * window of 4095 units holds it, so a record never expires early, and late by at most
 * 1/1024 of its TTL, or by 2 ms for a TTL under 8 s. Range: 2 ms to 272 years; what is further
 * away is kept as the longest there is.
 *
 * So a code says that the time that was asked for lies within one unit. A record expires at the
 * upper end of it, never early; who asks for its TTL is told the lower end, never more than was
 * asked for.
 *
 * A code means something only next to a base time: the owner (a page) keeps one, no later
 * than the expiry of any code that it holds, and no live code lies further than 4095 of
 * its units behind it. Whoever moves the base calls expiry_rebase() on every code first.
 */
#ifndef CKV_EXPIRY_H
#define CKV_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#define EXPIRY_NONE   0xffff             /* never expires */
#define EXPIRY_PAST   0xfffe             /* has expired, some time before the base */
#define EXPIRY_WINDOW 4095               /* units */
#define EXPIRY_NEVER  INT64_MAX          /* ms: what expiry_ms() returns for EXPIRY_NONE */
#define EXPIRY_KEPT   (EXPIRY_NEVER - 1) /* no time either: a record keeps the one it has */
/* The longest TTL, ms: a longer one is cut to it. One unit is lost to rounding, two codes are
 * reserved. */
#define EXPIRY_TTL_MAX_MS ((int64_t)((EXPIRY_WINDOW - 4) * (1LL << 30) / 512 * 1000))

/* Ticks since 1970 of a time in ms, rounded down. */
uint64_t expiry_ticks(int64_t ms);

/* The code of an absolute time `at_ms` that is set at `now_ms`. EXPIRY_NEVER gives EXPIRY_NONE,
 * a time that is not after now EXPIRY_PAST. */
uint16_t expiry_code(int64_t at_ms, int64_t now_ms);

/* Whether a code that is right next to `base` means the same next to `other` (both in ticks). */
bool expiry_fits(uint16_t code, uint64_t base, uint64_t other);

/* The last ms, absolute, in which a record of this code is there. EXPIRY_NONE: EXPIRY_NEVER.
 * EXPIRY_PAST: 0. */
int64_t expiry_ms(uint16_t code, uint64_t base);

/* What has expired at one moment, for who asks it of many codes next to one base. */
typedef struct expiry_moment {
    uint16_t from[16];   /* the base's count, of each unit */
    uint16_t passed[16]; /* how many counts from there on have passed */
} expiry_moment;

expiry_moment expiry_moment_of(int64_t now_ms, uint64_t base);

/* Whether expiry_ms() of the code is before the moment. */
static inline bool expiry_passed(const expiry_moment *m, uint16_t code) {
    unsigned unit = code >> 12;
    if (code >= EXPIRY_PAST) return code == EXPIRY_PAST;
    return ((code - m->from[unit]) & EXPIRY_WINDOW) < m->passed[unit];
}

/* What may be told: no later than any time that gets this code when it is asked for, and at most
 * one unit earlier (three for one code of the largest unit). */
int64_t expiry_told_ms(uint16_t code, uint64_t base);

/* The latest base up to `limit` from which this code, next to `base`, has not passed; `limit` for
 * one that has passed already or never will. */
uint64_t expiry_base_before(uint16_t code, uint64_t base, uint64_t limit);

/* The same moment as seen from another base; EXPIRY_PAST if it is not after it. A base that
 * moves back (the clock was set back) may need a coarser unit: later by at most 1/1024 of the
 * new distance. */
uint16_t expiry_rebase(uint16_t code, uint64_t base, uint64_t new_base);

#endif
