/* rates.h: how many a second, of what is counted since the start. */
#ifndef CKV_RATES_H
#define CKV_RATES_H

typedef struct rates {
    double expired, evicted, encoded; /* records a second, lately */
} rates;

/* Often, but not more often than the timer does. */
void rates_tick(void);

rates rates_now(void);

#endif
