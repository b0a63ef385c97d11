/* rate.h: no more keys a second are asked about than may be. */
#ifndef ESTIMATE_RATE_H
#define ESTIMATE_RATE_H

typedef struct rate {
    double began, per_second; /* keys a second; 0: as fast as it goes */
    double keys;              /* that have been asked about */
} rate;

void rate_begin(rate *r, double per_second);
/* So many more keys were asked about: waits until others may be. */
void rate_keep(rate *r, double more);

#endif
