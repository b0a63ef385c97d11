/* Everything comes back, nothing else is accepted, memory running out is survived. */
#include "../counting.h"
#include "../test.h"
#include "phrase/phrase.h"

#include <stdbool.h>
#include <string.h>

static uint32_t rnd(uint32_t below) {
    return (uint32_t)((test_random() >> 32) * below >> 32);
}

/* ---- records --------------------------------------------------------------------------------- */

#define RECORDS 20000
static char text[RECORDS][128];
static phrase_sample records[RECORDS];

/* Sentences of common and rare words, and keys. */
static void make_records(void) {
    static const char *word[] = {"the ",   "of ",     "and then ", "compressed ", "dictionary ",
                                 "value ", "server ", "http://",   "www.",        "example.org/"};
    for (uint32_t i = 0; i < RECORDS; i++) {
        int n = 0;
        if (i % 4 == 0)
            n = sprintf(text[i], "user:%08u:profile", rnd(100000000));
        else
            for (uint32_t w = 1 + rnd(6); w > 0; w--)
                n += sprintf(text[i] + n, "%s%c", word[rnd(10)], 'a' + rnd(26));
        records[i] = (phrase_sample){text[i], (uint32_t)n};
    }
}

#define NAMES 3000
static char name_text[NAMES][128];
static phrase_sample names[NAMES];

/* Records that say a name of their own again and again. */
static void make_names(void) {
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        for (int j = 0; j < 16; j++) name[j] = (char)('a' + rnd(26));
        int len = 6 + (int)rnd(10);
        names[i] = (phrase_sample){name_text[i],
                                   (uint32_t)sprintf(name_text[i],
                                                     "name %.*s, url /%.*s, home /%.*s/home, %u.",
                                                     len, name, len, name, len, name, rnd(100))};
    }
}

/* ---- tests --------------------------------------------------------------------------------------
 */

typedef size_t encoder(const phrase_dict *d, const void *src, size_t n, void *dst, size_t cap);

static size_t encode_cheapest(const phrase_dict *d, const void *src, size_t n, void *dst,
                              size_t cap) {
    static void *scratch;
    if (!scratch) scratch = malloc(phrase_scratch_bytes());
    return phrase_encode_cheapest(d, scratch, src, n, dst, cap);
}

/* Encodes, decodes and compares, with buffers of exactly the size that is needed. */
static size_t round_trip_by(encoder *encode, const phrase_dict *d, const void *bytes, size_t n) {
    size_t cap = 3 * n; /* no code is longer than 24 bits */
    uint8_t *encoded = malloc(cap + 1), *again = malloc(cap + 1);
    size_t len = encode(d, bytes, n, encoded, cap);
    CHECK(len != PHRASE_NO_ROOM && len <= cap);
    CHECK((len == 0) == (n == 0));
    CHECK(len == 0 || (encoded[0] < 0xfe && encoded[len - 1] != 0xff));
    uint8_t *exact = malloc(len + 1), *back = malloc(n + 1);
    memcpy(exact, encoded, len);
    CHECK(encode(d, bytes, n, again, len) == len && memcmp(again, encoded, len) == 0);
    if (len > 0) CHECK(encode(d, bytes, n, again, len - 1) == PHRASE_NO_ROOM);
    CHECK(phrase_decoded_len(d, exact, len) == n);
    CHECK(phrase_decode(d, exact, len, back, n) == n && (n == 0 || memcmp(back, bytes, n) == 0));
    if (n > 0) CHECK(phrase_decode(d, exact, len, back, n - 1) == PHRASE_NO_ROOM);
    free(exact);
    free(back);
    free(encoded);
    free(again);
    return len;
}

/* In both ways; returns the bytes of the cheapest. */
static size_t round_trip(const phrase_dict *d, const void *bytes, size_t n) {
    round_trip_by(phrase_encode, d, bytes, n);
    return round_trip_by(encode_cheapest, d, bytes, n);
}

