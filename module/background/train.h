/*
 * train.h: learning a codec from what is stored.
 *
 *      idle -> sampling --> learning, trial -> idle
 *              main thread, another
 *              in slices    thread
 *
 * Nothing is learned from the first megabyte of data (ckv.train-after); then again whenever the
 * data has grown fourfold, or by a quarter and nothing is written for a while, and when what is
 * written compresses more than 10% worse than the codec promised when it was learned. What comes of
 * it is taken if it is worth encoding everything again, see trial.h, or if a client has asked for
 * it. A codec that takes much more than its share of the data, of which most has been deleted, or
 * of ckv.maxmemory, which has been lowered, is replaced by a smaller one, or by none. Where there
 * is nothing to learn from, as if all values are too long for it, nothing is tried until the data
 * has grown or changed; after a training that failed, for a minute. Where half of the data goes
 * while it is learned from, or a file takes its place, the training is given up.
 */
#ifndef CKV_TRAIN_H
#define CKV_TRAIN_H

#include "redismodule.h"

#include <stdbool.h>
#include <stdint.h>

/* Once, at load. */
void train_start(void);

/* Goes on with a training, or starts one that is due; samples at most until `deadline_us`
 * (monotonic). True if a codec has just come into use. */
bool train_step(uint64_t deadline_us);

/* A codec that has come with a map: is gone on with if nothing has been learned here, and if the
 * map is still there by the next step. */
void train_offer(uint8_t id);

/* Starts one now, or when the one that runs has ended; the client is answered when it is in use. */
int train_now(RedisModuleCtx *ctx);

/* True while a training runs. */
bool train_running(void);

#endif
