/* maps.c: the list of all maps. See maps.h. */
#include "keyspace/maps.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static keyed_map *first, *last;
static maps_cursor *cursors;
static size_t listed;
static _Atomic size_t alive;

keyed_map *maps_wrap(map *m) {
    keyed_map *s = RedisModule_Alloc(sizeof *s);
    *s = (keyed_map){.m = m, .db = -1};
    atomic_fetch_add(&alive, 1);
    return s;
}

void maps_free(keyed_map *s) {
    maps_unlist(s);
    map_free(s->m);
    RedisModule_Free(s);
    atomic_fetch_sub(&alive, 1);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The maps of a database, by place. */
typedef struct db_maps {
    keyed_map **at; /* NULL: none yet */
    size_t count;
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
    if (!d->at) d->at = RedisModule_Calloc(ckv.places, sizeof *d->at);
    return d;
}

keyed_map *maps_at(int db, uint32_t place) {
    keyed_map **at = table_at(db, place);
    return at ? *at : NULL;
}

static bool *hidden; /* by place; NULL: none */

void maps_hide(uint32_t place, bool hide) {
    if (!hidden) hidden = RedisModule_Calloc(ckv.places, sizeof *hidden);
    hidden[place] = hide;
}

bool maps_served(const keyed_map *s) {
    return s->place != MAPS_NO_PLACE && !(hidden && hidden[s->place]);
}

keyed_map *maps_served_at(int db, uint32_t place) {
    keyed_map *s = maps_at(db, place);
    return s && maps_served(s) ? s : NULL;
}

/* ---- the list -------------------------------------------------------------------------------- */

void maps_list(keyed_map *s, int db, uint32_t place) {
    maps_unlist(s);
    pthread_mutex_lock(&lock);
    s->db = db;
    s->place = place;
    s->previous = last;
    s->next = NULL;
    *(last ? &last->next : &first) = s;
    last = s;
    s->listed = true;
    listed++;
    if (place != MAPS_NO_PLACE) {
        db_maps *d = make_table(db);
        d->count += d->at[place] == NULL;
        d->at[place] = s;
    }
    pthread_mutex_unlock(&lock);
}

void maps_unlist(keyed_map *s) {
    pthread_mutex_lock(&lock);
    if (s->listed) {
        for (maps_cursor *c = cursors; c; c = c->next)
            if (c->at == s) *c = (maps_cursor){s->next, 0, c->next};
        keyed_map **at = table_at(s->db, s->place);
        if (at && *at == s) {
            *at = NULL;
            table.db[s->db].count--;
        }
        *(s->previous ? &s->previous->next : &first) = s->next;
        *(s->next ? &s->next->previous : &last) = s->previous;
        s->listed = false;
        listed--;
    }
    pthread_mutex_unlock(&lock);
}

void maps_unlist_db(int db) {
    for (keyed_map *s = first, *next; s; s = next) {
        next = s->next;
        if (db < 0 || s->db == db) maps_unlist(s);
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

size_t maps_in_db(int db) {
    return db < table.dbs ? table.db[db].count : 0;
}

/* ---- ways over all of them ------------------------------------------------------------------- */

void maps_cursor_register(maps_cursor *c) {
    *c = (maps_cursor){.next = cursors};
    cursors = c;
}

void maps_cursor_start(maps_cursor *c) {
    c->at = first;
    c->bucket = 0;
}

bool maps_cursor_next(maps_cursor *c, keyed_map **s, uint32_t *bucket) {
    while (c->at && c->bucket >= c->at->m->buckets) {
        c->at = c->at->next;
        c->bucket = 0;
    }
    if (!c->at) return false;
    *s = c->at;
    *bucket = c->bucket++;
    return true;
}

void maps_cursor_again(maps_cursor *c, const keyed_map *s, uint32_t bucket) {
    if (c->at == s) c->bucket = bucket;
}

uint64_t maps_cursor_pages_ahead(const maps_cursor *c) {
    uint64_t pages = 0;
    for (const keyed_map *s = c->at; s; s = s->next) pages += s->m->totals.pages;
    return pages;
}

bool maps_any_unlisted(void) {
    return atomic_load(&alive) != listed;
}

bool maps_any(void) {
    return atomic_load(&alive) > 0;
}

maps_sum maps_add_up(int db) {
    maps_sum sum = {0};
    for (keyed_map *s = first; s; s = s->next) {
        if (db >= 0 && (s->db != db || !maps_served(s))) continue;
        const map_totals *t = &s->m->totals;
        sum.totals.records += t->records;
        sum.totals.expiring += t->expiring;
        sum.totals.key_bytes += t->key_bytes;
        sum.totals.value_bytes += t->value_bytes;
        sum.totals.pages += t->pages;
        sum.totals.page_bytes += t->page_bytes;
        sum.totals.large += t->large;
        sum.totals.large_bytes += t->large_bytes;
        sum.maps++;
        sum.buckets += s->m->buckets;
    }
    return sum;
}
