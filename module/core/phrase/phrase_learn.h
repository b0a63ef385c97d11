/*
 * phrase_learn.h: the steps from a lexicon to a dictionary. See phrase_train.c.
 */
#ifndef CKV_PHRASE_LEARN_H
#define CKV_PHRASE_LEARN_H

#include "phrase/phrase_inside.h"
#include "phrase/phrase_lexicon.h"

/* The sample cut into phrases, as lexicon_parse() writes it, but that the copies have the numbers
 * after the phrases' here; tokens[0] is a LEXICON_START. */
typedef struct token_list {
    const uint32_t *list;
    size_t n;
} token_list;

/* How many pseudo-phrases for copies there will be. */
static inline uint32_t lexicon_copies(const lexicon *x) {
    return x->copies ? COPY_CODES : 0;
}

/* Divides the phrases into `classes` classes, so that the class of a phrase tells as much as
 * possible about the class of the next one; copies are of one more. Writes class_of[], one for each
 * phrase and copy. False: out of memory. */
bool phrase_classify(const lexicon *x, token_list tokens, uint32_t classes, uint8_t *class_of);

/* Cuts classes into at most `groups_max` groups, gives them codes and builds the dictionary.
 * NULL: out of memory. */
phrase_dict *phrase_code_groups(const lexicon *x, token_list tokens, uint32_t classes,
                                const uint8_t *class_of, uint32_t groups_max);

#endif
