/*
 * maps.h: all maps of this server, wherever they came from (a command, an RDB file, RESTORE, COPY).
 *
 * All records of a map belong to one place (places.h), its home. A map is listed while it is a
 * value of the keyspace. Under the name of its home it also stands in a table by database and
 * place, so that a command finds it without asking the server: the server tells us whenever a value
 * leaves its key. Under any other name it is inert (copied, renamed, restored there): it is kept,
 * saved and copied as a whole, and its pages follow the codecs; but none of its records is read,
 * announced, expired, evicted or counted, because another map has, or may have, other records of
 * their keys.
 *
 * The lock is for `free`, which the server may call on another thread; everything else happens on
 * the main thread.
 */
#ifndef CKV_MAPS_H
#define CKV_MAPS_H

#include "ckv.h"

/* The value of ckv's data type. */
typedef struct keyed_map {
    map *m;
    uint32_t home;  /* the place of all its records; PLACES_NONE: they are of several */
    uint32_t place; /* while it is listed: its home, or PLACES_NONE if it is inert */
    uint32_t slot;  /* of its Redis key, in a cluster */
    int db;
    enum { MAP_UNLISTED, MAP_LISTED, MAP_AWAY } state;
    struct keyed_map *previous, *next; /* of those in the same state */
    struct keyed_map *covered; /* that stood in the table before it, and is listed as well */
    uint32_t rank;             /* among those that stand in the table, in no order */
    uint32_t ticket;           /* its place among the tickets, while it is listed */
} keyed_map;

/* Wraps a map, which it owns from then on; not listed yet. */
keyed_map *maps_wrap(map *m, uint32_t home);
/* Any thread. */
void maps_free(keyed_map *s);
/* How many more records than maps other threads than the main one have freed, since the start. */
uint64_t maps_freed_aside(void);

/* The map is the value of the key of that name. */
void maps_list(keyed_map *s, int db, const RedisModuleString *name);
/* The listed map of a place, or NULL; not if it is inert. */
keyed_map *maps_at(int db, uint32_t place);
/* The i-th map, modulo their number, of those that stand in the table of a database, in no order
 * that means anything: by a random number each is as likely as any other. NULL: there is none. */
keyed_map *maps_ranked(int db, uint64_t i);
/* Databases that have, or had, a map: all below this number. */
int maps_dbs(void);
/* How many maps of a database stand in its table, and so are nobody's keys; how many of them, but
 * for those of hidden places. */
size_t maps_in_db(int db);
size_t maps_shown_in_db(int db);
void maps_unlist(keyed_map *s);

/* The server takes a map from its key, to free it or to put it under another one: until it is
 * listed or freed, or has been looked for, the map is away. */
void maps_take_away(keyed_map *s);
/* The home of a map that is away, which is to be looked for there. False: none is. */
bool maps_next_away(uint32_t *home);
/* How many maps with records have been listed since the start, or are hidden no longer: their pages
 * may be of any codec, and a walk may have passed them by. */
uint64_t maps_arrivals(void);

/* A listed map by the number that it is given as owner (map.h): whoever comes back with it later
 * can't meet another map at the same address. NULL: it is listed no longer. */
map *maps_of_owner(uint64_t owner);

/* While a place is hidden, its maps are another node's, which has not handed them over yet or has
 * taken them over. */
void maps_hide(uint32_t place, bool hidden);
bool maps_hidden(uint32_t place);
bool maps_any_hidden(void);
/* How often places have come to be hidden no more. */
uint64_t maps_unhidden(void);
/* Whether the records of a listed map are served here: it is neither inert nor hidden. What has not
 * been asked for by key (lists, counts, expiry) leaves out the others. */
bool maps_served(const keyed_map *s);
/* The listed map of a place if it is served, or NULL. */
keyed_map *maps_served_at(int db, uint32_t place);

/* FLUSHDB and FLUSHALL (db -1) take them all at once, without a word about each. */
void maps_unlist_db(int db);
/* In a cluster, all whose keys are in these slots (by slot, HASH_SLOTS of them), as of a database.
 */
void maps_unlist_slots(const bool *slots);
void maps_swap_db(int a, int b);

/* A way over all buckets of all listed maps, for work in slices: maps may come and go meanwhile.
 * What is there from start to end is met once; splits and merges may show a record twice. */
typedef struct maps_cursor {
    keyed_map *at; /* NULL: at the end */
    uint32_t bucket;
    uint64_t pages_behind;
    struct maps_cursor *next;
} maps_cursor;

/* Each cursor is registered once and lives as long as the module. */
void maps_cursor_register(maps_cursor *c);
void maps_cursor_start(maps_cursor *c);
/* The next bucket; false at the end. */
bool maps_cursor_next(maps_cursor *c, keyed_map **s, uint32_t *bucket);
/* Leaves out the rest of the map that the cursor has come to. */
void maps_cursor_pass(maps_cursor *c);
/* Comes by a bucket once more, if the cursor is still at its map. */
void maps_cursor_again(maps_cursor *c, const keyed_map *s, uint32_t bucket);
/* Pages of the maps that a cursor has not come by yet, about. */
uint64_t maps_cursor_pages_ahead(const maps_cursor *c);

/* Whether there are maps at all. */
bool maps_any(void);

/* What the maps hold that are served, in a database or in all; what the others hold that are
 * listed. At once. */
map_group maps_totals_of(int db);
map_group maps_totals(void);
map_group maps_totals_unserved(void);
/* Raw bytes of keys and values that are served. */
uint64_t maps_raw_bytes(void);
/* How many of those that were there at the last maps_mark() may have gone by maps_unlist_db(). */
void maps_mark(void);
uint64_t maps_flushed_bytes(void);

#endif
