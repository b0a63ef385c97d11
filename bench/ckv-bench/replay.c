/* The life of a cache on a server, three runs of this program. Between them the server may come to
 * rest: until it is aged, nothing expires.
 *
 *   fill    stores what the cache holds, pipelined, what is asked for most at last
 *   age     lets each object expire when it will
 *   replay  requests at a steady rate, one at a time on a connection
 *
 * What an application would do because of a reply follows it on the same connection: a set after a
 * miss, a time to live for a counter that an increment began. A request that finds all connections
 * busy waits, and that is counted: latencies are from the time when it was due.
 *
 * Several of these runs may take turns of a quarter of a second, so that what else the machine does
 * hits their servers alike. The clock says whose turn it is.
 */
#include "bench.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define DAY_MS  86400000
#define TURN_NS 250000000u

typedef struct {
    const Options *options;
    Plan plan;
    Objects objects;
} Replay;

static void replay_init(Replay *r, const Options *o, const Records *records) {
    r->options = o;
    r->plan = cache_plan(&o->cache, (uint64_t)o->records, (double)o->rate / (double)o->turns);
    objects_init(&r->objects, &o->cache, &r->plan, o->random_values ? NULL : records);
}

/* --- commands --- */

static void append(redisContext *redis, int count, const char **words, const size_t *lengths) {
    if (redisAppendCommandArgv(redis, count, words, lengths) != REDIS_OK) fail(1, "out of memory");
}

static void flush(redisContext *redis) {
    for (int done = 0; !done;)
        if (redisBufferWrite(redis, &done) != REDIS_OK) fail(1, "%s", redis->errstr);
}

/* `command` key milliseconds */
static void append_with_time(Replay *r, redisContext *redis, const char *command, uint64_t object,
                             long ms) {
    char key[CACHE_KEY_SIZE], time[24];
    size_t lengths[3] = {strlen(command), object_key(&r->objects, key, object)};
    lengths[2] = (size_t)snprintf(time, sizeof time, "%ld", ms);
    append(redis, 3, (const char *[]){command, key, time}, lengths);
}

/* SET key value PX ms [NX] */
static void append_set(Replay *r, redisContext *redis, uint64_t object, unsigned version, long ms,
                       int add) {
    char key[CACHE_KEY_SIZE], time[24];
    Value value = object_value(&r->objects, object, version);
    const char *words[6] = {"SET", key, value.bytes};
    size_t lengths[6] = {3, object_key(&r->objects, key, object), value.length};
    int count = 3;
    if (ms) {
        words[count] = "PX";
        lengths[count++] = 2;
        words[count] = time;
        lengths[count++] = (size_t)snprintf(time, sizeof time, "%ld", ms);
    }
    if (add) {
        words[count] = "NX";
        lengths[count++] = 2;
    }
    append(redis, count, words, lengths);
}

/* --- fill, age --- */

/* Sends a part of a pipeline while the server works on the one before. */
#define PART 64

typedef void (*Send)(Replay *r, redisContext *redis, uint64_t object);

static void send_fill(Replay *r, redisContext *redis, uint64_t object) {
    append_set(r, redis, object, 0, r->options->cache.ttl_count ? DAY_MS : 0, 0);
}

static void send_age(Replay *r, redisContext *redis, uint64_t object) {
    append_with_time(r, redis, "PEXPIRE", object,
                     cache_ttl_left(&r->options->cache, &r->plan, mix(object)));
}

static redisReply *reply_of(redisContext *redis) {
    void *answer;
    if (redisGetReply(redis, &answer) != REDIS_OK) fail(1, "%s", redis->errstr);
    redisReply *reply = answer;
    if (reply->type == REDIS_REPLY_ERROR) fail(1, "the server answered: %s", reply->str);
    return reply;
}

static void receive_part(redisContext *redis, uint64_t count) {
    while (count-- > 0) freeReplyObject(reply_of(redis));
}

/* Returns how many objects there were. */
static uint64_t of_all(Replay *r, Send send) {
    redisContext *redis = redis_connect(r->options);
    uint64_t sent = 0, received = 0;
    for (uint64_t left = r->plan.ranks + r->plan.once; left-- > 0;) {
        if (!object_exists(&r->objects, left)) continue;
        send(r, redis, left);
        if (++sent % PART) continue;
        flush(redis);
        receive_part(redis, sent - PART - received);
        received = sent - PART;
    }
    flush(redis);
    receive_part(redis, sent - received);
    redisFree(redis);
    return sent;
}

static void report_all(Replay *r, const char *mode, Send send) {
    uint64_t began = now_ns(), sent = send ? of_all(r, send) : 0;
    printf("{\"mode\": \"%s\", \"objects\": %llu, \"seconds\": %.6f}\n", mode,
           (unsigned long long)sent, (double)(now_ns() - began) / 1e9);
}

