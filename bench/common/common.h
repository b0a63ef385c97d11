/* What the programs in here share: how they fail, and the records of a file.
 *
 * A file is text, one record a line, or (*.u32le) binary:
 *
 *   | length, 4 bytes little-endian | bytes | length | bytes | ...
 *
 * Records without bytes are left out. */
#ifndef CKV_BENCH_COMMON_H
#define CKV_BENCH_COMMON_H

#include <stddef.h>
#include <stdint.h>

/* Ends the program, also while other threads run. */
void fail(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* Ends the program if what it has printed could not be written, all of it. */
void check_printed(void);
void *allocate(size_t size); /* zeroed; ends the program when there is no memory */
void *reallocate(void *block, size_t size);

typedef struct {
    const char *bytes;
    size_t length;
} Value;

typedef struct {
    char *file;
    Value *values; /* pointers into file */
    size_t count;
    size_t longest;
    size_t size; /* of the file */
} Records;

void records_read(Records *records, const char *path);
void records_free(Records *records);
/* Number n has the file's value n modulo the number of values. */
const Value *records_at(const Records *records, uint64_t number);
const char *file_name(const char *path);

#endif
