/* positions.h: where the keys of a served command are among its arguments. */
#ifndef CKV_POSITIONS_H
#define CKV_POSITIONS_H

#include "server/filter.h"
#include "transparent/catalogue.h"

/* Arguments `first` to `last`, each `step` behind the one before; false: it names none, or is not
 * well-formed, and the server's to refuse. */
bool positions_of(filtered *command, const catalogue_entry *entry, int argc, int *first, int *last,
                  int *step);

#endif
