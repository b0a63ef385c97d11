/* uri.h: redis://[[user]:password@]host[:port][/database], rediss:// for TLS. */
#ifndef ESTIMATE_URI_H
#define ESTIMATE_URI_H

#include "address.h"

/* Sets what the address names; what it points to lives as long as the program. The database is left
 * as it is if there is none. False: it is none. */
bool uri_read(const char *text, address *to, long *database);

#endif
