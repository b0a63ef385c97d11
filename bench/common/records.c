#include "common/common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_file(Records *r, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fail(1, "cannot read %s: %s", path, strerror(errno));
    size_t room = 1 << 20, got;
    r->file = allocate(room);
    while ((got = fread(r->file + r->size, 1, room - r->size, f)) > 0) {
        r->size += got;
        if (r->size == room) r->file = reallocate(r->file, room *= 2);
    }
    if (ferror(f)) fail(1, "cannot read %s", path);
    fclose(f);
}

static void add(Records *r, const char *bytes, size_t length) {
    if (length == 0) return;
    if ((r->count & (r->count - 1)) == 0)
        r->values = reallocate(r->values, (r->count ? 2 * r->count : 1) * sizeof *r->values);
    r->values[r->count++] = (Value){bytes, length};
    if (length > r->longest) r->longest = length;
}

static void split_lines(Records *r) {
    for (const char *at = r->file, *end = at + r->size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        add(r, at, length);
        at += length + 1;
    }
}

static void split_binary(Records *r, const char *path) {
    for (size_t at = 0, length; at < r->size; at += 4 + length) {
        const unsigned char *p = (const unsigned char *)r->file + at;
        size_t left = r->size - at;
        length = left < 4 ? 0 : p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
        if (left < 4 || length > left - 4) fail(1, "%s ends within a record", path);
        add(r, r->file + at + 4, length);
    }
}

void records_read(Records *r, const char *path) {
    *r = (Records){0};
    read_file(r, path);
    size_t n = strlen(path);
    if (n > 6 && strcmp(path + n - 6, ".u32le") == 0)
        split_binary(r, path);
    else
        split_lines(r);
    if (r->count == 0) fail(1, "%s has no records", path);
}

void records_free(Records *r) {
    free(r->values);
    free(r->file);
}

const Value *records_at(const Records *r, uint64_t number) {
    return &r->values[number % r->count];
}

const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
