/* workspace.c: what one thread needs to encode and decode values. See workspace.h. */
#include "codec/workspace.h"

#include "codec/zstd_mem.h"

/* The least that a buffer has, bytes; it doubles as values need it. */
#define BUFFER_MIN 4096
/* A buffer that a giant value grew beyond this is given back. Bytes. */
#define BUFFER_KEEP (1u << 20)
/* What is worth giving back when memory is short. To write values of more than 64 KB zstd takes a
 * megabyte. */
#define SHRINK_MIN (512u << 10)

bool workspace_init(codec_workspace *w, const mem *m) {
    *w = (codec_workspace){.mem = m};
    w->zstd_write = ZSTD_createCCtx_advanced(zstd_mem(m));
    w->zstd_read = ZSTD_createDCtx_advanced(zstd_mem(m));
    if (w->zstd_write && w->zstd_read) return true;
    workspace_free(w);
    return false;
}

/* Frees the buffers of more than `keep` bytes. */
static void free_buffers(codec_workspace *w, size_t keep) {
    codec_buffer *buffers[] = {&w->written, &w->moved, &w->decoded, &w->frame, &w->parser};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        if (buffers[i]->cap <= keep) continue;
        w->mem->free(buffers[i]->bytes);
        *buffers[i] = (codec_buffer){NULL, 0};
    }
}

void workspace_free(codec_workspace *w) {
    ZSTD_freeCCtx(w->zstd_write);
    ZSTD_freeDCtx(w->zstd_read);
    w->zstd_write = NULL;
    w->zstd_read = NULL;
    free_buffers(w, 0);
}

void workspace_trim(codec_workspace *w) {
    free_buffers(w, BUFFER_KEEP);
    if (w->parser.bytes) w->mem->free(w->parser.bytes);
    w->parser = (codec_buffer){NULL, 0};
    if (w->idle > WORKSPACE_IDLE) return;
    if (w->idle++ == WORKSPACE_IDLE) workspace_rest(w);
}

void workspace_rest(codec_workspace *w) {
    codec_workspace fresh;
    if (!workspace_init(&fresh, w->mem)) return;
    fresh.idle = w->idle;
    workspace_free(w);
    *w = fresh;
}

static size_t bytes_of(const codec_workspace *w) {
    size_t bytes = ZSTD_sizeof_CCtx(w->zstd_write) + ZSTD_sizeof_DCtx(w->zstd_read);
    return bytes + w->written.cap + w->moved.cap + w->decoded.cap + w->frame.cap + w->parser.cap;
}

size_t workspace_shrink(codec_workspace *w) {
    size_t before = bytes_of(w);
    if (before < SHRINK_MIN) return 0;
    workspace_rest(w);
    return before - bytes_of(w);
}

uint8_t *workspace_reserve(codec_workspace *w, codec_buffer *b, size_t n) {
    w->idle = 0;
    if (b->bytes && n <= b->cap) return b->bytes;
    size_t cap = BUFFER_MIN;
    while (cap < n) cap *= 2;
    if (n > BUFFER_KEEP) cap = n;
    uint8_t *bytes = w->mem->alloc(cap);
    if (!bytes) return NULL;
    if (b->bytes) w->mem->free(b->bytes);
    *b = (codec_buffer){bytes, cap};
    return bytes;
}
