/* Size classes. */
#include "../test.h"
#include "base/mem.h"

#include <stdbool.h>

/* jemalloc's classes from 128 bytes on: 2^n * (4, 5, 6, 7) / 4. */
static bool is_class(size_t bytes) {
    size_t top = (size_t)1 << (63 - __builtin_clzll(bytes));
    return bytes % (top / 4) == 0;
}

static void test_class_near(void) {
    for (size_t bytes = 128; bytes < (size_t)1 << 32; bytes += 1 + bytes / 97) {
        size_t near = mem_class_near(bytes);
        CHECK(is_class(near) && mem_class_near(near) == near);
        CHECK(near <= bytes + bytes / 16 && near >= bytes - bytes / 5);
    }
    CHECK(mem_class_near(458752) == 458752);
    CHECK(mem_class_near(469886) == 458752);
    CHECK(mem_class_near(880000) == 917504);
    for (size_t bytes = 0; bytes < 64; bytes++) CHECK(mem_class_near(bytes) == bytes);
}

int main(void) {
    test_class_near();
    return test_report("mem");
}
