/*
 * encoders.h: the threads that encode what is young (settle.h), write pages anew (reencode.h), and
 * count what is uncounted (core/map/map_uncounted.h).
 *
 *      main thread                an encoder
 *
 *      encoders_give()     ----->  count, encode, write anew
 *      encoders_take_done() <----  done
 *
 * A batch belongs to one side at a time; the lists between them are under a lock. A batch holds
 * copies of values or pages, and keeps the codecs that it is for. So an encoder shares nothing else
 * with the main thread, whose functions these are; and whatever becomes of the maps meanwhile,
 * flushed or freed on another thread, is no concern of its.
 */
#ifndef CKV_ENCODERS_H
#define CKV_ENCODERS_H

#include "core/map/map_recode.h"
#include "core/map/map_settle.h"
#include "core/map/map_uncounted.h"

/* Values to encode. */
typedef struct encoder_job {
    young_batch batch;
    uint32_t swapped;         /* items that are in their maps again */
    size_t longest;           /* of its values, bytes */
    struct encoder_job *next; /* of a list of them */
} encoder_job;

/* So many threads are wanted: they come one by one, as there is something to do. If there are more
 * these leave; if none is wanted, what waits for them comes back as it is. */
void encoders_want(unsigned threads);

/* Whether somebody takes what is given. The system may refuse threads, for now or for good. */
bool encoders_there(void);

void encoders_give(encoder_job *j);
/* The first that none has begun with, if none of its values is longer than so many bytes. NULL: one
 * is, or there is none, as `any` tells. */
encoder_job *encoders_take_waiting(size_t longest, bool *any);
/* It comes back as if one were done with it. */
void encoders_done(encoder_job *j);
/* The first that they are done with; NULL: there is none. */
encoder_job *encoders_take_done(void);

/* It is counted before anything is encoded. */
void encoders_give_uncounted(uncounted_batch *b);
/* One that is counted; NULL: there is none. */
uncounted_batch *encoders_take_counted(void);

/* Pages to write anew: so many batches at most. Most turns are those of values. */
#define ENCODERS_PAGES_AWAY 8
void encoders_give_pages(recode_batch *b);
/* A batch that is done with, if only as no threads are wanted any more. NULL: there is none. */
recode_batch *encoders_take_pages(void);

#endif
