/* Memory is counted by jemalloc's size classes. */
#include "../test.h"

#include "counted.h"

#include <string.h>

static void check_classes(void) {
    static const size_t classes[][2] = {
        {1, 8},       {8, 8},       {9, 16},       {17, 32},       {100, 112},
        {128, 128},   {129, 160},   {320, 320},    {321, 384},     {3500, 3584},
        {3585, 4096}, {4097, 5120}, {9000, 10240}, {16385, 20480}, {1 << 20, 1 << 20}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        CHECK(counted_class(classes[i][0]) == classes[i][1]);
}

static void check_blocks(void) {
    char *block = mem_counted.alloc(100);
    CHECK(mem_counted.usable(block) == 112 && counted_bytes() == 112);
    memset(block, 'x', 112);
    block = mem_counted.realloc(block, 1000);
    CHECK(counted_bytes() == 1024 && block[111] == 'x');
    char *other = mem_counted.realloc(NULL, 5);
    CHECK(counted_bytes() == 1032);
    mem_counted.free(block);
    mem_counted.free(other);
    CHECK(counted_bytes() == 0);
}

int main(void) {
    check_classes();
    check_blocks();
    return test_report("counted");
}
