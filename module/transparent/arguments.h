/*
 * arguments.h: whether ours understands the arguments of a served command behind its keys. What it
 * does not is left to the server: options that we don't know, or that this server doesn't, and
 * times at which servers differ.
 */
#ifndef CKV_ARGUMENTS_H
#define CKV_ARGUMENTS_H

#include "server/filter.h"

#include <stdbool.h>

/* Of a command, by the name that it has in the catalogue, whose last key is argument `last`. */
bool arguments_known(filtered *command, const char *name, int argc, int last);

#endif
