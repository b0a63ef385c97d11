/* clock.h: what time it is. */
#ifndef CKV_CLOCK_H
#define CKV_CLOCK_H

#include <stdint.h>

/* The server's clock, ms since 1970; within a command, a transaction and a script it stands still.
 */
int64_t clock_now_ms(void);

/* A clock for measuring, us. */
uint64_t clock_monotonic_us(void);
/* One that stands still while this thread does not run, us. */
uint64_t clock_thread_us(void);

#endif
