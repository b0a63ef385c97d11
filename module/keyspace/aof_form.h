/*
 * aof_form.h: in which words the AOF is told of records under a prefix.
 *
 * Commands of an AOF are carried out without the filter that serves them from ckv
 * (server/filter.h). A plain SET in it makes a native string; so as long as the file that the AOF
 * begins with holds no records, plain commands are right, and a server without the module can load
 * them. Where it does (an RDB preamble), a plain INCR or DEL would miss the record, so the AOF
 * alone is told to move records out before:
 *
 *      CPLAIN 1 DEL key key                  every argument is a key
 *      CPLAIN 2 MSET key value key value     every second one
 *
 * That is right in any case: behind any file, with any prefixes, or none, set by then.
 */
#ifndef CKV_AOF_FORM_H
#define CKV_AOF_FORM_H

#include "ckv.h"

/* A child has been born, or is gone. */
void aof_form_fork(RedisModuleCtx *ctx, bool born);

/* Records have come with a file, or been made by the commands of one. */
void aof_form_records_loaded(void);

/* Whether there is an AOF that needs CPLAIN and CMOVEOUT. */
bool aof_form_own(RedisModuleCtx *ctx);

#endif