/* Encoded / raw bytes of all records, in one of the two ways. */
static double ratio_by(encoder *encode, const phrase_dict *d) {
    size_t raw = 0, encoded = 0;
    for (uint32_t i = 0; i < RECORDS; i++) {
        raw += records[i].len;
        encoded += round_trip_by(encode, d, records[i].data, records[i].len);
    }
    return (double)encoded / (double)raw;
}

static void test_records(const phrase_dict *d) {
    double fast = ratio_by(phrase_encode, d), cheapest = ratio_by(encode_cheapest, d);
    /* The longest phrases are nearly the cheapest ones here. The parser pays a quarter of a bit for
     * a token less, and gives up places, so a record in thousands is a byte longer by it. */
    CHECK(cheapest < 0.3 && cheapest < fast * 1.0002);
    CHECK(phrase_expected_ratio(d) > fast * 0.9 && phrase_expected_ratio(d) < fast * 1.1);
}

static void test_any_bytes(const phrase_dict *d) {
    static uint8_t bytes[100000];
    for (uint32_t n = 0; n < 300; n++) {
        for (uint32_t i = 0; i < n; i++) bytes[i] = (uint8_t)rnd(256);
        round_trip(d, bytes, n);
    }
    for (unsigned b = 0; b < 256; b++) {
        memset(bytes, (int)b, sizeof bytes);
        round_trip(d, bytes, 1);
        round_trip(d, bytes, 1000 + b);
    }
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rnd(256);
    round_trip(d, bytes, sizeof bytes);
}

/* Bytes that are no encoding are refused or decode to something, never to a crash. */
static void test_garbage(const phrase_dict *d) {
    uint8_t bytes[64], out[4096];
    CHECK(phrase_decode(d, "\xff", 1, out, sizeof out) == PHRASE_CORRUPT);
    CHECK(phrase_decode(d, "\xfe", 1, out, sizeof out) == PHRASE_CORRUPT);
    CHECK(phrase_decode(d, "\xff\xff\x00", 3, out, sizeof out) == PHRASE_CORRUPT);
    for (int round = 0; round < 100000; round++) {
        size_t n = rnd(sizeof bytes);
        for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)rnd(256);
        size_t len = phrase_decoded_len(d, bytes, n), cap = rnd(sizeof out);
        size_t got = phrase_decode(d, bytes, n, out, cap);
        if (len == PHRASE_CORRUPT)
            CHECK(got == PHRASE_CORRUPT || got == PHRASE_NO_ROOM);
        else
            CHECK(got == (len <= cap ? len : PHRASE_NO_ROOM));
    }
}

static void test_save(const phrase_dict *d) {
    size_t n = phrase_save(d, NULL, 0);
    uint8_t *bytes = malloc(n), *again = malloc(n);
    memset(bytes, 0x55, n);
    CHECK(phrase_save(d, bytes, n - 1) == n && bytes[0] == 0x55);
    CHECK(phrase_save(d, bytes, n) == n);
    phrase_dict *copy = phrase_load(counting(), bytes, n);
    CHECK(copy && phrase_save(copy, again, n) == n && memcmp(bytes, again, n) == 0);
    CHECK(phrase_expected_ratio(copy) == phrase_expected_ratio(d));
    for (uint32_t i = 0; i < RECORDS; i += 7) {
        uint8_t a[512], b[512];
        size_t len = phrase_encode(d, records[i].data, records[i].len, a, sizeof a);
        CHECK(phrase_encode(copy, records[i].data, records[i].len, b, sizeof b) == len);
        CHECK(memcmp(a, b, len) == 0);
    }
    phrase_free(copy);
    for (size_t cut = 0; cut < n; cut += 1 + n / 500)
        CHECK(phrase_load(counting(), bytes, cut) == NULL);
    for (int round = 0; round < 2000; round++) { /* a damaged one is refused, or is another one */
        size_t at = rnd((uint32_t)(round % 2 ? n : 400));
        uint8_t old = bytes[at];
        bytes[at] ^= (uint8_t)(1 + rnd(255));
        phrase_dict *damaged = phrase_load(counting(), bytes, n);
        if (damaged) {
            round_trip(damaged, text[round], strlen(text[round]));
            phrase_free(damaged);
        }
        bytes[at] = old;
    }
    free(bytes);
    free(again);
}

