/*
 * store.h: what strings of the sample take in a server with ckv: one is imitated.
 *
 * Its maps are module/core's, with as many records in each as there will be in the server, so that
 * buckets and pages are as full as they will be there: fewer maps, as there are fewer records. What
 * is stored has been stored already when the last dictionary is learned, and is written anew with
 * it, as a server does that has come to rest.
 */
#ifndef ESTIMATE_STORE_H
#define ESTIMATE_STORE_H

#include "selection.h"

/* What is known of a string of the sample after that; all 0: it was not stored. */
typedef struct stored {
    float bytes; /* with its share of pages and directories; without one of dictionaries */
    float encoded, encode_us, decode_us;
} stored;

typedef struct store_figures {
    stored *all;        /* as many as the sample has keys */
    double fixed_bytes; /* dictionaries and what encodes, which do not grow with the store */
    /* What the encoded values may be off by, bytes in the whole store, because less was learned
     * from than the server will learn from. */
    double doubt_bytes;
} store_figures;

void store_imitate(store_figures *figures, const sample *s, const server *from);
void store_figures_free(store_figures *figures);

#endif
