/*
 * prefixes.h: which keys' strings live in ckv, unseen: the setting `ckv.prefixes`.
 *
 * A key matches a prefix that it begins with; "*" is a prefix of every key. A prefix is
 *
 *      serving   in the setting, or that of a primary: strings are written into ckv
 *      leaving   no longer in the setting, or came with a file: the records that are there are
 *                found, what is new is the server's own
 *
 * so no record is ever out of reach. One under which there was nothing any more is remembered, in
 * case a map comes from another node that has not forgotten it yet, until an application uses such
 * names for records of its own. docs/transparent.md tells users, transparent/serve.h how.
 */
#ifndef CKV_PREFIXES_H
#define CKV_PREFIXES_H

#include "ckv.h"

typedef enum prefix_state { PREFIX_NONE, PREFIX_LEAVING, PREFIX_SERVING } prefix_state;

/* Takes the setting, prefixes between blanks: those that it no longer names are leaving. False, and
 * nothing changed: *error says why. */
bool prefixes_set(const char *text, size_t len, const char **error);

/* Adds prefixes of a file, as prefixes_all() gave them: those that are not serving are leaving, and
 * the log says so. */
void prefixes_add_of_file(const char *text, size_t len);

/* A file begins to be loaded, or is loaded. Meanwhile those that are leaving serve as well: what
 * follows in an AOF relies on where a string has come to be, whatever the setting is by now. */
void prefixes_loading(bool began);

/* Those of a state between blanks; lives until they change. */
const char *prefixes_text(prefix_state state);
/* Those of both, for a file; the caller frees it. */
char *prefixes_all(void);
/* Of such a text the bytes about those that were serving; NULL: an older module, which did not tell
 * them apart, has written it. */
const char *prefixes_serving_of(const char *text, size_t len, size_t *serving);

/* From now on those of a text serve, whatever the setting is: see followed.h. */
void prefixes_follow(const char *text, size_t len);
/* Those of the setting, again. False: they do already. */
bool prefixes_follow_setting(void);
/* Is another one whenever that may be another text. */
uint64_t prefixes_version(void);

/* How often a prefix has come to be in a state: whoever moves strings sees that there is work. */
uint64_t prefixes_changes(prefix_state to);

/* Called from now on when they have changed. */
void prefixes_listen(void (*listener)(void));

/* Gives back what is kept of them: the module is not loaded after all. */
void prefixes_give_back(void);

/* Somebody has been given a cursor of SCAN, which the server by itself could not go on with: for a
 * minute nothing is forgotten. */
void prefixes_note_cursor(void);

/* Forgets those that are leaving, when it may: there are no records under them. */
void prefixes_forget_leaving(void);
/* A map has come: those that were forgotten since the start, and that a key of it begins with, are
 * leaving again. */
void prefixes_remember(map *m);
/* An application has made a record by a command of ours: of a name that matches none, what was
 * forgotten is no more to be remembered. */
void prefixes_note_own_record(const RedisModuleString *key);

/* Whether there is any, serving or leaving; in that state. */
bool prefixes_any(void);
bool prefixes_any_in(prefix_state state);

/* Why a text can't be a prefix; NULL: it can. */
const char *prefixes_refuse(const char *text, size_t len);
/* Whether a key begins with a text that prefixes_refuse() has let pass. "*": every key but ckv's
 * own. */
bool prefixes_begins(const char *prefix, const char *key, size_t len);

/* What holds for a key: serving wins over leaving. */
prefix_state prefixes_match(const char *key, size_t len);
prefix_state prefixes_match_name(const RedisModuleString *key);

#endif
