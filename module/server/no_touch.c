/* no_touch.c: see no_touch.h. */
#include "server/no_touch.h"

#define KNOWN_MOST 64

static uint64_t clients[KNOWN_MOST]; /* 0: none */
static unsigned known, latest;

static uint64_t *find(uint64_t client) {
    for (unsigned i = 0; i < KNOWN_MOST; i++)
        if (clients[i] == client) return &clients[i];
    return NULL;
}

void no_touch_note(uint64_t client, bool on) {
    uint64_t *found = known > 0 ? find(client) : NULL;
    if (on == (found != NULL)) return;
    uint64_t *cell = on ? find(0) : found;
    if (!cell) cell = &clients[latest++ % KNOWN_MOST];
    known += on && *cell == 0;
    known -= !on;
    *cell = on ? client : 0;
}

bool no_touch(RedisModuleCtx *ctx) {
    return known > 0 && find(RedisModule_GetClientId(ctx)) != NULL;
}
