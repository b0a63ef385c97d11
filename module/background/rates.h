/* rates.h: how many a second, of what ckv.stats counts. */
#ifndef CKV_RATES_H
#define CKV_RATES_H

typedef struct rates {
    double expired, evicted; /* records a second, lately */
} rates;

/* Often, but not more often than the timer does. */
void rates_tick(void);

rates rates_now(void);

#endif
