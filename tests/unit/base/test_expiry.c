/* Two-byte expiry: never early, late by at most 1/1024 of the TTL (2 ms below 8 s). */
#include "../test.h"
#include "base/expiry.h"

static void check(int64_t now, int64_t ttl) {
    uint64_t base = expiry_ticks(now);
    uint16_t code = expiry_code(now + ttl, now);
    int64_t late = expiry_ms(code, base) - (now + ttl);
    CHECK(code != EXPIRY_NONE);
    CHECK(late >= 0);
    expiry_moment then = expiry_moment_of(now + ttl, base),
                  later = expiry_moment_of(now + ttl + late + 1, base);
    CHECK(!expiry_passed(&then, code) && expiry_passed(&later, code));
    CHECK(late <= 2 + ttl / 1000);
    int64_t told = expiry_told_ms(code, base);
    CHECK(told <= now + ttl);
    CHECK(told >= now + ttl - 3 - ttl / 1000 || code == 0xf000); /* which stands for three counts */
}

static void random_ttls(void) {
    for (int i = 0; i < 200000; i++) {
        int64_t now = 1700000000000 + (int64_t)(test_random() % 100000000000ULL);
        check(now, 1 + (int64_t)(test_random() % (1ULL << (1 + test_random() % 42))));
    }
    check(1700000000000, EXPIRY_TTL_MAX_MS);
}

/* All codes next to a base that is a while ago, or ahead of the clock. */
static void moments(void) {
    for (int i = 0; i < 200; i++) {
        int64_t now = 1700000000000 + (int64_t)(test_random() % 100000000000ULL);
        int64_t ago = (int64_t)(test_random() % (1ULL << (1 + test_random() % 44))) - 3;
        uint64_t base = expiry_ticks(now - ago);
        expiry_moment m = expiry_moment_of(now, base);
        for (uint32_t code = 0; code <= UINT16_MAX; code++)
            CHECK(expiry_passed(&m, (uint16_t)code) == (expiry_ms((uint16_t)code, base) < now));
    }
}

/* A code is carried from base to base, as a page does it, until it has expired. */
static void rebases(void) {
    for (int i = 0; i < 2000; i++) {
        int64_t now = 1700000000000, ttl = 1 + (int64_t)(test_random() % (1ULL << 36));
        uint64_t base = expiry_ticks(now);
        uint16_t code = expiry_code(now + ttl, now);
        int64_t at = expiry_ms(code, base);
        while (now < at) {
            CHECK(expiry_ms(code, base) == at);
            now += 1 + (int64_t)(test_random() % (uint64_t)(ttl / 3 + 2));
            uint64_t next = expiry_ticks(now);
            code = expiry_rebase(code, base, next);
            base = next;
        }
        CHECK(code == EXPIRY_PAST || expiry_ms(code, base) <= now + 2);
    }
}

/* The clock is set back: later by no more than 1/1024 of the distance that is new. */
static void clock_back(void) {
    for (int i = 0; i < 20000; i++) {
        int64_t now = 1700000000000, ttl = 1 + (int64_t)(test_random() % (1ULL << 32));
        uint64_t base = expiry_ticks(now), back = expiry_ticks(now - 3600000);
        uint16_t code = expiry_code(now + ttl, now);
        int64_t at = expiry_ms(code, base),
                moved = expiry_ms(expiry_rebase(code, base, back), back);
        CHECK(moved >= at && moved - at <= 2 + (ttl + 3600000) / 1000);
    }
}

/* Set back to any time, as on a host whose clock begins in 1970, and right again: never early, but
 * where it would be further away than can be kept. */
static void clock_far_back(void) {
    for (int i = 0; i < 200000; i++) {
        int64_t now = 1700000000000, ttl = 1 + (int64_t)(test_random() % EXPIRY_TTL_MAX_MS);
        uint64_t base = expiry_ticks(now), back = test_random() % base;
        uint16_t code = expiry_code(now + ttl, now), moved = expiry_rebase(code, base, back);
        int64_t at = expiry_ms(code, base), then = expiry_ms(moved, back);
        int64_t farthest = (int64_t)(back * 1000 / 512) + EXPIRY_TTL_MAX_MS / 100 * 99;
        CHECK(then >= at || then >= farthest);
    }
}

