/*
 * client_list.h: what the server's CLIENT LIST tells of its clients. Main thread.
 *
 *     id=3 addr=127.0.0.1:49152 ... name= age=5 flags=x db=0 ... cmd=client|list user=default
 *
 * A name of a client has no blanks, so that no field is taken for another.
 */
#ifndef CKV_CLIENT_LIST_H
#define CKV_CLIENT_LIST_H

#include "redismodule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct listed_client {
    uint64_t id;
    const char *flags;   /* a letter each */
    const char *command; /* the last that ran, by its own name; empty where the server tells none */
    size_t flags_len, command_len;
} listed_client;

/* The client is the listener's for as long as it runs. */
typedef void client_listener(RedisModuleCtx *ctx, const listed_client *client, void *data);

/* Tells of client `id`, if it is connected; 0: of all. False: the server doesn't say. */
bool client_list(RedisModuleCtx *ctx, uint64_t id, client_listener *told, void *data);

bool listed_client_has(const listed_client *client, char flag);

#endif
