/*
 * string_sizes.h: INFO's line of how long the strings of a database are (Redis 8), with records as
 * the strings that they stand for:
 *
 *      db0_distrib_strings_sizes:0=1,1=20,2K=5    20 of 1 byte, 5 of 2 to 4 KB
 *
 * Few records are counted. Of many in all databases, or long ones, a sample is, for lengths are not
 * known without decoding: then the sum is right, and how it is distributed is an estimate.
 */
#ifndef CKV_STRING_SIZES_H
#define CKV_STRING_SIZES_H

#include "ckv.h"

#define STRING_SIZES_NAME "distrib_strings_sizes"
#define STRING_SIZES_BINS 64 /* 0, 1, 2, 4 ... 4E */

typedef struct string_sizes {
    uint64_t bins[STRING_SIZES_BINS];
} string_sizes;

/* Adds what the server says behind the name: "1=20,2K=5\r\n". */
void string_sizes_add_text(string_sizes *s, const char *text, const char *end);
/* Adds the records of a database; `all`: how many there are in all databases. */
void string_sizes_add_records(string_sizes *s, int db, uint64_t all);
/* Appends the line, if there is anything to tell. */
void string_sizes_put(const string_sizes *s, int db, RedisModuleString *to);

#endif
