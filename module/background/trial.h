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

/* Encodes what was kept with two codecs, which takes a quarter of a second or less. On any thread,
 * while nothing else of this is called. False: out of memory. */
bool trial_run(const codec *current, const codec *candidate, int zstd_level);

/* Per cent of what is stored that the second of those saves by what the first does. */
double trial_saved(const codec *current, const codec *candidate);

#endif
