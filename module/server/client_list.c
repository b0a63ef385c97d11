/* client_list.c: see client_list.h. */
#include "server/client_list.h"

#include "server/own_call.h"

#include <stdlib.h>
#include <string.h>

/* What stands behind `word` up to the next blank; empty if it is not there. */
static const char *field(const char *line, const char *end, const char *word, size_t *len) {
    const char *at = memmem(line, (size_t)(end - line), word, strlen(word));
    const char *value = at ? at + strlen(word) : end;
    const char *blank = memchr(value, ' ', (size_t)(end - value));
    *len = (size_t)((blank ? blank : end) - value);
    return value;
}

static void tell_line(RedisModuleCtx *ctx, const char *line, const char *end, client_listener *told,
                      void *data) {
    size_t digits;
    const char *id = field(line, end, "id=", &digits);
    if (digits == 0) return;
    listed_client client;
    client.id = strtoull(id, NULL, 10);
    client.flags = field(line, end, " flags=", &client.flags_len);
    client.command = field(line, end, " cmd=", &client.command_len);
    told(ctx, &client, data);
}

static void tell_lines(RedisModuleCtx *ctx, const char *text, size_t len, client_listener *told,
                       void *data) {
    const char *end = text + len;
    for (const char *line = text, *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        tell_line(ctx, line, stop, told, data);
    }
}

static RedisModuleCallReply *ask(RedisModuleCtx *ctx, uint64_t id) {
    if (!id) return own_call(ctx, "client|list", "c", "LIST");
    return own_call(ctx, "client|list", "ccl", "LIST", "ID", (long long)id);
}

bool client_list(RedisModuleCtx *ctx, uint64_t id, client_listener *told, void *data) {
    size_t len = 0;
    RedisModuleCallReply *reply = ask(ctx, id);
    const char *text = reply ? RedisModule_CallReplyStringPtr(reply, &len) : NULL;
    if (text) tell_lines(ctx, text, len, told, data);
    own_call_drop(reply);
    return text != NULL;
}

bool listed_client_has(const listed_client *client, char flag) {
    return memchr(client->flags, flag, client->flags_len);
}