static void test_sizes(void) {
    double before = 1;
    for (size_t max = 64 << 10; max <= 1 << 20; max *= 2) {
        phrase_dict *d =
            phrase_train(counting(), records, RECORDS, max, PHRASE_RECORDS * max, true);
        CHECK(d && phrase_bytes(d) <= max + 64);
        double ratio = ratio_by(encode_cheapest, d);
        CHECK(ratio < before * 1.02);
        before = ratio;
        phrase_free(d);
    }
    /* These are no size classes. */
    for (size_t max = 30000; max <= 70000; max += 9000) {
        phrase_dict *d =
            phrase_train(counting(), records, RECORDS, max, PHRASE_RECORDS * max, true);
        CHECK(d && phrase_bytes(d) <= mem_class_near(max) + 64);
        phrase_free(d);
    }
}

static void test_tiny_samples(void) {
    static uint8_t zeros[5000];
    const phrase_sample tiny[] = {{"", 0}, {"a", 1}, {"ab", 2}, {zeros, 5000}};
    for (size_t n = 0; n <= 4; n++) {
        for (size_t max = 0; max <= 64 << 10; max += 32 << 10) {
            phrase_dict *d = phrase_train(counting(), tiny, n, max, PHRASE_RECORDS * max, n % 2);
            CHECK(d);
            if (max == 0) test_any_bytes(d);
            test_garbage(d);
            phrase_free(d);
        }
    }
    phrase_dict *d =
        phrase_train(counting(), tiny + 3, 1, 1 << 20, PHRASE_RECORDS * (1 << 20), false);
    CHECK(d && round_trip(d, zeros, sizeof zeros) < 300);
    phrase_free(d);
    CHECK(live_blocks == 0);
}

static phrase_dict *train_under_another_secret(const phrase_sample *samples, size_t n,
                                               bool cheapest) {
    phrase_set_secret((uint64_t[2]){test_random(), test_random()});
    return phrase_train(counting(), samples, n, 1 << 20, PHRASE_RECORDS * (1 << 20), cheapest);
}

/* Whatever the secret is, what is learned and what is encoded with it is the same. */
static void test_deterministic(const phrase_sample *samples, size_t n, bool cheapest) {
    phrase_dict *a = train_under_another_secret(samples, n, cheapest);
    phrase_dict *b = train_under_another_secret(samples, n, cheapest);
    size_t bytes = phrase_save(a, NULL, 0);
    uint8_t *x = malloc(bytes), *y = malloc(bytes);
    CHECK(phrase_save(a, x, bytes) == bytes && phrase_save(b, y, bytes) == bytes);
    CHECK(memcmp(x, y, bytes) == 0);
    for (size_t i = 0; i < n; i++) {
        uint8_t one[512], other[512];
        encoder *const ways[] = {phrase_encode, encode_cheapest};
        for (int w = 0; w < 2; w++) {
            size_t len = ways[w](a, samples[i].data, samples[i].len, one, sizeof one);
            CHECK(ways[w](b, samples[i].data, samples[i].len, other, sizeof other) == len);
            CHECK(len <= sizeof one && memcmp(one, other, len) == 0);
        }
    }
    phrase_free(a);
    phrase_free(b);
    free(x);
    free(y);
}

