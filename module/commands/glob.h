/* glob.h: patterns of keys as in Redis: ? * [abc] [^a-c] and \ before what stands for itself. */
#ifndef CKV_GLOB_H
#define CKV_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the whole text matches. Takes at most the product of both lengths, whatever the
 * pattern. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len);

#endif
