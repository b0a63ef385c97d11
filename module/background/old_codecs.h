/* old_codecs.h: freeing what was learned of data that is no longer stored so. */
#ifndef CKV_OLD_CODECS_H
#define CKV_OLD_CODECS_H

/* Frees the codecs that no page names any more, but not the current one: what an empty store has
 * learned goes after a while, because its data may never come back. Often, from the timer. */
void old_codecs_free(void);

#endif
