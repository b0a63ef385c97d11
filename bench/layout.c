/*
 * layout.c: how the bytes of a record are made up.
 *
 *     bench-layout <records> <file>
 *
 * stores `KEY:<n>` with line n of the file (from the first again after the last) and an expiry in
 * as many maps as a server has by default, with a codec that learned from as much as a server
 * samples, and adds up what every byte of every page is for. Prints bytes a record.
 */
#include "common/common.h"
#include "core/base/siphash.h"
#include "core/base/stem.h"
#include "core/codec/codec_train.h"
#include "core/map/defaults.h"
#include "core/map/map.h"
#include "core/map/map_inside.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW_MS 1700000000000
#define TTL_MS 86400000

typedef struct layout {
    uint64_t members, singles, heads;
    uint64_t tags, lens, group_bytes, codes, stems, keys, values, headers, free;
} layout;

static const uint64_t secret[2] = {1, 2}, partition[2] = {3, 4};
static Records file;
static map_shared all;
static map *maps[DEFAULT_MAPS];

static size_t usable(void *block) {
    return malloc_usable_size(block);
}
static const mem memory = {malloc, realloc, free, usable};

static void *checked(void *result) {
    if (!result) fail(1, "out of memory");
    return result;
}

static size_t key_of(char *key, uint64_t n) {
    return (size_t)sprintf(key, "KEY:%llu", (unsigned long long)n);
}

/* Learns from groups of neighbours drawn at random, each stem once: as a server samples buckets. */
static void train(uint64_t records) {
    codec_samples s = {0};
    size_t value_bytes = 0, key_bytes = 0;
    phrase_sample *values = allocate(CODEC_SAMPLE_VALUES * sizeof *values);
    phrase_sample *keys = allocate(CODEC_SAMPLE_VALUES * sizeof *keys);
    uint64_t groups = records / 100 + 1, drawn = 1;
    for (uint64_t i = 0; i < groups && value_bytes < CODEC_SAMPLE_VALUES; i++) {
        drawn = drawn * 6364136223846793005 + 1442695040888963407;
        uint64_t group = (drawn >> 33) % groups;
        char *key = allocate(32);
        uint8_t suffix;
        size_t stem = stem_split((uint8_t *)key, key_of(key, group * 100), &suffix);
        if (key_bytes < CODEC_SAMPLE_KEYS)
            keys[s.key_count++] = (phrase_sample){key, (uint32_t)stem};
        key_bytes += stem;
        for (uint64_t n = group * 100; n < group * 100 + 100 && value_bytes < CODEC_SAMPLE_VALUES;
             n++) {
            const Value *l = records_at(&file, n);
            values[s.value_count++] = (phrase_sample){l->bytes, (uint32_t)l->length};
            value_bytes += l->length;
        }
    }
    s.keys = keys;
    s.values = values;
    uint64_t raw = s.stored = value_bytes / s.value_count * records;
    codec *c = checked(codec_train(&memory, &s, codec_allowance(raw, DEFAULT_DICTIONARY_SIZE),
                                   DEFAULT_COMPRESSION_LEVEL));
    codecs_use(&all.codecs, (uint8_t)codecs_add(&all.codecs, c));
}

static void store(uint64_t n) {
    char key[32];
    map_key k;
    codec_value value;
    uint8_t suffix;
    const Value *l = records_at(&file, n);
    size_t len = key_of(key, n), stem = stem_split((uint8_t *)key, len, &suffix);
    map *m = maps[siphash13((uint8_t *)key, stem, partition) % DEFAULT_MAPS];
    map_key_init(m, &k, key, len);
    if (!map_encode(&all, l->bytes, l->length, &value) ||
        !map_put(m, &k, NULL, &value, expiry_code(NOW_MS + TTL_MS, NOW_MS), expiry_ticks(NOW_MS)))
        checked(NULL);
}

static void add_page(layout *sum, const page *p) {
    sum->headers += PAGE_HEADER_BYTES + (size_t)(page_tags(p) - p->body);
    sum->free += p->cap - p->used;
    uint32_t len_bytes = p->flags & PAGE_WIDE ? 2 : 1;
    for (uint32_t slot = 0; slot < p->slots; slot++) {
        uint8_t tag = page_tags(p)[slot];
        uint32_t len = page_len(p, slot), value = 0;
        if (page_is_head(tag)) {
            sum->heads++;
            sum->stems += len;
            sum->group_bytes += 1 + len_bytes;
            continue;
        }
        sum->tags++;
        sum->lens += len_bytes;
        if (p->flags & PAGE_EXPIRY) sum->codes += 2;
        page_value(p, slot, &value);
        sum->values += value;
        sum->keys += len - value;
        *(page_is_member(tag) ? &sum->members : &sum->singles) += 1;
    }
}

static void member(const char *name, uint64_t bytes, uint64_t records) {
    printf(",\n \"%s\": %.3f", name, (double)bytes / (double)records);
}

int main(int argc, char **argv) {
    uint64_t records = argc == 3 ? strtoull(argv[1], NULL, 10) : 0, directory = 0, in_pages = 0;
    layout sum = {0};
    if (records == 0) fail(2, "usage: bench-layout <records> <file>");
    records_read(&file, argv[2]);
    if (!map_shared_init(&all, &memory, DEFAULT_COMPRESSION_LEVEL)) checked(NULL);
    train(records);
    for (int i = 0; i < DEFAULT_MAPS; i++) maps[i] = checked(map_new(&all, secret));
    for (uint64_t n = 0; n < records; n++) store(n);
    for (int i = 0; i < DEFAULT_MAPS; i++) {
        in_pages += maps[i]->totals.page_bytes;
        directory += map_bytes(maps[i]) - maps[i]->totals.page_bytes - maps[i]->totals.large_bytes;
        for (uint32_t b = 0; b < maps[i]->buckets; b++) {
            uint32_t n;
            page **pages = bucket_pages(map_bucket(maps[i], b), &n);
            for (uint32_t j = 0; j < n; j++) add_page(&sum, pages[j]);
        }
    }
    printf("{\"records\": %llu,\n \"data\": \"%s\"", (unsigned long long)records,
           file_name(argv[2]));
    member("members_of_a_group", sum.members, sum.heads ? sum.heads : 1);
    member("value", sum.values, records);
    member("expiry", sum.codes, records);
    member("tag", sum.tags, records);
    member("stems_and_keys", sum.stems + sum.keys, records);
    member("length", sum.lens, records);
    member("groups", sum.group_bytes, records);
    member("page_headers", sum.headers, records);
    member("free", sum.free, records);
    member("pages", in_pages, records);
    member("directories", directory, records);
    member("dictionaries", codecs_bytes(&all.codecs), records);
    puts("}");
    return 0;
}
