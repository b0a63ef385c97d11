/* maps.c: the list of all maps. See maps.h. */
#include "keyspace/maps.h"

#include "core/base/hash_slot.h"
#include "core/base/thread_local.h"
#include "keyspace/places.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static keyed_map *first, *last; /* of those that are listed */
static keyed_map *away;
static maps_cursor *cursors;
static uint64_t arrivals;
static _Atomic size_t alive;
static _Atomic uint64_t freed_aside;
static THREAD_LOCAL bool main_thread; /* which is where maps are made */

keyed_map *maps_wrap(map *m, uint32_t home) {
    keyed_map *s = RedisModule_Alloc(sizeof *s);
    *s = (keyed_map){.m = m, .home = home, .place = PLACES_NONE, .db = -1};
    atomic_fetch_add(&alive, 1);
    main_thread = true;
    return s;
}

void maps_free(keyed_map *s) {
    maps_unlist(s);
    if (!main_thread) atomic_fetch_add(&freed_aside, s->m->totals.records - 1);
    map_free(s->m);
    RedisModule_Free(s);
    atomic_fetch_sub(&alive, 1);
}

uint64_t maps_freed_aside(void) {
    return atomic_load(&freed_aside);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The maps of a database, by place, and what those that are served hold. */
typedef struct db_maps {
    keyed_map **at;     /* NULL: none yet */
    keyed_map **ranked; /* the same ones and those that they cover, in no order */
    uint32_t ranks, ranks_max;
    size_t hidden_count; /* of those that stand in the table */
    map_group *served;
    uint64_t marked_bytes; /* raw, by maps_mark() */
} db_maps;

static struct {
    db_maps *db;
    int dbs;
} table;

/* Where the map of a place stands in the table, NULL if there is no table for the database. */
static keyed_map **table_at(int db, uint32_t place) {
    if (db >= table.dbs || !table.db[db].at || place >= ckv.places) return NULL;
    return &table.db[db].at[place];
}

static db_maps *make_table(int db) {
    if (db >= table.dbs) {
        table.db = RedisModule_Realloc(table.db, (size_t)(db + 1) * sizeof *table.db);
        while (table.dbs <= db) table.db[table.dbs++] = (db_maps){0};
    }
    db_maps *d = &table.db[db];
    if (!d->at) {
        d->at = RedisModule_Calloc(ckv.places, sizeof *d->at);
        d->served = RedisModule_Calloc(1, sizeof *d->served);
    }
    return d;
}

keyed_map *maps_at(int db, uint32_t place) {
    keyed_map **at = table_at(db, place);
    return at ? *at : NULL;
}

static bool *hidden; /* by place; NULL: none */
static uint32_t hidden_places;
static uint64_t unhidden;
static map_group unserved; /* what the listed maps hold that are not served */
static uint64_t flushed_bytes;

/* Counts a listed map where it belongs now. */
static void join_group(keyed_map *s) {
    map_leave(s->m);
    map_join(s->m, maps_served(s) ? table.db[s->db].served : &unserved);
}

void maps_hide(uint32_t place, bool hide) {
    if (!hidden) hidden = RedisModule_Calloc(ckv.places, sizeof *hidden);
    if (hidden[place] == hide) return;
    hidden[place] = hide;
    hidden_places += hide ? 1 : -1;
    unhidden += !hide;
    for (int db = 0; db < table.dbs; db++) {
        keyed_map *s = maps_at(db, place);
        for (keyed_map *c = s; c; c = c->covered) table.db[db].hidden_count += hide ? 1 : -1;
        if (!s) continue;
        join_group(s);
        arrivals += !hide && s->m->totals.records > 0;
    }
}

bool maps_hidden(uint32_t place) {
    return hidden && hidden[place];
}

bool maps_any_hidden(void) {
    return hidden_places > 0;
}

uint64_t maps_unhidden(void) {
    return unhidden;
}

bool maps_served(const keyed_map *s) {
    return s->place != PLACES_NONE && !maps_hidden(s->place);
}

keyed_map *maps_served_at(int db, uint32_t place) {
    keyed_map *s = maps_at(db, place);
    return s && maps_served(s) ? s : NULL;
}

/* ---- tickets --------------------------------------------------------------------------------- */

/* Places of listed maps; those that are free are a chain. */
typedef struct ticket {
    keyed_map *of;
    uint32_t turn; /* how many maps have had the place before */
    uint32_t next_free;
} ticket;

static struct {
    ticket *at;
    uint32_t count, max, first_free; /* from 1; 0: none is */
} tickets;

static void give_ticket(keyed_map *s) {
    uint32_t i = tickets.first_free;
    if (i > 0) {
        tickets.first_free = tickets.at[i - 1].next_free;
    } else {
        if (tickets.count == tickets.max) {
            tickets.max += tickets.max / 4 + 16;
            tickets.at = RedisModule_Realloc(tickets.at, tickets.max * sizeof *tickets.at);
        }
        tickets.at[tickets.count] = (ticket){0};
        i = ++tickets.count;
    }
    s->ticket = i - 1;
    tickets.at[s->ticket].of = s;
    s->m->owner = (uint64_t)tickets.at[s->ticket].turn << 32 | s->ticket;
}

static void take_ticket(const keyed_map *s) {
    ticket *t = &tickets.at[s->ticket];
    t->of = NULL;
    t->turn++;
    t->next_free = tickets.first_free;
    tickets.first_free = s->ticket + 1;
}

map *maps_of_owner(uint64_t owner) {
    const ticket *t = &tickets.at[(uint32_t)owner];
    return t->of && t->turn == owner >> 32 ? t->of->m : NULL;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void enter_table(keyed_map *s) {
    db_maps *d = make_table(s->db);
    if (s->place == PLACES_NONE) return;
    d->hidden_count += maps_hidden(s->place);
    s->covered = d->at[s->place];
    d->at[s->place] = s;
    if (d->ranks == d->ranks_max) {
        d->ranks_max += d->ranks_max / 4 + 16;
        d->ranked = RedisModule_Realloc(d->ranked, d->ranks_max * sizeof(keyed_map *));
    }
    s->rank = d->ranks++;
    d->ranked[s->rank] = s;
}

/* A key may get a new map before it loses the old one, and lose the new one again: RESTORE with
 * REPLACE, refused after the payload has been read. */
static void leave_table(keyed_map *s) {
    db_maps *d = &table.db[s->db];
    if (s->place == PLACES_NONE) return;
    d->hidden_count -= maps_hidden(s->place);
    keyed_map *moved = d->ranked[--d->ranks];
    d->ranked[s->rank] = moved;
    moved->rank = s->rank;
    keyed_map **at = table_at(s->db, s->place);
    while (*at != s) at = &(*at)->covered;
    *at = s->covered;
    s->covered = NULL;
}

static uint32_t slot_of(const RedisModuleString *name) {
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    return places_are_slots() ? hash_slot_of_key(text, len) : 0;
}

void maps_list(keyed_map *s, int db, const RedisModuleString *name) {
    uint32_t place = places_of_name(name);
    maps_unlist(s);
    pthread_mutex_lock(&lock);
    if (s->m->totals.records == 0) s->home = place;
    s->db = db;
    s->place = place == s->home ? place : PLACES_NONE;
    s->slot = slot_of(name);
    s->previous = last;
    s->next = NULL;
    *(last ? &last->next : &first) = s;
    last = s;
    /* A cursor that has come to the end has not come by it: it may be where the map was unlisted.
     */
    for (maps_cursor *c = cursors; c; c = c->next)
        if (!c->at) c->at = s, c->bucket = 0;
    s->state = MAP_LISTED;
    give_ticket(s);
    arrivals += s->m->totals.records > 0;
    enter_table(s);
    join_group(s);
    pthread_mutex_unlock(&lock);
}

static void leave_list(keyed_map *s) {
    for (maps_cursor *c = cursors; c; c = c->next)
        if (c->at == s) *c = (maps_cursor){s->next, 0, c->pages_behind, c->next};
    leave_table(s);
    take_ticket(s);
    *(s->previous ? &s->previous->next : &first) = s->next;
    *(s->next ? &s->next->previous : &last) = s->previous;
    map_leave(s->m);
}

static void leave_away(keyed_map *s) {
    *(s->previous ? &s->previous->next : &away) = s->next;
    if (s->next) s->next->previous = s->previous;
}

static void unlist(keyed_map *s) {
    if (s->state == MAP_LISTED) leave_list(s);
    if (s->state == MAP_AWAY) leave_away(s);
    s->state = MAP_UNLISTED;
    s->place = PLACES_NONE;
}

void maps_unlist(keyed_map *s) {
    pthread_mutex_lock(&lock);
    unlist(s);
    pthread_mutex_unlock(&lock);
}

void maps_take_away(keyed_map *s) {
    pthread_mutex_lock(&lock);
    unlist(s);
    s->state = MAP_AWAY;
    s->previous = NULL;
    s->next = away;
    if (away) away->previous = s;
    away = s;
    pthread_mutex_unlock(&lock);
}

bool maps_next_away(uint32_t *home) {
    pthread_mutex_lock(&lock);
    while (away && away->home == PLACES_NONE) unlist(away); /* nowhere is it served */
    bool any = away != NULL;
    if (any) {
        *home = away->home;
        unlist(away);
    }
    pthread_mutex_unlock(&lock);
    return any;
}

uint64_t maps_arrivals(void) {
    return arrivals;
}

static uint64_t raw_bytes(const map_group *g) {
    return g ? g->totals.key_bytes + g->totals.value_bytes : 0;
}

void maps_mark(void) {
    flushed_bytes = 0;
    for (int db = 0; db < table.dbs; db++)
        table.db[db].marked_bytes = raw_bytes(table.db[db].served);
}

uint64_t maps_flushed_bytes(void) {
    return flushed_bytes;
}

static void note_flushed(db_maps *d) {
    uint64_t there = raw_bytes(d->served);
    flushed_bytes += there < d->marked_bytes ? there : d->marked_bytes;
    d->marked_bytes = 0;
}

void maps_unlist_db(int db) {
    for (int i = 0; i < table.dbs; i++)
        if (db < 0 || i == db) note_flushed(&table.db[i]);
    for (keyed_map *s = first, *next; s; s = next) {
        next = s->next;
        if (db < 0 || s->db == db) maps_unlist(s);
    }
}

void maps_unlist_slots(const bool *slots) {
    for (keyed_map *s = first, *next; s; s = next) {
        next = s->next;
        if (slots[s->slot]) maps_unlist(s);
    }
}

void maps_swap_db(int a, int b) {
    for (keyed_map *s = first; s; s = s->next) {
        if (s->db == a)
            s->db = b;
        else if (s->db == b)
            s->db = a;
    }
    make_table(a);
    make_table(b);
    db_maps of_a = table.db[a];
    table.db[a] = table.db[b];
    table.db[b] = of_a;
}

keyed_map *maps_ranked(int db, uint64_t i) {
    if (db >= table.dbs || table.db[db].ranks == 0) return NULL;
    return table.db[db].ranked[i % table.db[db].ranks];
}

int maps_dbs(void) {
    return table.dbs;
}

size_t maps_in_db(int db) {
    return db < table.dbs ? table.db[db].ranks : 0;
}

size_t maps_shown_in_db(int db) {
    return maps_in_db(db) - (db < table.dbs ? table.db[db].hidden_count : 0);
}

/* ---- ways over all of them ------------------------------------------------------------------- */

void maps_cursor_register(maps_cursor *c) {
    *c = (maps_cursor){.next = cursors};
    cursors = c;
}

void maps_cursor_start(maps_cursor *c) {
    c->at = first;
    c->bucket = 0;
    c->pages_behind = 0;
}

bool maps_cursor_next(maps_cursor *c, keyed_map **s, uint32_t *bucket) {
    while (c->at && c->bucket >= c->at->m->buckets) {
        c->pages_behind += c->at->m->totals.pages;
        c->at = c->at->next;
        c->bucket = 0;
    }
    if (!c->at) return false;
    *s = c->at;
    *bucket = c->bucket++;
    return true;
}

void maps_cursor_pass(maps_cursor *c) {
    if (c->at) c->bucket = c->at->m->buckets;
}

void maps_cursor_again(maps_cursor *c, const keyed_map *s, uint32_t bucket) {
    if (c->at == s) c->bucket = bucket;
}

uint64_t maps_cursor_pages_ahead(const maps_cursor *c) {
    uint64_t pages = maps_totals().totals.pages + unserved.totals.pages;
    return c->at && pages > c->pages_behind ? pages - c->pages_behind : 0;
}

bool maps_any(void) {
    return atomic_load(&alive) > 0;
}

map_group maps_totals_of(int db) {
    return db < table.dbs && table.db[db].served ? *table.db[db].served : (map_group){0};
}

map_group maps_totals(void) {
    map_group sum = {0};
    for (int db = 0; db < table.dbs; db++)
        if (table.db[db].served) map_group_add(&sum, table.db[db].served);
    return sum;
}

map_group maps_totals_unserved(void) {
    return unserved;
}

uint64_t maps_raw_bytes(void) {
    map_group all = maps_totals();
    return raw_bytes(&all);
}
