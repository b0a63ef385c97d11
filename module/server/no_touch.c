/* no_touch.c: see no_touch.h. */
#include "server/no_touch.h"

#include <string.h>

#define KNOWN_MOST 64

static uint64_t clients[KNOWN_MOST]; /* the latest last */
static unsigned known;

/* Where a client is; `known`: nowhere. */
static unsigned find(uint64_t client) {
    unsigned i = 0;
    while (i < known && clients[i] != client) i++;
    return i;
}

static void forget(unsigned i) {
    known--;
    memmove(&clients[i], &clients[i + 1], (known - i) * sizeof *clients);
}

void no_touch_note(uint64_t client, bool on) {
    unsigned i = find(client);
    if (i < known) forget(i);
    if (on && known == KNOWN_MOST) forget(0);
    if (on) clients[known++] = client;
}

bool no_touch(RedisModuleCtx *ctx) {
    return known > 0 && find(RedisModule_GetClientId(ctx)) < known;
}
