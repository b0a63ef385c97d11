/*
 * tables.h: what finds a server's keys: tables, and entries for keys and for their expiries.
 *
 * What that is the server tells as a whole; where it does not, it is taken for what Redis 7.0 does.
 * A table becomes smaller only when few of its keys are left, and takes as much as before if more
 * than these stay, as they are no strings: how few, the server's version tells.
 */
#ifndef ESTIMATE_TABLES_H
#define ESTIMATE_TABLES_H

#include "sample.h"

typedef struct overhead {
    double key, expiry; /* bytes a key, and more for one that expires */
    /* What the server has besides all that, if it is too much, or too little, to be tables: keys
     * that are not known, or what is no key. */
    double unknown;
} overhead;

overhead tables_overhead(const sample *s, const server *from);

/* The keys of a database that stay, those of them that expire, and those that move. */
typedef struct parting {
    double staying, expiring, moving;
} parting;

/* What keys that move leave behind in the tables of a database, bytes. */
double tables_left(const server *from, const database *d, const parting *keys);

#endif
