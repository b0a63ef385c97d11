/* server.h: what the server tells about itself. */
#ifndef ESTIMATE_SERVER_H
#define ESTIMATE_SERVER_H

#include "connection.h"

#include <stdint.h>

typedef struct database {
    long number;
    uint64_t keys, expiring;
} database;

#define SERVER_NAME 160

typedef struct server {
    char name[SERVER_NAME]; /* "Redis 7.0.15" */
    bool valkey;
    long version; /* 700 */
    bool cluster;
    bool stale;          /* a replica that has lost its primary */
    uint64_t records;    /* that are in ckv already, and no keys; 0: there is no ckv */
    long primaries;      /* of the cluster, 0: it is not told */
    database *databases; /* that are looked at, and have keys */
    size_t count;
    uint64_t keys, expiring; /* of them */
    /* Of used_memory, what keys and values of these databases take with all that finds them; 0: it
     * is not told. */
    uint64_t keyspace_bytes;
} server;

/* Asks about one database, or ALL_DATABASES. */
void server_look(server *s, connection *c, long only);
void server_free(server *s);

#endif
