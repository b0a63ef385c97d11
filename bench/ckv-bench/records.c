/* A file is text, one record a line, or (*.u32le) binary:
 *
 *   | length, 4 bytes little-endian | bytes | length | bytes | ...
 *
 * Records are numbered from 0; number n has the file's value n modulo the number of values. */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_KEY 100000000

static size_t read_file(char **bytes, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fail(1, "cannot read %s: %s", path, strerror(errno));
    size_t size = 0, room = 1 << 20, got;
    *bytes = allocate(room);
    while ((got = fread(*bytes + size, 1, room - size, f)) > 0) {
        size += got;
        if (size == room) {
            char *larger = realloc(*bytes, room *= 2);
            if (!larger) fail(1, "out of memory");
            *bytes = larger;
        }
    }
    if (ferror(f)) fail(1, "cannot read %s", path);
    fclose(f);
    return size;
}

static void add(Records *r, size_t *room, const char *bytes, size_t length) {
    if (length == 0) return;
    if (r->count == *room) {
        *room = *room ? *room * 2 : 1024;
        Value *larger = realloc(r->values, *room * sizeof *larger);
        if (!larger) fail(1, "out of memory");
        r->values = larger;
    }
    r->values[r->count++] = (Value){bytes, length};
    if (length > r->longest) r->longest = length;
}

static void split_lines(Records *r, size_t size) {
    size_t room = 0;
    for (const char *at = r->file, *end = at + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        add(r, &room, at, length);
        at += length + 1;
    }
}

static void split_binary(Records *r, size_t size, const char *path) {
    size_t room = 0, at = 0;
    while (at < size) {
        const unsigned char *p = (const unsigned char *)r->file + at;
        size_t left = size - at;
        uint32_t length = 0;
        if (left >= 4)
            length = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        if (left < 4 || length > left - 4) fail(1, "%s ends within a record", path);
        add(r, &room, r->file + at + 4, length);
        at += 4 + (size_t)length;
    }
}

void records_read(Records *r, const char *path) {
    *r = (Records){0};
    size_t size = read_file(&r->file, path), n = strlen(path);
    if (n > 6 && strcmp(path + n - 6, ".u32le") == 0)
        split_binary(r, size, path);
    else
        split_lines(r, size);
    if (r->count == 0) fail(1, "%s has no records", path);
}

void records_free(Records *r) {
    free(r->values);
    free(r->file);
}

const Value *records_at(const Records *r, uint64_t number) {
    return &r->values[number % r->count];
}

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

size_t record_key(char key[KEY_SIZE], const Options *o, uint64_t number) {
    if (!o->uuid)
        return (size_t)snprintf(key, KEY_SIZE, "KEY:%llu", FIRST_KEY + (unsigned long long)number);
    uint64_t a = mix(number * 2), b = mix(number * 2 + 1);
    return (size_t)snprintf(key, KEY_SIZE, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
                            (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
                            (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
                            (unsigned long long)(b & 0xffffffffffffu));
}

/* Zipf's distribution by the method of Gray et al., "Quickly generating billion-record synthetic
 * databases" (1994). */
void picker_init(Picker *p, uint64_t count, double theta, uint64_t seed) {
    *p = (Picker){.count = count, .theta = theta, .random = seed};
    if (theta == 0) return;
    for (uint64_t i = 1; i <= count; i++) p->zeta += 1 / pow((double)i, theta);
    p->alpha = 1 / (1 - theta);
    p->eta = (1 - pow(2.0 / (double)count, 1 - theta)) / (1 - (1 + pow(0.5, theta)) / p->zeta);
}

uint64_t picker_next(Picker *p) {
    double u = (double)(mix(p->random++) >> 11) * 0x1p-53;
    if (p->theta == 0) return (uint64_t)(u * (double)p->count);
    double uz = u * p->zeta;
    if (uz < 1 || p->count == 1) return 0;
    if (uz < 1 + pow(0.5, p->theta) || p->count == 2) return 1;
    uint64_t n = (uint64_t)((double)p->count * pow(p->eta * u - p->eta + 1, p->alpha));
    return n < p->count ? n : p->count - 1;
}
