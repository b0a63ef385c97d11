/*
 * trial.h: is what a training has learned worth encoding all that is stored again?
 *
 * Of the records that a training looks at some are kept from it. They are encoded with what it
 * learned and with the current codec: 1% of all that is stored, dictionaries included, must be
 * saved. A store that grows without changing would be encoded again for nothing at every training.
 */
#ifndef CKV_TRIAL_H
#define CKV_TRIAL_H

#include "core/codec/codec.h"

typedef enum trial_kind { TRIAL_KEY, TRIAL_VALUE, TRIAL_KINDS } trial_kind;

/* Forgets what was kept. */
void trial_clear(void);

/* Of a kind so many bytes of samples will come: what is kept is spread over all of them. */
void trial_start(trial_kind kind, size_t expected_bytes);

/* Whether these bytes of a record are kept for the trial: then nothing is to be learned of them. */
bool trial_keeps(trial_kind kind, const uint8_t *bytes, size_t len);

/* Goes on encoding what was kept, until `deadline_us` (monotonic). True: done. */
bool trial_step(const codec *candidate, uint64_t deadline_us);

/* Per cent of what is stored that the candidate would save, by a trial that is done. */
double trial_saved(const codec *candidate);

#endif
