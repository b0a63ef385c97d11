/* machine.h: the machine that the server runs on. */
#ifndef CKV_MACHINE_H
#define CKV_MACHINE_H

#include <stdint.h>

/* Bytes of memory that there are, or that the server's control group or one around it may take, if
 * that has a lower limit; as of the first call. 0: the system does not say. */
uint64_t machine_bytes(void);

/* Bytes that could be taken while a tenth of all memory stays available, and a tenth of what the
 * server's control group and those around it may take, where they have a limit; as of a moment ago.
 * As much as one likes where the system does not say. */
int64_t machine_spare_bytes(void);

#endif