void cache_fill(const Options *o, const Records *records) {
    Replay r;
    replay_init(&r, o, records);
    report_all(&r, "fill", send_fill);
    objects_free(&r.objects);
}

void cache_age(const Options *o, const Records *records) {
    Replay r;
    replay_init(&r, o, records);
    report_all(&r, "age", o->cache.ttl_count ? send_age : NULL);
    objects_free(&r.objects);
}

/* --- replay --- */

typedef struct {
    redisContext *redis;
    Request request;
    int follows;  /* a request of the application's own, because of what the one before found */
    uint64_t due; /* ns */
} Line;

typedef struct {
    Replay replay;
    Requests requests;
    Line *lines;
    struct pollfd *polled; /* of the lines in their order; an idle one's fd is -1 */
    size_t *idle, idle_count;
    uint64_t random;
    uint64_t began, turn; /* number of the turn that is under way, or of the last one */
    int under_way;
    uint64_t cpu_began, cpu; /* ns */
    uint64_t sent, done, hits, misses, asked[ASKS], followed;
    Histogram latency;
} Run;

static void send_request(Run *run, size_t at, Request request, int follows, uint64_t due) {
    static const char *const commands[ASKS] = {
        [ASK_GET] = "GET", [ASK_INCREMENT] = "INCR", [ASK_DELETE] = "DEL"};
    Line *line = &run->lines[at];
    Replay *r = &run->replay;
    const Cache *cache = &r->options->cache;
    line->request = request;
    line->follows = follows;
    line->due = due;
    uint64_t random = mix(run->random++);
    if (request.ask == ASK_SET || request.ask == ASK_ADD) {
        append_set(r, line->redis, request.object, (unsigned)(random % VERSIONS),
                   cache_ttl(cache, &r->plan, mix(random)), request.ask == ASK_ADD);
    } else if (follows) {
        append_with_time(r, line->redis, "PEXPIRE", request.object,
                         cache_ttl(cache, &r->plan, mix(random)));
    } else {
        char key[CACHE_KEY_SIZE];
        const char *command = commands[request.ask];
        size_t lengths[2] = {strlen(command), object_key(&r->objects, key, request.object)};
        append(line->redis, 2, (const char *[]){command, key}, lengths);
    }
    flush(line->redis);
    run->polled[at].fd = line->redis->fd;
}

/* Sends what an application would because of a reply, and tells whether there is such a thing. */
static int follow_up(Run *run, size_t at, const redisReply *reply, uint64_t now) {
    const Line *line = &run->lines[at];
    const Objects *objects = &run->replay.objects;
    Request request = line->request;
    if (line->follows) return 0;
    if (request.ask == ASK_GET && reply->type == REDIS_REPLY_NIL &&
        object_exists(objects, request.object))
        request.ask = object_is_counter(objects, request.object) ? ASK_ADD : ASK_SET;
    else if (request.ask != ASK_INCREMENT || reply->integer != 1 ||
             !run->replay.options->cache.ttl_count)
        return 0;
    send_request(run, at, request, 1, now);
    run->followed++;
    return 1;
}

static void take_reply(Run *run, size_t at, const redisReply *reply) {
    Line *line = &run->lines[at];
    uint64_t now = now_ns();
    if (reply->type == REDIS_REPLY_ERROR) fail(1, "the server answered: %s", reply->str);
    histogram_add(&run->latency, now - line->due);
    run->done++;
    if (!line->follows) run->asked[line->request.ask]++;
    if (line->request.ask == ASK_GET) {
        if (reply->type == REDIS_REPLY_STRING) {
            object_check(&run->replay.objects, line->request.object,
                         (Value){reply->str, (size_t)reply->len});
            run->hits++;
        } else {
            run->misses++;
        }
    }
    if (follow_up(run, at, reply, now)) return;
    run->polled[at].fd = -1;
    run->idle[run->idle_count++] = at;
}

static void read_line(Run *run, size_t at) {
    redisContext *redis = run->lines[at].redis;
    void *reply;
    if (redisBufferRead(redis) != REDIS_OK || redisGetReplyFromReader(redis, &reply) != REDIS_OK)
        fail(1, "%s", redis->errstr);
    if (!reply) return; /* not all of it has come yet */
    take_reply(run, at, reply);
    freeReplyObject(reply);
}

/* --- time --- */

/* Since the run began, of its own turns only. */
static uint64_t own_time(const Run *run) {
    return (uint64_t)((double)run->sent * 1e9 / (double)run->replay.options->rate);
}

static uint64_t due(const Run *run) {
    const Options *o = run->replay.options;
    uint64_t own = own_time(run), turn = own / TURN_NS;
    return run->began + (turn * (uint64_t)o->turns + (uint64_t)o->turn) * TURN_NS + own % TURN_NS;
}

