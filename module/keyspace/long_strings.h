/*
 * long_strings.h: names under which the server has long strings of its own.
 *
 * What it replies to a call is copied three times on its way to the client, while to the client
 * itself the newest servers send a long string without a copy; and to call a command that changes a
 * part takes five times as long as the command. So a command of such a name is left to the server
 * where there is no record, which only a look-up tells: these names are worth one.
 * They are hints, few, and all forgotten when there are too many. Main thread.
 */
#ifndef CKV_LONG_STRINGS_H
#define CKV_LONG_STRINGS_H

#include "ckv.h"

/* Bytes. */
#define LONG_STRING (64u << 10)

void long_strings_note(const char *name, size_t len);
bool long_strings_have(const char *name, size_t len);
void long_strings_forget(const char *name, size_t len);

#endif
