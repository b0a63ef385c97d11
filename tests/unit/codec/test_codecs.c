/* The table of codecs: ids, the current one, and whether what is written has drifted from it. */
#include "../test.h"
#include "codec/codec_train.h"
#include "codec/codecs.h"

#include <string.h>

#define RECORDS 3000

static char texts[RECORDS][64];
static phrase_sample samples[RECORDS];

static codec *train(void) {
    codec_samples s = {samples, RECORDS, samples, RECORDS, 0};
    codec *c = codec_train(&mem_libc, &s, 100 << 10, 3);
    CHECK(c);
    return c;
}

/* Writes n bytes of what was learned from, or of noise. */
static void write_bytes(codecs *all, codec_workspace *w, size_t n, bool noise) {
    uint8_t bytes[64];
    for (size_t i = 0, len; n > 0; n -= len < n ? len : n, i++) {
        codec_value value;
        const phrase_sample *s = &samples[i % RECORDS];
        len = s->len;
        memcpy(bytes, s->data, len);
        for (size_t j = 0; noise && j < len; j++) bytes[j] = (uint8_t)test_random();
        CHECK(codecs_encode(all, w, bytes, len, &value) && value.raw_len == len);
        codecs_note_written(all, &value);
    }
}

static void drift(codecs *all, codec_workspace *w) {
    codecs_use(all, 1);
    CHECK(codecs_written_bytes(all) == 0 && !codecs_drifted(all));
    write_bytes(all, w, 9 << 20, false);
    CHECK(codecs_written_bytes(all) >= 9 << 20 && !codecs_drifted(all));
    write_bytes(all, w, 8 << 20, true);
    CHECK(codecs_drifted(all));
    codecs_use(all, 1);
    CHECK(codecs_written_bytes(all) == 0 && !codecs_drifted(all));
    write_bytes(all, w, 7 << 20, true); /* too little to tell */
    CHECK(!codecs_drifted(all));
    codecs_use(all, CODEC_RAW);
    write_bytes(all, w, 9 << 20, true); /* no dictionary, no promise */
    CHECK(!codecs_drifted(all));
}

/* Nothing better was found for what was there when so much had been written. */
static void confirm(codecs *all, codec_workspace *w) {
    codecs_use(all, CODEC_RAW);
    write_bytes(all, w, 2 << 20, true);
    uint64_t before = codecs_written_bytes(all);
    write_bytes(all, w, 1 << 20, false);
    uint64_t since = codecs_written_bytes(all) - before;
    codecs_confirm(all, 2 << 20, before);
    CHECK(codecs_data_bytes(all) == 2 << 20 && codecs_written_bytes(all) == since);
    codecs_confirm(all, 2 << 20, since + 1); /* a file brought other codecs in between */
    CHECK(codecs_written_bytes(all) == 0);
    codecs_use(all, 1);
    write_bytes(all, w, 1 << 20, false);
    codecs_confirm(all, 2 << 20, 0); /* by a dictionary: drift is counted anew */
    CHECK(codecs_written_bytes(all) == 0);
}

int main(void) {
    codecs all;
    codec_workspace w;
    for (int i = 0; i < RECORDS; i++)
        samples[i] = (phrase_sample){
            texts[i], (uint32_t)sprintf(texts[i], "the name of user %d is number %d", i, i * 31)};
    codecs_init(&all, &mem_libc, 3);
    CHECK(workspace_init(&w, &mem_libc));
    CHECK(codecs_count(&all) == 0 && codecs_bytes(&all) == 0);
    CHECK(codecs_current_id(&all) == CODEC_RAW && codecs_current(&all) != NULL);
    CHECK(!codecs_get(&all, 1) && !codecs_get(&all, 255));
    codec *first = train(), *second = train();
    CHECK(codecs_add(&all, first) == 1 && codecs_add(&all, second) == 2);
    CHECK(codecs_get(&all, 2) == second && codecs_count(&all) == 2);
    CHECK(codecs_bytes(&all) == first->bytes + second->bytes);
    drift(&all, &w);
    confirm(&all, &w);
    codecs_remove(&all, 2);
    CHECK(!codecs_get(&all, 2) && codecs_count(&all) == 1);
    CHECK(codecs_add(&all, train()) == 2);
    codecs_use(&all, 2);
    codecs_clear(&all);
    CHECK(codecs_count(&all) == 0 && codecs_current_id(&all) == CODEC_RAW);
    codecs_free(&all);
    workspace_free(&w);
    return test_report("codecs");
}
