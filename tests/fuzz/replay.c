/*
 * replay.c: runs a fuzz target on files that were found elsewhere, where there is no libFuzzer: on
 * another processor.
 *
 *      build/arm64/tests/fuzz/fuzz_<name> <file>...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) {
        perror(path);
        exit(1);
    }
    size_t size = (size_t)ftell(f);
    uint8_t *data = malloc(size + 1);
    rewind(f);
    if (!data || fread(data, 1, size, f) != size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) replay(argv[i]);
    printf("%d files\n", argc - 1);
    return argc < 2;
}
