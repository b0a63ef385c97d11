/* neighbours.c: see neighbours.h. */
#include "neighbours.h"

#include "base/hash_slot.h"
#include "base/stem.h"
#include "common/common.h"
#include "map/map.h"
#include "progress.h"
#include "rate.h"
#include "reply.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_MAX 100 /* keys that can share a stem */
#define OF_FAMILY 64  /* keys that are asked about, */
#define OF_ALL    2048
#define AT_A_TIME 8

bool neighbours_share(const sampled *k) {
    uint8_t suffix;
    stem_split((const uint8_t *)k->key, k->key_len, &suffix);
    return suffix != STEM_NO_SUFFIX && k->key_len <= MAP_KEY_MAX;
}

/* Asks which of a key's neighbours there are, and returns how many keys that were; in a cluster
 * those of other slots lie in other maps. */
static double send_for_group(connection *c, const sampled *k, bool cluster) {
    size_t len = k->key_len, lengths[1 + GROUP_MAX] = {6};
    const char *argv[1 + GROUP_MAX] = {"EXISTS"};
    char *names = allocate(GROUP_MAX * len);
    int argc = 1;
    for (uint8_t i = 0; i < GROUP_MAX; i++) {
        char *name = names + i * len;
        memcpy(name, k->key, len);
        stem_join((uint8_t *)name, len - STEM_DIGITS, i);
        if (cluster && hash_slot_of_key(name, len) != hash_slot_of_key(k->key, len)) continue;
        argv[argc] = name;
        lengths[argc++] = len;
    }
    connection_send(c, argc, argv, lengths);
    free(names);
    return argc - 1;
}

static void read_group(connection *c, sampled *k) {
    redisReply *reply = connection_reply(c);
    bool moved = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM", 6) != 0;
    if (reply->type == REDIS_REPLY_ERROR && !moved) reply_refused(reply, "EXISTS");
    long long there = moved ? 0 : reply_number(reply, "EXISTS", GROUP_MAX);
    if (there > 0) k->group = (uint8_t)there;
    freeReplyObject(reply);
}

static void ask_some(connection *c, sampled **some, size_t count, bool cluster, rate *r) {
    double keys = 0;
    for (size_t i = 0; i < count; i++) keys += send_for_group(c, some[i], cluster);
    for (size_t i = 0; i < count; i++) read_group(c, some[i]);
    rate_keep(r, keys);
}

void neighbours_ask(sample *s, connection *c, const server *from, const options *o) {
    uint8_t *asked = allocate(s->families.count + 1);
    sampled *some[AT_A_TIME];
    size_t waiting = 0, all = 0;
    uint32_t database = 0;
    rate r;
    rate_begin(&r, (double)o->rate);
    for (size_t i = 0; i < s->count && all < OF_ALL; i++) {
        sampled *k = &s->all[i];
        if (!k->value || !neighbours_share(k) || asked[k->family] >= OF_FAMILY) continue;
        if (k->database != database || waiting == AT_A_TIME) {
            ask_some(c, some, waiting, from->cluster, &r);
            waiting = 0;
        }
        database = k->database;
        connection_select(c, from->databases[database].number);
        asked[k->family]++;
        some[waiting++] = k;
        progress_show("counting neighbours", (double)++all / OF_ALL);
    }
    ask_some(c, some, waiting, from->cluster, &r);
    progress_end();
    free(asked);
}
