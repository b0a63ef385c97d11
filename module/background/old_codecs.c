/* old_codecs.c: see old_codecs.h. */
#include "background/old_codecs.h"

#include "background/reencode.h"
#include "background/settle.h"
#include "background/train.h"
#include "keyspace/maps.h"
#include "keyspace/maxmemory.h"
#include "server/clock.h"

#define EMPTY_US 1000000 /* that a store must be empty */

/* Of an empty store the current one goes as well. */
static void clear_empty_store(void) {
    static uint64_t empty_us;
    static bool used;
    static uint64_t written; /* by the last time; a store may be filled and flushed in between */
    if (maps_any() || train_running() || settle_running() || reencode_running()) {
        used = true;
        empty_us = 0;
    } else if (!empty_us) {
        empty_us = clock_monotonic_us();
    } else if ((used || written != maxmemory_written()) &&
               clock_monotonic_us() - empty_us >= EMPTY_US) {
        map_shared_clear(&ckv.shared);
        written = maxmemory_written();
        used = false;
    }
}

void old_codecs_free(void) {
    codecs_remove_unused(&ckv.shared.codecs);
    clear_empty_store();
}
