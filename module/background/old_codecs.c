/* old_codecs.c: see old_codecs.h. */
#include "background/old_codecs.h"

#include "background/train.h"
#include "keyspace/maps.h"
#include "server/clock.h"

#define EMPTY_MS 1000 /* that a store must be empty */

/* Values on their way to or from the keyspace are come by in no pass. */
void old_codecs_free(void) {
    codecs *all = &ckv.shared.codecs;
    if (maps_any_unlisted()) return;
    for (int i = 1; i < CODECS_MAX; i++)
        if (codecs_get(all, (uint8_t)i) && i != codecs_current_id(all))
            codecs_remove(all, (uint8_t)i);
}

void old_codecs_of_empty_store(void) {
    static int64_t empty_ms;
    static bool used;
    if (maps_any() || train_running()) {
        used = true;
        empty_ms = 0;
    } else if (!empty_ms) {
        empty_ms = clock_now_ms();
    } else if (used && clock_now_ms() - empty_ms >= EMPTY_MS) {
        map_shared_clear(&ckv.shared);
        used = false;
    }
}