/* Lets the first, second, third ... allocation fail until all goes well. */
static void test_out_of_memory(void) {
    bool trained = false, loaded = false;
    phrase_dict *d =
        phrase_train(counting(), records, 1000, 1 << 20, PHRASE_RECORDS * (1 << 20), true);
    size_t n = phrase_save(d, NULL, 0);
    uint8_t *bytes = malloc(n);
    phrase_save(d, bytes, n);
    phrase_free(d);
    for (long i = 0; !trained || !loaded; i++) {
        allocations_left = i;
        phrase_dict *t =
            phrase_train(counting(), records, 1000, 1 << 20, PHRASE_RECORDS * (1 << 20), true);
        allocations_left = i;
        phrase_dict *l = phrase_load(counting(), bytes, n);
        trained = t != NULL;
        loaded = l != NULL;
        if (t) phrase_free(t);
        if (l) phrase_free(l);
        CHECK(live_blocks == 0);
    }
    allocations_left = -1;
    free(bytes);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static phrase_dict *train_on_names(void) {
    phrase_dict *d =
        phrase_train(counting(), names, NAMES, 64 << 10, PHRASE_RECORDS * (64 << 10), true);
    CHECK(d && phrase_has_copies(d));
    return d;
}

/* A name that comes again costs less than one that has not been there. */
static void test_repeats(const phrase_dict *d) {
    const char *twice = "name qzjxkvwyq, url /qzjxkvwyq, home //home, 1.",
               *two_names = "name qzjxkvwyq, url /wkyvjqxpz, home //home, 1.",
               *thrice = "name qzjxkvwyq, url /qzjxkvwyq, home /qzjxkvwyq/home, 1.",
               *three_names = "name qzjxkvwyq, url /wkyvjqxpz, home /xvqgzjkwb/home, 1.";
    size_t again = round_trip(d, twice, strlen(twice)),
           other = round_trip(d, two_names, strlen(two_names));
    CHECK(again < other);
    again = round_trip(d, thrice, strlen(thrice)),
    other = round_trip(d, three_names, strlen(three_names));
    CHECK(again + 6 <= other);
}

/* Copies that run into what they write, from near and far, of all lengths. */
static void test_overlaps(const phrase_dict *d) {
    static uint8_t bytes[200000];
    for (size_t period = 1; period < 40; period++) {
        for (size_t n = period; n < 700; n += 1 + rnd(150)) {
            for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(i % period * 7);
            round_trip(d, bytes, n);
        }
    }
    for (size_t period = 300; period < sizeof bytes; period *= 3) { /* sources out of reach, too */
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = i < period ? (uint8_t)rnd(256) : bytes[i - period];
        round_trip(d, bytes, sizeof bytes);
    }
    for (int round = 0; round < 100; round++) { /* pieces of itself */
        size_t n = 20 + rnd(3000);
        for (size_t i = 0; i < n;) {
            size_t len = 1 + rnd(300), from = i == 0 ? 0 : rnd((uint32_t)i);
            for (; len > 0 && i < n; len--, i++, from++)
                bytes[i] = i == 0 || len % 40 == 0 ? (uint8_t)rnd(256) : bytes[from];
        }
        round_trip(d, bytes, n);
    }
}

/* Damaged encodings with copies decode to something as long as was said, or are refused. */
static void test_damage(const phrase_dict *d) {
    const char *text = "name qzjxkvwyq, url /qzjxkvwyq, home /qzjxkvwyq/home, qzjxkvwyqqzjxkvwyq.";
    uint8_t encoded[256], bytes[256], out[70000];
    size_t len = encode_cheapest(d, text, strlen(text), encoded, sizeof encoded);
    long refused = 0, decoded = 0;
    for (int round = 0; round < 50000; round++) {
        memcpy(bytes, encoded, len);
        for (uint32_t flips = 1 + rnd(4); flips > 0; flips--)
            bytes[rnd((uint32_t)len)] ^= (uint8_t)(1 << rnd(8));
        size_t n = 1 + rnd((uint32_t)len), cap = rnd(2) ? rnd(200) : sizeof out;
        size_t expected = phrase_decoded_len(d, bytes, n);
        size_t got = phrase_decode(d, bytes, n, out, cap);
        if (expected == PHRASE_CORRUPT) {
            CHECK(got == PHRASE_CORRUPT || got == PHRASE_NO_ROOM);
            refused++;
        } else {
            CHECK(got == (expected <= cap ? expected : PHRASE_NO_ROOM));
            decoded++;
        }
    }
    CHECK(refused > 1000 && decoded > 1000);
}

static size_t encoded_size(const phrase_dict *d, const phrase_sample *samples, size_t n) {
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t out[2 * sizeof *text];
        sum += phrase_encode(d, samples[i].data, samples[i].len, out, sizeof out);
    }
    return sum;
}

