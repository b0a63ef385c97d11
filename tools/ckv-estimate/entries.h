/*
 * entries.h: the strings that are stored in the imitated server, under keys that have as many
 * neighbours as in the real one.
 *
 * Of a hundred neighbours a sample of one key in forty has two or three, and each would have to
 * pay for a stem that they share in the server. So where neighbours were counted (neighbours.h),
 * the strings of a family are given keys anew: groups of the sizes that were found, with the stems
 * and the suffixes of sampled keys.
 *
 *      sampled        id:104711   id:211342   id:387705        groups of 3
 *      stored under   id:104711   id:104712   id:104713
 */
#ifndef ESTIMATE_ENTRIES_H
#define ESTIMATE_ENTRIES_H

#include "selection.h"

typedef struct entry {
    size_t sampled; /* its index in the sample */
    char *key;
    uint32_t len;
    uint32_t place; /* which of the maps, from 0 */
} entry;

typedef struct entries {
    entry *all;
    size_t count;
    uint32_t places; /* maps that there may be: as large a part of the server's as this is of it */
} entries;

void entries_make(entries *r, const sample *s, const selection *chosen, const server *from);
void entries_free(entries *r);

#endif
