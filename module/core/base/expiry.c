/* expiry.c: two-byte expiry times. The format is drawn in expiry.h. */
#include "base/expiry.h"

#define TICKS_PER_SECOND 512
#define COUNT_MASK       4095
#define UNITS            16

uint64_t expiry_ticks(int64_t ms) {
    return ms <= 0 ? 0 : (uint64_t)ms * TICKS_PER_SECOND / 1000;
}

static int64_t ms_up(uint64_t ticks) {
    return (int64_t)((ticks * 1000 + TICKS_PER_SECOND - 1) / TICKS_PER_SECOND);
}

/* The first tick that is not before `ms` when it is told in ms again: what ms_up() gave becomes
 * the tick that it was. */
static uint64_t ticks_up(int64_t ms) {
    uint64_t ticks = expiry_ticks(ms);
    return ms_up(ticks) < ms ? ticks + 1 : ticks;
}

static uint64_t units_up(uint64_t ticks, unsigned unit) {
    return (ticks + ((1ULL << (2 * unit)) - 1)) >> (2 * unit);
}

static uint64_t units_down(uint64_t ticks, unsigned unit) {
    return ticks >> (2 * unit);
}

/* The code of the tick `at`, seen from `base`, in the smallest unit that reaches. */
static uint16_t code_of(uint64_t at, uint64_t base) {
    if (at <= base) return EXPIRY_PAST;
    unsigned unit = 0;
    while (unit < UNITS - 1 && units_up(at, unit) - units_down(base, unit) > EXPIRY_WINDOW) unit++;
    uint64_t count = units_up(at, unit), most = units_down(base, unit) + EXPIRY_WINDOW - 2;
    /* Further away than can be kept, as the base has been set back: the longest there is. */
    if (unit == UNITS - 1 && count > most) count = most;
    /* The two largest codes are taken: round up past them. */
    while ((unit << 12 | (count & COUNT_MASK)) >= EXPIRY_PAST) count++;
    return (uint16_t)(unit << 12 | (count & COUNT_MASK));
}

/* The tick of a code that is neither EXPIRY_NONE nor EXPIRY_PAST. */
static uint64_t ticks_of(uint16_t code, uint64_t base) {
    unsigned unit = code >> 12;
    uint64_t from = units_down(base, unit);
    return (from + ((code - from) & COUNT_MASK)) << (2 * unit);
}

uint16_t expiry_code(int64_t at_ms, int64_t now_ms) {
    if (at_ms == EXPIRY_NEVER) return EXPIRY_NONE;
    if (at_ms <= now_ms) return EXPIRY_PAST;
    if (at_ms > now_ms + EXPIRY_TTL_MAX_MS) at_ms = now_ms + EXPIRY_TTL_MAX_MS;
    return code_of(ticks_up(at_ms + 1), expiry_ticks(now_ms));
}

bool expiry_fits(uint16_t code, uint64_t base, uint64_t other) {
    if (code >= EXPIRY_PAST || base == other) return true;
    uint64_t at = ticks_of(code, base);
    return at == ticks_of(code, other) && at > other;
}

int64_t expiry_ms(uint16_t code, uint64_t base) {
    if (code == EXPIRY_NONE) return EXPIRY_NEVER;
    if (code == EXPIRY_PAST) return 0;
    return ms_up(ticks_of(code, base)) - 1;
}

expiry_moment expiry_moment_of(int64_t now_ms, uint64_t base) {
    expiry_moment m;
    uint64_t now = expiry_ticks(now_ms);
    for (unsigned unit = 0; unit < UNITS; unit++) {
        uint64_t from = units_down(base, unit), to = units_down(now, unit);
        uint64_t passed = to < from ? 0 : to - from + 1;
        m.from[unit] = from & COUNT_MASK;
        m.passed[unit] = (uint16_t)(passed > COUNT_MASK ? COUNT_MASK + 1 : passed);
    }
    return m;
}

int64_t expiry_told_ms(uint16_t code, uint64_t base) {
    if (code >= EXPIRY_PAST) return expiry_ms(code, base);
    unsigned unit = code >> 12;
    /* What code_of() rounded up past the codes that are taken may be two units earlier. */
    uint64_t units = unit == UNITS - 1 && (code & COUNT_MASK) == 0 ? 3 : 1;
    return ms_up(ticks_of(code, base) - (units << (2 * unit)));
}

uint64_t expiry_base_before(uint16_t code, uint64_t base, uint64_t limit) {
    if (code >= EXPIRY_PAST) return limit;
    uint64_t at = ticks_of(code, base);
    if (at == 0) return 0; /* a file's word: there is nothing before */
    return at <= limit ? at - 1 : limit;
}

uint16_t expiry_rebase(uint16_t code, uint64_t base, uint64_t new_base) {
    if (code >= EXPIRY_PAST) return code;
    uint64_t at = ticks_of(code, base);
    if (at <= new_base) return EXPIRY_PAST;
    unsigned unit = code >> 12;
    if (units_up(at, unit) - units_down(new_base, unit) <= EXPIRY_WINDOW) return code;
    return code_of(at, new_base);
}
