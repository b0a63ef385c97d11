/*
 * long_values.h: what is too long for us to make smaller stays the server's, as where strings move
 * in: to copy it takes a thousand times as long as to take it over.
 */
#ifndef CKV_LONG_VALUES_H
#define CKV_LONG_VALUES_H

#include "server/filter.h"
#include "transparent/catalogue.h"

/* Whether a command, whose keys are every step-th argument from the first to the last, sets such a
 * value, or changes a part of one that is the server's already: then it is the server's to run. A
 * value stands behind its key. */
bool long_values_stay(filtered *f, const catalogue_entry *e, int argc, int first, int last,
                      int step);

#endif
