/* Keys have the shapes of real systems; in one cache all have the same length:
 *
 *     | timeline:user: | 1603172964515340288 | :profile                         |
 *     | a namespace    | what the shape makes | more of it, where there is room |
 *
 * A cache has those shapes that its keys are long enough for, each as often. The lengths of values
 * have logarithms that are spread as a bell; values are the beginning of a record of the data file,
 * or several joined. */
#include "cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Different uses of one object's number. */
enum { SALT_COUNTER = 0x636f756e, SALT_VALUE = 0x76616c75 };

static uint64_t draw(uint64_t object, uint64_t salt) {
    return mix(mix(object ^ salt << 32));
}

/* --- keys --- */

/* Different numbers below `modulus` for different ones, neighbours apart: a multiple of a prime. */
static uint64_t scatter(uint64_t number, uint64_t modulus) {
    return (uint64_t)((unsigned __int128)number * 2305843009213693951u % modulus);
}

#define NUMBER_DIGITS 10

static uint64_t power_of_10(int digits) {
    return digits ? 10 * power_of_10(digits - 1) : 1;
}

static void write_number(char *out, int length, uint64_t object) {
    snprintf(out, (size_t)length + 1, "%0*llu", length,
             (unsigned long long)scatter(object, power_of_10(length)));
}

/* Milliseconds of a year, one of 32 machines, a sequence that begins anew in each millisecond. */
static void write_snowflake(char *out, int length, uint64_t object) {
    uint64_t ms = 380000000000u + scatter(object, 365ull * 86400 * 1000);
    snprintf(out, (size_t)length + 1, "%0*llu", length,
             (unsigned long long)(ms << 22 | (mix(object) & 31) << 12));
}

static void write_base64(char *out, int length, uint64_t object) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int i = 0; i < length; i++)
        out[i] = letters[mix(object * 4 + (uint64_t)i / 8) >> (6 * (i % 8)) & 63];
}

static void write_address_and_minute(char *out, int length, uint64_t object) {
    unsigned n = (unsigned)scatter(object, 256 * 90 * 90 * 90);
    snprintf(out, (size_t)length + 1, "%03u.%03u.%03u.%03u:2026112201%02u", n % 90 + 100,
             n / 90 % 90 + 100, n / 8100 % 90 + 100, n / 729000 % 90 + 100,
             (unsigned)(mix(object) % 60));
}

static void write_sum(char *out, int length, uint64_t object) {
    snprintf(out, (size_t)length + 1, "%016llx%016llx", (unsigned long long)mix(object * 2),
             (unsigned long long)mix(object * 2 + 1));
}

static void write_uuid(char *out, int length, uint64_t object) {
    char uuid[UUID_LENGTH + 1];
    uuid_write(uuid, object);
    memcpy(out, uuid, (size_t)length);
}

static void write_two_sums(char *out, int length, uint64_t object) {
    write_sum(out, 32, object);
    out[32] = '.';
    write_sum(out + 33, length - 33, ~object);
}

static const struct {
    int length;
    void (*write)(char *out, int length, uint64_t object);
} shapes[] = {{NUMBER_DIGITS, write_number},
              {19, write_snowflake},
              {22, write_base64},
              {28, write_address_and_minute},
              {32, write_sum},
              {UUID_LENGTH, write_uuid},
              {65, write_two_sums}};
enum { SHAPES = sizeof shapes / sizeof *shapes, NAMESPACE_LEAST = 2, SUFFIX_FROM = 16 };

/* Names one after the other, from the given one on. */
static void write_namespace(char *out, int length, int first) {
    static const char *const names[] = {
        "timeline:", "user:", "search:v2:", "session:", "feed:", "media:", "en-us:", "profile:"};
    for (int n = first; length > 0; n++) {
        const char *name = names[n % (int)(sizeof names / sizeof *names)];
        int size = (int)strlen(name) < length ? (int)strlen(name) : length;
        memcpy(out, name, (size_t)size);
        out += size;
        length -= size;
    }
}

size_t object_key(const Objects *o, char key[CACHE_KEY_SIZE], uint64_t object) {
    int length = (int)lround(o->cache->key_bytes), fitting = 1;
    while (fitting < SHAPES && shapes[fitting].length + NAMESPACE_LEAST <= length) fitting++;
    int shape = (int)(object % (uint64_t)fitting), body = shapes[shape].length;
    if (body > length - NAMESPACE_LEAST) body = length - NAMESPACE_LEAST;
    int spare = length - body, behind = spare >= SUFFIX_FROM ? spare / 4 : 0;
    int before = spare - behind;
    write_namespace(key, before - 1, shape);
    key[before - 1] = ':';
    shapes[shape].write(key + before, body, object);
    write_namespace(key + before + body, behind, shape + 4);
    return (size_t)length;
}

/* --- values --- */

void objects_init(Objects *o, const Cache *cache, const Plan *plan, const Records *records) {
    *o = (Objects){.cache = cache, .plan = plan, .records = records};
    o->longest = (size_t)(16 * cache->value_bytes) + 16;
    o->value = allocate(o->longest + sizeof(uint64_t));
}

void objects_free(Objects *o) {
    free(o->value);
}

int object_exists(const Objects *o, uint64_t object) {
    /* Multiples of the golden section, so that it is true of that share of the few popular ones
     * too. */
    double n = (double)object * 0.6180339887498949;
    return n - floor(n) < o->plan->existing;
}

int object_is_counter(const Objects *o, uint64_t object) {
    return fraction(draw(object, SALT_COUNTER)) < o->plan->counters;
}

/* By Box and Muller's method. The mean of what is spread so lies above the middle: that is taken
 * off. */
static size_t value_length(const Objects *o, uint64_t random) {
    double s = o->cache->spread, middle = log(o->cache->value_bytes) - s * s / 2;
    double bell =
        sqrt(-2 * log(1 - fraction(random))) * cos(2 * 3.14159265358979 * fraction(mix(random)));
    double length = round(exp(middle + s * bell));
    return (size_t)fmin(fmax(length, 1), (double)o->longest);
}

static void write_random(char *out, size_t length, uint64_t random) {
    for (size_t at = 0; at < length; at += sizeof random, random = mix(random))
        memcpy(out + at, &random, sizeof random);
}

static void write_records(char *out, size_t length, const Records *records, uint64_t random) {
    for (size_t at = 0, n; at < length; at += n, random++) {
        const Value *record = records_at(records, random);
        n = record->length < length - at ? record->length : length - at;
        memcpy(out + at, record->bytes, n);
    }
}

Value object_value(Objects *o, uint64_t object, unsigned version) {
    uint64_t random = draw(object * VERSIONS + version, SALT_VALUE);
    if (object_is_counter(o, object))
        return (Value){o->value, (size_t)sprintf(o->value, "%u", (unsigned)(random % 10000))};
    size_t length = value_length(o, random);
    if (o->records)
        write_records(o->value, length, o->records, mix(random));
    else
        write_random(o->value, length, mix(random));
    return (Value){o->value, length};
}

void object_check(Objects *o, uint64_t object, Value got) {
    char key[CACHE_KEY_SIZE];
    if (object_is_counter(o, object)) {
        if (got.length > 0 && strspn(got.bytes, "0123456789") == got.length) return;
    } else {
        for (unsigned version = 0; version < VERSIONS; version++) {
            Value value = object_value(o, object, version);
            if (value.length == got.length && memcmp(value.bytes, got.bytes, got.length) == 0)
                return;
        }
    }
    fail(1, "%.*s has a value that was never stored", (int)object_key(o, key, object), key);
}
