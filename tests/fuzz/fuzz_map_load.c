/* Bytes from a file as the buckets of a map, then traffic: an error or a sane map, never a crash.
 */
#include "core/map/map_reencode.h"
#include "core/map/map_save.h"

#include <stdio.h>
#include <string.h>

static const uint64_t secret[2] = {1, 2};

static bool no_large(void *context, large **l) {
    map *m = context;
    static const uint8_t bytes[] = {3, 0, 0, 0, 'a', 'b', 'c', 0xff, 'x'};
    *l = map_large_load(m, bytes, sizeof bytes);
    return *l != NULL;
}

static bool read_value(void *context, const uint8_t *key, size_t key_len, const map_pos *pos) {
    size_t len;
    (void)key, (void)key_len;
    map_value(context, pos, &len);
    map_expiry_ms(pos);
    return true;
}

static void traffic(map *m) {
    const uint64_t now = expiry_ticks(1700000000000);
    map_each_record(m, read_value, m);
    for (int i = 0; i < 300; i++) {
        char key[16], value[200];
        map_key k;
        map_pos pos;
        codec_value encoded;
        size_t len = (size_t)snprintf(key, sizeof key, i % 3 ? "k%d" : "%d", i * 7 % 200);
        memset(value, 'v', sizeof value);
        map_key_init(m, &k, key, len);
        bool found = map_find(m, &k, &pos);
        if (i % 4 == 3) {
            if (found) map_delete(m, &k, &pos, now);
            continue;
        }
        map_encode(m->shared, value, (size_t)i % sizeof value, &encoded);
        map_put(m, &k, found ? &pos : NULL, &encoded, i % 2 ? EXPIRY_NONE : 1000, now);
    }
    for (uint32_t i = 0; i < m->buckets; i++) map_reencode(m, i, now, SIZE_MAX, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    map_shared all;
    uint8_t codec_ids[256] = {0};
    if (!map_shared_init(&all, &mem_libc, 3)) return 0;
    map *m = map_new(&all, secret);
    size_t at = 0, read = 1;
    for (uint32_t i = 0; m && at < n && read; i++) {
        read = map_bucket_load(m, i, bytes + at, n - at, codec_ids);
        at += read;
        if (read && !map_each_large(m, i, no_large, m)) read = 0;
    }
    if (read) traffic(m);
    map_free(m);
    map_shared_free(&all);
    return 0;
}
