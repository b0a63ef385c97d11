/*
 * aof_form.h: in which words the AOF is told of records under a prefix.
 *
 * Commands of an AOF are carried out without the filter that serves them from ckv
 * (server/filter.h). A plain SET in it makes a native string; so as long as the file that the AOF
 * begins with holds no records, plain commands are right, and a server without the module can load
 * them. Where it does (an RDB preamble), a plain INCR or DEL would miss the record, so the AOF
 * alone is told that a command was served:
 *
 *      CPLAIN 1 DEL key key                  every argument is a key
 *      CPLAIN 2 MSET key value key value     every second one
 *
 * When it is loaded behind a file with records, it is served again, so that a server does not need
 * more memory to start than it had. Behind one without, the records among its keys move out and the
 * server's own command runs: plain commands may follow.
 *
 * In a cluster a map may come (RESTORE) and go (DEL, by its name) at any time, with all of a slot's
 * records: there every AOF is told so, and all is served again.
 *
 * Where a string comes to be while the file is loaded must not depend on the setting by then: plain
 * commands that follow were told by a server that had loaded it under another one, perhaps. So the
 * AOF is told of the prefixes as well, before the first command under them:
 *
 *      CPREFIXES "user: session:"            serving and leaving; as in an RDB file
 *
 * and while it is loaded all of them serve.
 */
#ifndef CKV_AOF_FORM_H
#define CKV_AOF_FORM_H

#include "ckv.h"

/* A child has been born, or is gone. */
void aof_form_fork(RedisModuleCtx *ctx, bool born);

/* A file is about to be loaded, which is an AOF, or not; a map has come with it. */
void aof_form_loading(bool from_aof);
void aof_form_map_loaded(void);

/* The file is loaded, and there are records; or some have come by RESTORE, of which an AOF is told
 * as well. */
void aof_form_has_records(void);

/* Something is told in our own words; prefixes have changed, so that what was told so before may be
 * a record of a prefix now. */
void aof_form_note_own(void);
void aof_form_prefixes_changed(void);

/* Whether the file that is being loaded, or was last, has brought records, or may. */
bool aof_form_file_had_records(void);

/* Whether the AOF has not been told yet of the prefixes there are; it is told now. */
bool aof_form_tells_prefixes(void);

/* Whether there is an AOF that needs CPLAIN and CMOVEOUT. */
bool aof_form_own(RedisModuleCtx *ctx);

#endif
