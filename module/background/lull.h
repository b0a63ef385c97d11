/*
 * lull.h: whether nothing has been written for a while: time for work that may take all of a core.
 */
#ifndef CKV_LULL_H
#define CKV_LULL_H

#include <stdbool.h>

/* Asked with every slice: it is from when it was asked that it knows. */
bool lull(void);

#endif
