/* server.c: see server.h. */
#include "server.h"

#include "common/common.h"
#include "options.h"
#include "printable.h"
#include "reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_MAX 32 /* bytes of it that are shown */
/* In one database; beyond that it is no number of keys, and sums of them would not be right. */
#define KEYS_MAX (1ULL << 48)

/* ---- INFO ------------------------------------------------------------------------------------ */

/* The text behind "name:" at the start of a line; NULL: there is none. */
static const char *field(const char *info, const char *name) {
    size_t len = strlen(name);
    for (const char *line = info; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ':') return line + len + 1;
    }
    return NULL;
}

static bool is(const char *info, const char *name, const char *value) {
    const char *found = field(info, name);
    return found && strncmp(found, value, strlen(value)) == 0;
}

static void read_version(server *s, const char *info) {
    const char *valkey = field(info, "valkey_version");
    const char *version = valkey ? valkey : field(info, "redis_version");
    if (!version) fail(1, "the server does not tell its version: is it Redis?");
    long major = 0, minor = 0;
    sscanf(version, "%4ld.%4ld", &major, &minor);
    s->valkey = valkey != NULL;
    s->version = 100 * major + minor;
    size_t len = strcspn(version, "\r\n");
    char *shown = printable(version, len < VERSION_MAX ? len : VERSION_MAX);
    snprintf(s->name, sizeof s->name, "%s %s", valkey ? "Valkey" : "Redis", shown);
    free(shown);
}

/* "db0:keys=12,expires=3,avg_ttl=0"; true if other databases than `only` have keys. */
static bool read_databases(server *s, const char *info, long only) {
    bool others = false;
    for (const char *line = info; line; line = strchr(line, '\n')) {
        database d;
        line += *line == '\n';
        if (sscanf(line, "db%ld:keys=%" SCNu64 ",expires=%" SCNu64, &d.number, &d.keys,
                   &d.expiring) != 3 ||
            d.keys == 0)
            continue;
        if (d.keys > KEYS_MAX) fail(1, "INFO: the server tells of %" PRIu64 " keys", d.keys);
        if (only != ALL_DATABASES && d.number != only) {
            others = true;
            continue;
        }
        s->databases = reallocate(s->databases, (s->count + 1) * sizeof d);
        s->databases[s->count++] = d;
        s->keys += d.keys;
        s->expiring += d.expiring;
    }
    return others;
}

/* ---- MEMORY STATS ---------------------------------------------------------------------------- */

/* The sum of the members of a flat list of names and numbers whose names begin like this. */
static uint64_t sum_of(const redisReply *list, const char *start) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 1 < list->elements; i += 2) {
        const redisReply *name = list->element[i], *number = list->element[i + 1];
        if (name->str && number->type == REDIS_REPLY_INTEGER &&
            strncmp(name->str, start, strlen(start)) == 0)
            sum += (uint64_t)number->integer;
    }
    return sum;
}

/* What is neither the server's own nor its clients', and the tables by which keys are found. */
static uint64_t keyspace_bytes(connection *c) {
    connection_send_text(c, "MEMORY STATS");
    redisReply *stats = connection_reply(c);
    uint64_t bytes = 0;
    if (stats->type == REDIS_REPLY_ARRAY) {
        bytes = sum_of(stats, "dataset.bytes");
        for (size_t i = 0; i < stats->elements; i++)
            if (stats->element[i]->type == REDIS_REPLY_ARRAY)
                bytes += sum_of(stats->element[i], "overhead.hashtable");
    }
    freeReplyObject(stats);
    return bytes;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static long primaries(connection *c) {
    connection_send_text(c, "CLUSTER INFO");
    redisReply *reply = connection_reply(c);
    const char *size = reply->type == REDIS_REPLY_STRING ? field(reply->str, "cluster_size") : NULL;
    long count = size ? strtol(size, NULL, 10) : 0;
    freeReplyObject(reply);
    return count;
}

/* With prefixes records are keys to those who ask, and count as if they were none of ckv's. */
static void look_for_ckv(server *s, connection *c, const char *info) {
    if (!strstr(info, "module:name=ckv,")) return;
    connection_send_text(c, "INFO ckv");
    redisReply *reply = connection_answer(c, "INFO");
    const char *ckv = reply_text(reply, "INFO", SIZE_MAX);
    const char *records = field(ckv, "ckv_records");
    s->records = records ? strtoull(records, NULL, 10) : 0;
    bool served = !is(ckv, "ckv_prefixes", "\r") || !is(ckv, "ckv_prefixes_leaving", "\r");
    if (s->records > 0 && served)
        fail(1,
             "ckv is at work in this server: what its %" PRIu64
             " records take, INFO ckv tells (ckv_bytes_per_record, ckv_compression_ratio)",
             s->records);
    freeReplyObject(reply);
}

/* A replica that has never had its primary's data has nothing to tell. */
static void look_at_replica(server *s, const char *info, bool others) {
    s->stale = is(info, "role", "slave") && is(info, "master_link_status", "down");
    if (s->stale && s->keys == 0 && !others)
        fail(1, "the replica has no keys and no connection to its primary: try again later");
}

/* A command that is of use where it is known and allowed. */
static void try(connection *c, const char *command) {
    connection_send_text(c, command);
    freeReplyObject(connection_reply(c));
}

/* Without it the replica of a cluster answers about no key. */
static void read_from_replica(connection *c) {
    connection_send_text(c, "READONLY");
    freeReplyObject(connection_answer(c, "READONLY"));
}

void server_look(server *s, connection *c, long only) {
    *s = (server){0};
    connection_send_text(c, "INFO");
    redisReply *reply = connection_answer(c, "INFO");
    const char *info = reply_text(reply, "INFO", SIZE_MAX);
    if (is(info, "loading", "1")) fail(1, "the server is loading its data: try again later");
    read_version(s, info);
    bool others = read_databases(s, info, only);
    look_at_replica(s, info, others);
    look_for_ckv(s, c, info);
    s->cluster = is(info, "cluster_enabled", "1");
    if (s->cluster) s->primaries = primaries(c);
    if (s->cluster && is(info, "role", "slave")) read_from_replica(c);
    if (!others) s->keyspace_bytes = keyspace_bytes(c);
    /* From Redis 7.2 on: what is read here is not taken for used. */
    try(c, "CLIENT NO-TOUCH on");
    freeReplyObject(reply);
}

void server_free(server *s) {
    free(s->databases);
}