/* Records that are stored a few times each are not learned whole, whichever the parse, but where
 * there is room for all. */
static void test_records_that_come_again(void) {
    enum { WORDS = 300, LINES = 800, TIMES = 8 };
    static char word[WORDS][8], line[LINES][128];
    static phrase_sample samples[LINES * TIMES];
    for (int i = 0; i < WORDS; i++)
        for (uint32_t len = 3 + rnd(4), at = 0; at < len; at++) word[i][at] = (char)('a' + rnd(16));
    for (int i = 0; i < LINES; i++) {
        int n = 0;
        for (int w = 0; w < 12; w++) n += sprintf(line[i] + n, "%s ", word[rnd(WORDS)]);
        for (int t = 0; t < TIMES; t++)
            samples[t * LINES + i] = (phrase_sample){line[i], (uint32_t)n};
    }
    size_t size[2];
    for (int cheapest = 0; cheapest < 2; cheapest++) {
        phrase_dict *d = phrase_train(&mem_libc, samples, LINES * TIMES, 40 << 10,
                                      PHRASE_RECORDS * (40 << 10), cheapest);
        CHECK(d);
        size[cheapest] = encoded_size(d, samples, LINES);
        phrase_free(d);
    }
    CHECK(size[1] < size[0] * 3 / 2);
    phrase_dict *roomy = phrase_train(&mem_libc, samples, LINES * TIMES, 400 << 10,
                                      PHRASE_RECORDS * (400 << 10), true);
    CHECK(roomy);
    CHECK(encoded_size(roomy, samples, LINES) < size[1] / 3);
    phrase_free(roomy);
}