/* Turns begin at multiples of their length on the clock that all processes share. */
static uint64_t first_round(const Options *o) {
    uint64_t round = TURN_NS * (uint64_t)o->turns;
    return (now_ns() / round + 1) * round;
}

/* Of the server's main thread. */
static uint64_t cpu_ns(const Options *o) {
    char path[64];
    unsigned long long ns = 0;
    if (!o->pid) return 0;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/schedstat", o->pid, o->pid);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%llu", &ns) != 1) fail(1, "cannot read %s", path);
    fclose(f);
    return ns;
}

static void begin_turn(Run *run) {
    if (run->under_way) return;
    run->under_way = 1;
    run->turn = own_time(run) / TURN_NS;
    run->cpu_began = cpu_ns(run->replay.options);
}

static void end_turn(Run *run) {
    if (!run->under_way) return;
    run->under_way = 0;
    run->cpu += cpu_ns(run->replay.options) - run->cpu_began;
}

/* Everything that is due is sent, and what has come meanwhile is read. */
static void step(Run *run, uint64_t total, nfds_t lines) {
    if (run->idle_count == lines && (run->sent == total || own_time(run) / TURN_NS != run->turn))
        end_turn(run);
    while (run->sent < total && run->idle_count > 0 && due(run) <= now_ns()) {
        begin_turn(run);
        uint64_t when = due(run);
        run->sent++;
        send_request(run, run->idle[--run->idle_count], requests_next(&run->requests), 0, when);
    }
    uint64_t now = now_ns(), next = due(run), wait = next > now ? next - now : 0;
    struct timespec time = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
    int for_ever = run->sent == total || run->idle_count == 0;
    if (ppoll(run->polled, lines, for_ever ? NULL : &time, NULL) < 0)
        fail(1, "cannot wait for replies");
    for (nfds_t at = 0; at < lines; at++)
        if (run->polled[at].fd >= 0 && run->polled[at].revents) read_line(run, at);
}

static void report(const Run *run, double seconds) {
    const Histogram *h = &run->latency;
    const uint64_t *n = run->asked;
    printf("{\"mode\": \"replay\", \"requests\": %llu, \"seconds\": %.6f, \"hits\": %llu, "
           "\"misses\": %llu,\n"
           " \"gets\": %llu, \"sets\": %llu, \"adds\": %llu, \"increments\": %llu, \"deletes\": "
           "%llu, \"follow_ups\": %llu,\n"
           " \"speed\": %g, \"cpu_us\": %.3f, \"us\": {\"median\": %.2f, \"p99\": %.2f, \"p999\": "
           "%.2f, \"max\": "
           "%.2f}}\n",
           (unsigned long long)run->done, seconds, (unsigned long long)run->hits,
           (unsigned long long)run->misses, (unsigned long long)n[ASK_GET],
           (unsigned long long)n[ASK_SET], (unsigned long long)n[ASK_ADD],
           (unsigned long long)n[ASK_INCREMENT], (unsigned long long)n[ASK_DELETE],
           (unsigned long long)run->followed, run->replay.plan.speed,
           (double)run->cpu / 1e3 / (double)run->done, (double)histogram_percentile(h, 50) / 1e3,
           (double)histogram_percentile(h, 99) / 1e3, (double)histogram_percentile(h, 99.9) / 1e3,
           (double)h->longest / 1e3);
}

void cache_replay(const Options *o, const Records *records) {
    Run *run = allocate(sizeof *run);
    size_t lines = (size_t)o->clients;
    replay_init(&run->replay, o, records);
    requests_init(&run->requests, &o->cache, &run->replay.plan, &run->replay.objects);
    run->lines = allocate(lines * sizeof *run->lines);
    run->polled = allocate(lines * sizeof *run->polled);
    run->idle = allocate(lines * sizeof *run->idle);
    for (size_t i = 0; i < lines; i++) {
        run->lines[i].redis = redis_connect(o);
        run->polled[i] = (struct pollfd){-1, POLLIN, 0};
        run->idle[run->idle_count++] = i;
    }
    prctl(PR_SET_TIMERSLACK, 1); /* ns: it is to wake up on time */
    run->began = first_round(o);
    while (run->sent < (uint64_t)o->operations || run->idle_count < lines)
        step(run, (uint64_t)o->operations, lines);
    end_turn(run);
    report(run, (double)(now_ns() - run->began) / 1e9);
    for (size_t i = 0; i < lines; i++) redisFree(run->lines[i].redis);
    requests_free(&run->requests);
    objects_free(&run->replay.objects);
    free(run->lines);
    free(run->polled);
    free(run->idle);
    free(run);
}
