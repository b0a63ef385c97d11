/* old_codecs.h: freeing what was learned of data that is no longer stored so. */
#ifndef CKV_OLD_CODECS_H
#define CKV_OLD_CODECS_H

/* Frees all codecs but the current one, if no value can name one: to be called when a pass over all
 * pages has left none behind. */
void old_codecs_free(void);

/* What an empty store has learned is about data that may never come back: it goes after a while.
 * Often, from the timer. */
void old_codecs_of_empty_store(void);

#endif
