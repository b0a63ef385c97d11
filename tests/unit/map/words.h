/* words.h: text that values are cut from, in which there is something to learn. */
#ifndef CKV_TEST_WORDS_H
#define CKV_TEST_WORDS_H

#include "../test.h"

#include <string.h>

static inline void fill_with_words(char *text, size_t n) {
    static const char *const words[] = {"red ", "blue ",  "green ",   "nothing ", "of ",
                                        "the ", "whale ", "{\"id\":", "}, ",      "0123456789 "};
    for (size_t at = 0; at < n;) {
        const char *word = words[test_random() % 10];
        size_t len = strlen(word) < n - at ? strlen(word) : n - at;
        memcpy(text + at, word, len);
        at += len;
    }
}

#endif
