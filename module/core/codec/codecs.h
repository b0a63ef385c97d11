/*
 * codecs.h: the table of codecs: which there are, and which of them new values are written with.
 *
 * Pages and large records name a codec by its id in the table; id 0 is the codec that knows nothing
 * and stores everything as it is. Threads that only encode or decode need a `const codecs`, which
 * must not change meanwhile, and a workspace each.
 */
#ifndef CKV_CODECS_H
#define CKV_CODECS_H

#include "codec/codec.h"

#include <stdatomic.h>

#define CODEC_RAW  0   /* id of the codec that knows nothing */
#define CODECS_MAX 255 /* ids; a page has one byte for them */

typedef struct codecs {
    const mem *mem;
    codec *by_id[CODECS_MAX];
    _Atomic uint64_t pages[CODECS_MAX]; /* that name it; maps are freed on other threads, too */
    uint32_t retained[CODECS_MAX];      /* by batches for other threads */
    size_t bytes;                       /* of all of them */
    uint64_t last_number;
    uint8_t current;
    int zstd_level;
    /* Of the values written lately, fading: what they came to, and what was expected. */
    double recent_encoded, recent_expected;
    uint64_t written_bytes; /* raw, since the current codec came into use or was confirmed */
    uint64_t data_bytes;    /* raw, that were stored then */
    uint64_t fast;          /* values that came into pages encoded fast, since it was set to 0 */
} codecs;

void codecs_init(codecs *all, const mem *m, int zstd_level);
void codecs_free(codecs *all);
/* Of an empty store: frees everything that has been learned. */
void codecs_clear(codecs *all);
void codecs_set_zstd_level(codecs *all, int zstd_level);

/* Adds a codec, which the table owns then, and returns its id; CODECS_MAX if all are taken. */
uint32_t codecs_add(codecs *all, codec *c);
/* The id of a codec that is the same, byte by byte in a file; CODECS_MAX: there is none. */
uint32_t codecs_find(const codecs *all, const uint8_t *file, size_t len);
/* Frees a codec that is not in use, nor retained. */
void codecs_remove(codecs *all, uint8_t id);
/* Frees all that are not in use, and retained by nobody. */
void codecs_remove_unused(codecs *all);
/* From now on new values are written with this one; what has drifted is counted anew. */
void codecs_use(codecs *all, uint8_t id);
/* Nothing better was found for so many raw bytes, when `written_bytes` were what
 * codecs_written_bytes() said: what has drifted is counted anew; where nothing was worth learning,
 * what has been written since may be. */
void codecs_confirm(codecs *all, uint64_t data_bytes, uint64_t written_bytes);
/* How many raw bytes were stored when the current codec was learned or confirmed. */
uint64_t codecs_data_bytes(const codecs *all);

/* A page has been made that names this codec, or is gone. Any thread. */
static inline void codecs_note_page(codecs *all, uint8_t id) {
    atomic_fetch_add_explicit(&all->pages[id], 1, memory_order_relaxed);
}
static inline void codecs_note_page_gone(codecs *all, uint8_t id) {
    atomic_fetch_sub_explicit(&all->pages[id], 1, memory_order_release);
}
/* Whether some page names a codec that was learned, or it is the current one. */
bool codecs_in_use(const codecs *all, uint8_t id);

/* A batch of what another thread encodes or decodes keeps a codec, which nothing else may need any
 * more, until it is let go. */
static inline void codecs_retain(codecs *all, uint8_t id) {
    all->retained[id]++;
}
static inline void codecs_release(codecs *all, uint8_t id) {
    all->retained[id]--;
}

/* NULL: there is none of that id. */
static inline const codec *codecs_get(const codecs *all, uint8_t id) {
    return id < CODECS_MAX ? all->by_id[id] : NULL;
}
static inline uint8_t codecs_current_id(const codecs *all) {
    return all->current;
}
static inline const codec *codecs_current(const codecs *all) {
    return all->by_id[all->current];
}

/* How many that have been learned are there, and the memory of all their dictionaries and tables,
 * bytes. */
uint32_t codecs_count(const codecs *all);
size_t codecs_bytes(const codecs *all);

/* Encodes a value with the current codec, fast. The bytes are the workspace's, good until the next
 * new value, whatever is decoded or moved meanwhile. False: out of memory. */
bool codecs_encode(const codecs *all, codec_workspace *w, const void *value, size_t n,
                   codec_value *out);
/* The same in the cheapest way, for a value that is stored already and only changes its codec; and
 * how that is done for one of up to CODEC_PHRASE_MAX bytes. */
codec_effort codecs_effort_moved(const codecs *all);
bool codecs_encode_moved(const codecs *all, codec_workspace *w, const void *value, size_t n,
                         codec_value *out);

/* Takes note of a new value, encoded with the current codec. */
void codecs_note_written(codecs *all, const codec_value *value);
/* What long values of n bytes in all come to, by what came of those that were written lately. */
double codecs_expected_len(const codecs *all, size_t n);
/* Raw bytes of the values noted since the current codec came into use. */
uint64_t codecs_written_bytes(const codecs *all);
/* Whether what is written compresses worse than the current codec promised: it was not made for it.
 */
bool codecs_drifted(const codecs *all);

#endif
