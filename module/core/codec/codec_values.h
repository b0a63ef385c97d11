/* codec_values.h: learning a dictionary for each kind of values. */
#ifndef CKV_CODEC_VALUES_H
#define CKV_CODEC_VALUES_H

#include "codec/codec.h"

/* Learns what kinds of values there are (kinds.h) and c->values of them, in at most `room` bytes of
 * memory, which it adds to c->bytes. `stored`: bytes of all values that will be encoded, of which
 * the `n` are samples. False: out of memory. */
bool codec_train_values(const mem *m, codec *c, const phrase_sample *values, size_t n, size_t room,
                        uint64_t stored);

#endif
