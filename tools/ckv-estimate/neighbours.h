/*
 * neighbours.h: how many keys share a stem (core/base/stem.h).
 *
 * A hundred neighbours cost ckv one stem. A sample of the keys shows few of them together, so some
 * keys of each family are asked for all of theirs, by EXISTS.
 */
#ifndef ESTIMATE_NEIGHBOURS_H
#define ESTIMATE_NEIGHBOURS_H

#include "sample.h"

/* Whether a key's record can share a stem: one with a long key is on its own. */
bool neighbours_share(const sampled *k);

/* Sets sampled.group of some strings of each family that has neighbours. */
void neighbours_ask(sample *s, connection *c, const server *from, const options *o);

#endif
