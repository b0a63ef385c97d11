/*
 * workspace.h: what one thread needs to encode and decode values: zstd's contexts, and buffers that
 * grow with the values and are used again.
 *
 * Codecs never change, so that every thread with a workspace of its own may use them. What a
 * function of codec.h returns lies in the workspace that it was given, until that is used for the
 * same again.
 */
#ifndef CKV_WORKSPACE_H
#define CKV_WORKSPACE_H

#include "base/mem.h"

#include <stdbool.h>

typedef struct codec_buffer {
    uint8_t *bytes;
    size_t cap;
} codec_buffer;

typedef struct codec_workspace {
    const mem *mem;
    struct ZSTD_CCtx_s *zstd_write;
    struct ZSTD_DCtx_s *zstd_read;
    codec_buffer written, moved, decoded, frame, parser;
    unsigned idle; /* calls of workspace_trim() since it was used */
} codec_workspace;

/* False: out of memory. */
bool workspace_init(codec_workspace *w, const mem *m);
void workspace_free(codec_workspace *w);

/* Gives back the room that giants took, and what is needed in the background only; all room, if
 * nothing was encoded or decoded for WORKSPACE_IDLE calls. */
#define WORKSPACE_IDLE 100
void workspace_trim(codec_workspace *w);

/* Gives back all room. */
void workspace_rest(codec_workspace *w);
/* Gives back all room if it is as much as giants take; returns how many bytes, else 0. */
size_t workspace_shrink(codec_workspace *w);

/* Room for n bytes in a buffer; what it held is lost. NULL: out of memory. */
uint8_t *workspace_reserve(codec_workspace *w, codec_buffer *b, size_t n);

#endif
