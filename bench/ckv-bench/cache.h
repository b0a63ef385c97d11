/* A cache as published statistics describe one: how its objects look, how often which is asked for,
 * and for what.
 *
 *   cache.c      the statistics: a row of a table, or the command line; what follows from them
 *   objects.c    keys and values
 *   requests.c   which object is asked for what
 *   replay.c     stores what such a cache holds, sends it requests at a steady rate
 */
#ifndef CKV_BENCH_CACHE_H
#define CKV_BENCH_CACHE_H

#include "common/common.h"
#include "random.h"

#define TTLS_MAX 16

typedef struct {
    double ms, share; /* the shares add up to 1 */
} Ttl;

/* What one asks for is a *request*; a *fresh* object is one that nobody has asked for before.
 * Shares are of all requests, but for what says otherwise. */
typedef struct {
    double key_bytes, value_bytes; /* on average */
    double spread;                 /* of the logarithm of the values' lengths */
    double zipf;
    double requests_per_object;
    double one_hit;                         /* share of the objects that are asked for once */
    double misses;                          /* share of the gets */
    double sets, increments, deletes, adds; /* the other requests are gets */
    Ttl ttls[TTLS_MAX];                     /* in the cache's own time */
    int ttl_count;                          /* 0: nothing expires */
} Cache;

/* What the statistics come to for so many objects and requests a second. */
typedef struct {
    double fresh;         /* share of the requests that are for a fresh object */
    double written_first; /* share of the fresh objects that are set; the others are got, missed,
                             and set then */
    double overwrites;    /* share of the requests that set an object which is no fresh one */
    double gets;
    double missing;  /* share of the gets times gets: the misses among all requests */
    double existing; /* share of the objects, and of the gets, that are not always missed */
    double counters; /* share of the objects that are numbers */
    double speed;    /* how many times faster time passes than in the statistics */
    uint64_t ranks;  /* objects that are asked for by Zipf's law */
    uint64_t once;   /* objects stored that nobody will ask for again */
} Plan;

extern const Cache cache_usual;

/* Texts that people write spread so: tweets 0.5, reviews 0.6, posts 0.4; rows that programs write
 * less. */
#define CACHE_SPREAD 0.5
/* Shares are published in per cent: what is told as none may be half of one. */
#define CACHE_ROUNDED 0.005

/* "1d:0.65, 14d:0.27"; ends the program if it is something else. */
void cache_set_ttls(Cache *cache, const char *text);
/* The row of a table (CSV, columns by name) whose `cluster` is `number`. */
void cache_read_row(Cache *cache, const char *path, long number);
Plan cache_plan(const Cache *cache, uint64_t objects, double rate);
/* The time that a new object lives, in the run's time; of one that is stored already, what is left
 * of it. Both in milliseconds, at least 1; 0: for ever. */
long cache_ttl(const Cache *cache, const Plan *plan, uint64_t random);
long cache_ttl_left(const Cache *cache, const Plan *plan, uint64_t random);

#define UUID_LENGTH 36
size_t uuid_write(char out[UUID_LENGTH + 1], uint64_t number);

#define CACHE_KEY_SIZE 512
#define VERSIONS       4 /* different values that an object may have */

typedef struct {
    const Cache *cache;
    const Plan *plan;
    const Records *records; /* NULL: values are random bytes */
    char *value;            /* the last one made */
    size_t longest;
} Objects;
void objects_init(Objects *o, const Cache *cache, const Plan *plan, const Records *records);
void objects_free(Objects *o);
size_t object_key(const Objects *o, char key[CACHE_KEY_SIZE], uint64_t object);
/* Valid until the next call. */
Value object_value(Objects *o, uint64_t object, unsigned version);
int object_exists(const Objects *o, uint64_t object);
int object_is_counter(const Objects *o, uint64_t object);
/* Ends the program if an object never had that value. */
void object_check(Objects *o, uint64_t object, Value got);

typedef enum { ASK_GET, ASK_SET, ASK_ADD, ASK_INCREMENT, ASK_DELETE, ASKS } Ask;
typedef struct {
    uint64_t object;
    Ask ask;
} Request;

typedef struct {
    const Cache *cache;
    const Plan *plan;
    const Objects *objects;
    Picker picker;
    uint64_t *ranked; /* the object at each rank */
    uint64_t next;    /* the next fresh object */
    uint64_t random;
} Requests;
void requests_init(Requests *r, const Cache *cache, const Plan *plan, const Objects *objects);
void requests_free(Requests *r);
Request requests_next(Requests *r);

#endif
