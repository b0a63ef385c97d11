/*
 * sampling.h: the records that a training learns from. Each value of its kind has the same chance,
 * in whatever database and beside whatever others it is stored.
 *
 *      first round: values by their share of all bytes, and stems of keys
 *      second one:  kinds of values that came to little by that: the first one tells how many
 *
 * The main thread takes them, in libc's memory; the thread that learns, while it does, may read and
 * forget them, and give back what they took.
 */
#ifndef CKV_SAMPLING_H
#define CKV_SAMPLING_H

#include "core/phrase/phrase.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values, below and from CODEC_LONG bytes, and stems of keys. */
typedef enum sampling_kind {
    SAMPLING_SHORTS,
    SAMPLING_LONGS,
    SAMPLING_KEYS,
    SAMPLING_KINDS
} sampling_kind;

/* Once, at load. */
void sampling_init(void);

/* Begins; `wanted` bytes of each kind of values are enough. `trial`: some records are kept from it
 * for trial.h. What was taken before must be forgotten. */
void sampling_start(bool trial, size_t wanted);

/* Goes on until a time, clock_monotonic_us(). False: there is more to do. */
bool sampling_step(uint64_t deadline_us);

size_t sampling_count(sampling_kind kind);

/* Writes the samples of a kind, whose bytes stay where they are, to an array; returns its new end.
 */
phrase_sample *sampling_append(phrase_sample *array, sampling_kind kind);

/* What was taken is not needed any more. Its memory is for the next sample, until it is given back:
 * some of it; false: there was none. */
void sampling_forget(void);
bool sampling_give_back(void);

#endif