/* A base from which a code has not passed: as late as it can be, and the code means the same. */
static void base_before(void) {
    for (int i = 0; i < 100000; i++) {
        int64_t now = 1700000000000, ttl = 1 + (int64_t)(test_random() % (1ULL << 36));
        uint64_t base = expiry_ticks(now), late = base + test_random() % (1ULL << 36);
        uint16_t code = expiry_code(now + ttl, now);
        uint64_t held = expiry_base_before(code, base, late);
        bool past = expiry_rebase(code, base, late) == EXPIRY_PAST;
        uint16_t moved = expiry_rebase(code, base, held);
        CHECK(held <= late && (held < late) == past && moved != EXPIRY_PAST);
        CHECK(expiry_ms(moved, held) == expiry_ms(code, base));
        CHECK(!past || expiry_rebase(code, base, held + 1) == EXPIRY_PAST);
    }
    CHECK(expiry_base_before(0, 0, 7) == 0);
    CHECK(expiry_base_before(EXPIRY_PAST, 5, 7) == 7 && expiry_base_before(EXPIRY_NONE, 5, 7) == 7);
}

/* The unit of years, where two counts are taken and a third stands for their times as well. */
static void told_of_long_ones(void) {
    for (int64_t years = 70; years < 272; years++) {
        for (int i = 0; i < 500; i++) {
            int64_t now = 1700000000000 + (int64_t)(test_random() % (1ULL << 43));
            int64_t at = now + years * 31536000000 + (int64_t)(test_random() % 31536000000ULL);
            if (at - now > EXPIRY_TTL_MAX_MS) continue;
            uint16_t code = expiry_code(at, now);
            CHECK(expiry_told_ms(code, expiry_ticks(now)) <= at);
            CHECK(expiry_ms(code, expiry_ticks(now)) >= at);
        }
    }
}

/* Longer than the longest is the longest. */
static void too_long(void) {
    const int64_t now = 1700000000000, far[] = {1000LL << 40, INT64_MAX / 2, INT64_MAX - 1};
    uint16_t longest = expiry_code(now + EXPIRY_TTL_MAX_MS, now);
    for (int i = 0; i < 3; i++) {
        CHECK(expiry_code(far[i], now) == longest);
        CHECK(expiry_ms(longest, expiry_ticks(now)) >= now + EXPIRY_TTL_MAX_MS);
    }
    CHECK(expiry_code(INT64_MIN, now) == EXPIRY_PAST);
}

static void special_codes(void) {
    CHECK(expiry_code(EXPIRY_NEVER, 5) == EXPIRY_NONE);
    CHECK(expiry_code(5, 5) == EXPIRY_PAST);
    CHECK(expiry_ms(EXPIRY_NONE, 77) == EXPIRY_NEVER);
    CHECK(expiry_told_ms(EXPIRY_NONE, 77) == EXPIRY_NEVER && expiry_told_ms(EXPIRY_PAST, 77) == 0);
    CHECK(expiry_rebase(EXPIRY_PAST, 10, 5) == EXPIRY_PAST);
    CHECK(expiry_fits(EXPIRY_NONE, 1, 2));
    uint64_t base = expiry_ticks(1700000000000);
    uint16_t code = expiry_code(1700000005000, 1700000000000);
    CHECK(expiry_fits(code, base, base - 10) && !expiry_fits(code, base, base - 5000));
    CHECK(!expiry_fits(code, base, base + 4000));
}

int main(void) {
    random_ttls();
    moments();
    rebases();
    clock_back();
    clock_far_back();
    base_before();
    told_of_long_ones();
    too_long();
    special_codes();
    return test_report("expiry");
}
