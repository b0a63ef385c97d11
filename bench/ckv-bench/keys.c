#include "bench.h"

#include <stdio.h>

size_t uuid_write(char out[UUID_LENGTH + 1], uint64_t number) {
    uint64_t a = mix(number * 2), b = mix(number * 2 + 1);
    return (size_t)snprintf(out, UUID_LENGTH + 1, "%08x-%04x-4%03x-%04x-%012llx",
                            (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
                            (unsigned)(a & 0xfff), (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
                            (unsigned long long)(b & 0xffffffffffffu));
}

size_t record_key(char key[KEY_SIZE], const Options *o, uint64_t number) {
    if (o->uuid) return uuid_write(key, number);
    return (size_t)snprintf(key, KEY_SIZE, "KEY:%0*llu", (int)o->digits,
                            (unsigned long long)number + (unsigned long long)o->first);
}
