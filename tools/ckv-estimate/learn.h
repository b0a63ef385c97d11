/* learn.h: the dictionaries that a server would learn from the strings of the sample. */
#ifndef ESTIMATE_LEARN_H
#define ESTIMATE_LEARN_H

#include "codec/codec.h"
#include "entries.h"

/* Makes two codecs that are the same, in counted memory; NULL: the store is too small for any. */
void learn(const sample *s, const selection *chosen, const entries *stored, codec **first,
           codec **second);

#endif
