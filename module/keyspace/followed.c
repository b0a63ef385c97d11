/* followed.c: see followed.h. */
#include "keyspace/followed.h"

#include "keyspace/places.h"
#include "keyspace/prefixes.h"
#include "keyspace/untold.h"
#include "server/own_call.h"
#include "server/pause.h"
#include "server/role.h"

#include <string.h>

/* What replicas know that serves, by the stream or a file that it goes on behind. NULL: nobody can
 * tell. */
static char *known;

static void note_known(const char *text, size_t len) {
    RedisModule_Free(known);
    known = NULL;
    if (!text) return;
    known = RedisModule_Alloc(len + 1);
    memcpy(known, text, len);
    known[len] = 0;
}

static bool owed; /* replicas are to be told, from between commands */

void followed_changed(void) {
    const char *serving = prefixes_text(PREFIX_SERVING);
    bool primary = places_are_slots() && !role_follows(ckv.ctx);
    owed = primary && (!known || strcmp(known, serving) != 0);
    if (owed) pause_at_end();
}

bool followed_owes(void) {
    return owed;
}

void followed_tell(void) {
    if (!owed || !untold_may_tell() || role_follows(ckv.ctx)) return;
    const char *serving = prefixes_text(PREFIX_SERVING);
    owed = false;
    note_known(serving, strlen(serving));
    own_call_drop(own_call(ckv.ctx, "cprefixes", "!c", serving));
}

/* Whoever comes to follow goes on by what all have been told last, or gets a file. */
static void on_role(bool follows) {
    owed = false;
    if (follows) {
        if (known && places_are_slots()) prefixes_follow(known, strlen(known));
        return;
    }
    if (prefixes_follow_setting() && prefixes_any_in(PREFIX_LEAVING))
        ckv_log("warning",
                "this server is a primary now, by its own ckv.prefixes: strings under others move "
                "out: %s",
                prefixes_text(PREFIX_LEAVING));
    followed_changed();
}

void followed_start(void) {
    note_known("", 0);
    role_listen(on_role);
}

void followed_loading(bool began) {
    if (began) {
        note_known("", 0);
        prefixes_follow_setting();
    } else {
        followed_changed();
    }
}

void followed_of_file(const char *text, size_t len) {
    size_t n;
    const char *serving = prefixes_serving_of(text, len, &n);
    note_known(serving, n);
    if (serving && role_mirrors()) prefixes_follow(serving, n);
}

void followed_told(const char *text, size_t len) {
    note_known(text, len);
    prefixes_follow(text, len);
}
