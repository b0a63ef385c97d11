#include "bench.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    Connection *connection;
    uint64_t *numbers; /* the pipeline that is under way */
    size_t count;
    int writes;
    uint64_t began;
} Client;

typedef struct {
    const Options *options;
    Picker picker;
    uint64_t next, end; /* operations of this thread, numbered over all threads */
    uint64_t due;       /* the time of the next one, where there is a rate */
    Client *clients;
    size_t client_count;
    Histogram latency;
    _Atomic uint64_t done;
    pthread_t thread;
} Worker;

const char *const mode_names[] = {
    [MODE_LOAD] = "load", [MODE_READ] = "read", [MODE_MIXED] = "mixed",
    [MODE_FILL] = "fill", [MODE_AGE] = "age",   [MODE_REPLAY] = "replay"};

uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Reads and loads without --zipf go through the records in order, so that each is seen. */
static uint64_t pick(Worker *w, uint64_t operation) {
    const Options *o = w->options;
    if (o->mode == MODE_MIXED || o->cache.zipf > 0) return picker_next(&w->picker);
    return operation % (uint64_t)o->records;
}

/* Waits until a pipeline is due, and returns when its time begins: what is late waits for the
 * store, unless it is late because this thread was. */
static uint64_t wait_until_due(Worker *w, size_t count) {
    const Options *o = w->options;
    uint64_t now = now_ns(), due = w->due;
    if (!o->rate) return now;
    w->due += count * 1000000000u * (uint64_t)o->threads / (uint64_t)o->rate;
    if (now >= due) return due;
    struct timespec at = {.tv_sec = (time_t)(due / 1000000000u),
                          .tv_nsec = (long)(due % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    return now_ns();
}

static void start_pipeline(Worker *w, Client *c) {
    const Options *o = w->options;
    uint64_t left = w->end - w->next;
    c->count = left < (uint64_t)o->pipeline ? left : (uint64_t)o->pipeline;
    if (c->count == 0) return;
    c->writes =
        o->mode == MODE_LOAD || (o->mode == MODE_MIXED && w->next / (uint64_t)o->pipeline % 2 == 0);
    for (size_t i = 0; i < c->count; i++) c->numbers[i] = pick(w, w->next++);
    c->began = wait_until_due(w, c->count);
    o->kind->send(c->connection, c->writes, c->numbers, c->count);
}

static void finish_pipeline(Worker *w, Client *c) {
    w->options->kind->receive(c->connection, c->writes, c->numbers, c->count);
    histogram_add(&w->latency, now_ns() - c->began);
    atomic_fetch_add(&w->done, c->count);
}

/* Waits for one client's pipeline while those of the others are under way. */
static void *work(void *argument) {
    Worker *w = argument;
    size_t under_way;
    w->due = now_ns();
    do {
        under_way = 0;
        for (size_t i = 0; i < w->client_count; i++) {
            Client *c = &w->clients[i];
            if (c->count > 0) finish_pipeline(w, c);
            start_pipeline(w, c);
            under_way += c->count;
        }
    } while (under_way > 0);
    return NULL;
}

static void worker_open(Worker *w, const Options *o, const Records *records, long index) {
    uint64_t operations = (uint64_t)o->operations, threads = (uint64_t)o->threads;
    w->options = o;
    w->next = operations / threads * (uint64_t)index;
    w->end = index == o->threads - 1 ? operations : w->next + operations / threads;
    w->client_count = (size_t)(o->clients / o->threads + (index < o->clients % o->threads));
    w->clients = allocate(w->client_count * sizeof *w->clients);
    for (size_t i = 0; i < w->client_count; i++) {
        w->clients[i].connection = o->kind->open(o, records);
        w->clients[i].numbers = allocate((size_t)o->pipeline * sizeof(uint64_t));
    }
}

static void worker_close(Worker *w) {
    for (size_t i = 0; i < w->client_count; i++) {
        w->options->kind->close(w->clients[i].connection);
        free(w->clients[i].numbers);
    }
    free(w->clients);
}

static void show_progress(Worker *workers, const Options *o) {
    if (!isatty(2)) return;
    for (uint64_t done = 0, all = (uint64_t)o->operations; done < all; usleep(100000)) {
        done = 0;
        for (long i = 0; i < o->threads; i++) done += atomic_load(&workers[i].done);
        int filled = (int)(30 * done / all);
        fprintf(stderr, "\r\033[K%s [%.*s%.*s] %3d%%", o->server, filled,
                "##############################", 30 - filled, "..............................",
                (int)(100 * done / all));
    }
    fputs("\r\033[K", stderr);
}

static void report(const Options *o, const Records *records, const Histogram *h, double seconds) {
    static const struct {
        const char *name;
        double percent;
    } points[] = {{"median", 50}, {"p95", 95}, {"p99", 99}, {"p999", 99.9}, {"max", 100}};
    printf(
        "{\"server\": \"%s\", \"mode\": \"%s\", \"records\": %ld, \"operations\": %ld, "
        "\"threads\": %ld, \"clients\": %ld, \"pipeline\": %ld, \"ttl\": %ld, \"zipf\": %g,\n"
        " \"different_values\": %zu, \"seconds\": %.6f, \"per_second\": %.1f,\n \"pipeline_us\": {",
        o->server, mode_names[o->mode], o->records, o->operations, o->threads, o->clients,
        o->pipeline, o->ttl, o->cache.zipf, records->count, seconds,
        (double)o->operations / seconds);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        printf("%s\"%s\": %.2f", i ? ", " : "", points[i].name,
               (double)histogram_percentile(h, points[i].percent) / 1e3);
    puts("}}");
}

static void run(const Options *o, const Records *records) {
    Worker *workers = allocate((size_t)o->threads * sizeof *workers);
    Picker picker;
    picker_init(&picker, (uint64_t)o->records, o->cache.zipf, 0);
    for (long i = 0; i < o->threads; i++) {
        worker_open(&workers[i], o, records, i);
        workers[i].picker = picker;
        workers[i].picker.random = (uint64_t)i << 40;
    }
    uint64_t began = now_ns();
    for (long i = 0; i < o->threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            fail(1, "cannot start a thread");
    show_progress(workers, o);
    Histogram *all = allocate(sizeof *all);
    for (long i = 0; i < o->threads; i++) pthread_join(workers[i].thread, NULL);
    double seconds = (double)(now_ns() - began) / 1e9;
    for (long i = 0; i < o->threads; i++) {
        histogram_merge(all, &workers[i].latency);
        worker_close(&workers[i]);
    }
    report(o, records, all, seconds);
    free(all);
    free(workers);
}

int main(int argc, char **argv) {
    Options options;
    Records records;
    signal(SIGPIPE, SIG_IGN);
    options_parse(&options, argc, argv);
    records_read(&records, options.data);
    switch (options.mode) {
    case MODE_FILL:
        cache_fill(&options, &records);
        break;
    case MODE_AGE:
        cache_age(&options, &records);
        break;
    case MODE_REPLAY:
        cache_replay(&options, &records);
        break;
    default:
        run(&options, &records);
    }
    check_printed();
    records_free(&records);
    return 0;
}
