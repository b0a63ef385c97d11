/* serve_sort.h: SORT and SORT_RO with patterns. */
#ifndef CKV_SERVE_SORT_H
#define CKV_SERVE_SORT_H

#include "commands/commands.h"

/* As they run: what they sort may have changed since the filter saw them, as they were queued. The
 * server does the rest. */
command serve_sort;

#endif