/* The same numbers each time. */
static uint32_t fixed(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

#define PROFILES      1000
#define PROFILE_TIMES 7
static char profile[PROFILES][1024];
static phrase_sample profiles[PROFILES * PROFILE_TIMES];

/* Profiles that say their name in URLs, and some numbers of their own, as often as all the others.
 */
static void make_profiles(uint64_t state) {
    static const char *field[] = {"followers", "following", "gists", "starred",        "orgs",
                                  "repos",     "events",    "keys",  "received_events"};
    for (int i = 0; i < PROFILES; i++) {
        char name[16] = {0};
        for (uint32_t len = 6 + fixed(&state, 7), at = 0; at < len; at++)
            name[at] = (char)('a' + fixed(&state, 26));
        int n = sprintf(profile[i], "{\"login\":\"%s\"", name);
        for (size_t f = 0; f < sizeof field / sizeof *field; f++)
            n += sprintf(profile[i] + n, ",\"%s\":\"/users/%s/%s\"", field[f], name, field[f]);
        for (uint32_t number = 0; number < 6; number++)
            n += sprintf(profile[i] + n, ",\"%u\":\"%05u\"", number, fixed(&state, 100000));
        for (int t = 0; t < PROFILE_TIMES; t++)
            profiles[t * PROFILES + i] = (phrase_sample){profile[i], (uint32_t)n};
    }
}

/* What a dictionary of the first `n` profiles takes, and the least that it is learned for. */
static double taken_by_profiles(size_t n, size_t max_bytes) {
    size_t raw = 0, encoded = 0;
    phrase_dict *d =
        phrase_train(&mem_libc, profiles, n, max_bytes, PHRASE_RECORDS * max_bytes, true);
    CHECK(d);
    for (size_t i = 0; i < PROFILES; i++) {
        uint8_t out[sizeof *profile];
        raw += profiles[i].len;
        encoded += encode_cheapest(d, profiles[i].data, profiles[i].len, out, sizeof out);
    }
    double taken = (double)phrase_bytes(d);
    phrase_free(d);
    return taken + (double)encoded / (double)raw * (double)max_bytes * PHRASE_RECORDS;
}

/* That records come again adds to what is known of them: it takes nothing of what they share, or
 * repeat of their own. */
static void test_shared_before_whole(void) {
    double each_once = 0, again = 0;
    for (uint64_t draw = 1; draw <= 3; draw += 2) {
        make_profiles(draw);
        each_once += taken_by_profiles(PROFILES, 1 << 20);
        again += taken_by_profiles(PROFILES * PROFILE_TIMES, 1 << 20);
    }
    CHECK(again < each_once * 0.84);
}

/* The values of an enumeration are learned whole, however little they share. */
static void test_enumeration(void) {
    enum { VALUES = 50, LEN = 40, RECORDS_STORED = 20000 };
    static char value[VALUES][LEN];
    static phrase_sample samples[RECORDS_STORED];
    for (int i = 0; i < VALUES; i++)
        for (int at = 0; at < LEN; at++) value[i][at] = (char)('a' + rnd(26));
    for (int i = 0; i < RECORDS_STORED; i++) samples[i] = (phrase_sample){value[rnd(VALUES)], LEN};
    for (int cheapest = 0; cheapest < 2; cheapest++) {
        phrase_dict *d = phrase_train(&mem_libc, samples, RECORDS_STORED, 40 << 10,
                                      PHRASE_RECORDS * (40 << 10), cheapest);
        CHECK(d);
        CHECK(encoded_size(d, samples, RECORDS_STORED) <= 2 * RECORDS_STORED);
        phrase_free(d);
    }
}

/* Where there are two dozen kinds of words, each with its place in the record, 16 classes take 10.1
 * bits a word, more of them 8.8. Of other words both may be half a bit more or less. */
static void test_many_classes(void) {
    enum { COLUMNS = 24, WORDS = 150, LEN = 4, LINES = 5000, LEARNED = 4000 };
    static char word[COLUMNS * WORDS * LEN], line[LINES][COLUMNS * LEN];
    static phrase_sample samples[LINES];
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof word; i++) word[i] = (char)('a' + fixed(&state, 26));
    for (int i = 0; i < LINES; i++) {
        for (uint32_t c = 0; c < COLUMNS; c++)
            memcpy(line[i] + c * LEN, word + (c * WORDS + fixed(&state, WORDS)) * LEN, LEN);
        samples[i] = (phrase_sample){line[i], COLUMNS * LEN};
    }
    phrase_dict *d =
        phrase_train(&mem_libc, samples, LEARNED, 1 << 20, PHRASE_RECORDS * (1 << 20), true);
    CHECK(d);
    size_t bytes = encoded_size(d, samples + LEARNED, LINES - LEARNED);
    CHECK(8.0 * (double)bytes / (LINES - LEARNED) / COLUMNS < 9.4);
    phrase_free(d);
}

/* Everything again for a dictionary that was learned for the cheapest way, or for the fast one. */
static void test_all(bool cheapest) {
    phrase_dict *d =
        phrase_train(counting(), records, RECORDS, 1 << 20, PHRASE_RECORDS * (1 << 20), cheapest);
    CHECK(d);
    test_records(d);
    test_any_bytes(d);
    test_garbage(d);
    test_save(d);
    phrase_free(d);
    CHECK(live_blocks == 0);
}

static void test_copies(void) {
    phrase_dict *d = train_on_names();
    test_repeats(d);
    test_overlaps(d);
    test_damage(d);
    test_any_bytes(d);
    test_garbage(d);
    test_save(d);
    phrase_free(d);
    CHECK(live_blocks == 0);
}

int main(void) {
    make_records();
    make_names();
    test_all(false);
    test_all(true);
    test_copies();
    test_records_that_come_again();
    test_shared_before_whole();
    test_enumeration();
    test_many_classes();
    test_sizes();
    test_tiny_samples();
    test_deterministic(records, 3000, false);
    test_deterministic(records, 3000, true);
    test_deterministic(names, NAMES, true);
    test_out_of_memory();
    CHECK(live_blocks == 0);
    return test_report("phrase");
}
