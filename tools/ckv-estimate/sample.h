/*
 * sample.h: keys of the server, drawn at random, and what was asked about them.
 *
 * Where the sample would be more than half of the keys they are taken from SCAN, which goes over
 * them in the order of their hashes; else by RANDOMKEY, each once. At most FETCH_MAX bytes of a
 * value are fetched, and about SAMPLE_BYTES of all values: shared out among the databases by their
 * keys, and of each a batch at least. A pipeline asks about BATCH keys and for no more than some
 * megabytes, and the next one waits for its answers.
 */
#ifndef ESTIMATE_SAMPLE_H
#define ESTIMATE_SAMPLE_H

#include "family.h"
#include "options.h"
#include "server.h"

#define FETCH_MAX    (128u << 10)
#define SAMPLE_BYTES (64u << 20)

typedef struct sampled {
    char *key;
    uint32_t key_len;
    uint32_t database; /* its index in server->databases */
    size_t family;
    int64_t ttl_ms;     /* -1: it does not expire */
    uint64_t memory;    /* bytes, by MEMORY USAGE */
    char *value;        /* a string's first bytes */
    uint32_t fetched;   /* so many */
    uint64_t value_len; /* all of them */
    uint8_t group;      /* how many keys share its stem; 0: it was not asked */
    double weight;      /* of how many of the server's keys it stands for */
} sampled;

typedef struct sample {
    sampled *all;
    size_t count, max;
    families families;
    bool whole; /* all keys of the server */
} sample;

/* Ends the program if the server refuses, or the connection is lost. */
void sample_take(sample *s, connection *c, const server *from, const options *o);
void sample_free(sample *s);

#endif
