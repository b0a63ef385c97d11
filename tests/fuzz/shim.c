/* shim.c: see shim.h. Each function stands in for the one of the server with the same name. */
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX  64
#define DEPTH_MAX 16

struct RedisModuleString {
    char *bytes;
    size_t len;
};

struct RedisModuleKey {
    char name[64];
    void *value;
};

struct RedisModuleCtx {
    void *get_api; /* the first word: that is how a module finds the server's functions */
};

RedisModuleTypeMethods shim_type;
shim_command shim_commands[128];
int shim_command_count;
int64_t shim_now_ms = 1700000000000;
size_t shim_largest_block;

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

static RedisModuleKey keys[KEYS_MAX];
static struct RedisModuleCtx context;

static void fail(const char *what) {
    fprintf(stderr, "shim: %s\n", what);
    abort();
}

/* ---- memory and strings ---------------------------------------------------------------------- */

static void *Alloc(size_t n) {
    if (n > shim_largest_block) shim_largest_block = n;
    void *block = malloc(n ? n : 1);
    if (!block) fail("out of memory");
    return block;
}
static void *Realloc(void *block, size_t n) {
    if (n > shim_largest_block) shim_largest_block = n;
    return realloc(block, n ? n : 1);
}
static void *Calloc(size_t count, size_t n) {
    return calloc(count, n);
}
static void Free(void *block) {
    free(block);
}
static size_t MallocUsableSize(void *block) {
    return malloc_usable_size(block);
}

/* What lives as long as the module: descriptions of commands. */
static void *PoolAlloc(RedisModuleCtx *ctx, size_t n) {
    static void *kept[4096];
    static size_t count;
    (void)ctx;
    if (count == sizeof kept / sizeof *kept) fail("a larger pool is needed");
    return kept[count++] = calloc(1, n ? n : 1);
}

static RedisModuleString *CreateString(RedisModuleCtx *ctx, const char *bytes, size_t len) {
    (void)ctx;
    RedisModuleString *s = malloc(sizeof *s);
    *s = (RedisModuleString){malloc(len + 1), len};
    if (len) memcpy(s->bytes, bytes, len);
    s->bytes[len] = 0;
    return s;
}
static RedisModuleString *CreateStringPrintf(RedisModuleCtx *ctx, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return CreateString(ctx, text, (size_t)len);
}
static void FreeString(RedisModuleCtx *ctx, RedisModuleString *s) {
    (void)ctx;
    free(s->bytes);
    free(s);
}
static const char *StringPtrLen(const RedisModuleString *s, size_t *len) {
    if (len) *len = s->len;
    return s->bytes;
}
static int StringCompare(const RedisModuleString *a, const RedisModuleString *b) {
    size_t n = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->bytes, b->bytes, n);
    return order ? order : (a->len > b->len) - (a->len < b->len);
}
static int StringToLongLong(const RedisModuleString *s, long long *n) {
    char *end, again[32];
    errno = 0;
    *n = strtoll(s->bytes, &end, 10);
    /* The server takes no other form than the one that it would print. */
    bool same = (size_t)snprintf(again, sizeof again, "%lld", *n) == s->len &&
                !memcmp(again, s->bytes, s->len);
    return same && errno == 0 ? REDISMODULE_OK : REDISMODULE_ERR;
}
static int StringToLongDouble(const RedisModuleString *s, long double *d) {
    char *end;
    *d = strtold(s->bytes, &end);
    bool whole = s->len > 0 && end == s->bytes + s->len && s->bytes[0] != ' ' && *d == *d;
    return whole ? REDISMODULE_OK : REDISMODULE_ERR;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Elements that are still missing, of the reply and of each array within it; -1: not known yet. */
static struct {
    long missing[DEPTH_MAX], given[DEPTH_MAX];
    int depth;
    bool error;
} reply;

static void close_full(void) {
    while (reply.depth > 0 && reply.missing[reply.depth] == 0) reply.depth--;
}

static int one(void) {
    if (reply.missing[reply.depth] == 0) fail("a reply too many");
    if (reply.missing[reply.depth] > 0) reply.missing[reply.depth]--;
    reply.given[reply.depth]++;
    close_full();
    return REDISMODULE_OK;
}

static int many(long count) {
    if (reply.missing[reply.depth] == 0) fail("a reply too many");
    if (reply.missing[reply.depth] > 0) reply.missing[reply.depth]--;
    reply.given[reply.depth]++;
    if (++reply.depth == DEPTH_MAX) fail("arrays too deep");
    reply.missing[reply.depth] = count;
    reply.given[reply.depth] = 0;
    close_full();
    return REDISMODULE_OK;
}

static void ReplySetArrayLength(RedisModuleCtx *ctx, long count) {
    (void)ctx;
    if (reply.missing[reply.depth] >= 0 || reply.given[reply.depth] != count)
        fail("a postponed array of another length");
    reply.depth--;
    close_full();
}
static int ReplyWithArray(RedisModuleCtx *ctx, long count) {
    (void)ctx;
    return many(count);
}
static int ReplyWithMap(RedisModuleCtx *ctx, long count) {
    (void)ctx;
    return many(count < 0 ? count : 2 * count);
}
static int ReplyWithError(RedisModuleCtx *ctx, const char *text) {
    (void)ctx;
    if (!text[0]) fail("an empty error");
    reply.error = true;
    return one();
}
static int WrongArity(RedisModuleCtx *ctx) {
    return ReplyWithError(ctx, "ERR wrong number of arguments");
}
static int ReplyWithText(RedisModuleCtx *ctx, const char *text) {
    (void)ctx;
    if (strlen(text) > INT_MAX) fail("a text without an end");
    return one();
}
static int ReplyWithStringBuffer(RedisModuleCtx *ctx, const char *bytes, size_t len) {
    /* Every byte is read: the sanitizer sees those that are not ours. */
    char *copy = malloc(len + 1);
    (void)ctx;
    if (len) memcpy(copy, bytes, len);
    free(copy);
    return one();
}
static int ReplyWithLongLong(RedisModuleCtx *ctx, long long n) {
    (void)ctx, (void)n;
    return one();
}
static int ReplyWithDouble(RedisModuleCtx *ctx, double n) {
    (void)ctx, (void)n;
    return one();
}
static int ReplyWithString(RedisModuleCtx *ctx, RedisModuleString *string) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(string, &len);
    return ReplyWithStringBuffer(ctx, bytes, len);
}
static int ReplyWithNull(RedisModuleCtx *ctx) {
    (void)ctx;
    return one();
}
static RedisModuleBlockedClient *BlockClient(RedisModuleCtx *ctx, RedisModuleCmdFunc answer,
                                             RedisModuleCmdFunc timeout,
                                             void (*free_data)(RedisModuleCtx *, void *),
                                             long long timeout_ms) {
    (void)ctx, (void)answer, (void)timeout, (void)free_data, (void)timeout_ms;
    one();
    return (RedisModuleBlockedClient *)&context;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static RedisModuleKey *OpenKey(RedisModuleCtx *ctx, RedisModuleString *name, int mode) {
    (void)ctx, (void)mode;
    RedisModuleKey *empty = NULL;
    for (int i = 0; i < KEYS_MAX; i++) {
        if (!keys[i].value && !empty) empty = &keys[i];
        if (keys[i].value && !strcmp(keys[i].name, name->bytes)) return &keys[i];
    }
    if (!empty || name->len >= sizeof empty->name) fail("no room for another key");
    memcpy(empty->name, name->bytes, name->len + 1);
    return empty;
}
static void CloseKey(RedisModuleKey *key) {
    (void)key;
}
static int KeyType(RedisModuleKey *key) {
    return key->value ? REDISMODULE_KEYTYPE_MODULE : REDISMODULE_KEYTYPE_EMPTY;
}
static const RedisModuleString *GetKeyNameFromModuleKey(RedisModuleKey *key) {
    static RedisModuleString name;
    name = (RedisModuleString){key->name, strlen(key->name)};
    return &name;
}
static RedisModuleType *ModuleTypeGetType(RedisModuleKey *key) {
    return key->value ? (RedisModuleType *)&shim_type : NULL;
}
static void *ModuleTypeGetValue(RedisModuleKey *key) {
    return key->value;
}
static int DeleteKey(RedisModuleKey *key) {
    if (key->value) {
        shim_type.unlink2(NULL, key->value);
        shim_type.free(key->value);
    }
    key->value = NULL;
    return REDISMODULE_OK;
}
static int ModuleTypeSetValue(RedisModuleKey *key, RedisModuleType *type, void *value) {
    (void)type;
    DeleteKey(key);
    key->value = value;
    return REDISMODULE_OK;
}

void *shim_value(const char *name) {
    for (int i = 0; i < KEYS_MAX; i++)
        if (keys[i].value && !strcmp(keys[i].name, name)) return keys[i].value;
    return NULL;
}

void shim_flush(void) {
    for (int i = 0; i < KEYS_MAX; i++) DeleteKey(&keys[i]);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_bytes(RedisModuleIO *io, const void *bytes, size_t n) {
    if (io->used + n > io->cap) {
        io->cap = 2 * (io->used + n);
        io->bytes = realloc(io->bytes, io->cap);
    }
    if (n) memcpy(io->bytes + io->used, bytes, n);
    io->used += n;
}
static void SaveUnsigned(RedisModuleIO *io, uint64_t n) {
    write_bytes(io, &n, sizeof n);
}
static void SaveStringBuffer(RedisModuleIO *io, const char *bytes, size_t n) {
    SaveUnsigned(io, n);
    write_bytes(io, bytes, n);
}
static uint64_t LoadUnsigned(RedisModuleIO *io) {
    uint64_t n = 0;
    if (io->failed || io->used - io->at < sizeof n) {
        io->failed = true;
        return 0;
    }
    memcpy(&n, io->bytes + io->at, sizeof n);
    io->at += sizeof n;
    return n;
}
static char *LoadStringBuffer(RedisModuleIO *io, size_t *n) {
    *n = (size_t)LoadUnsigned(io);
    if (io->failed || *n > io->used - io->at) {
        io->failed = true;
        return NULL;
    }
    char *bytes = malloc(*n ? *n : 1);
    memcpy(bytes, io->bytes + io->at, *n);
    io->at += *n;
    return bytes;
}
static int IsIOError(RedisModuleIO *io) {
    return io->failed;
}
static const RedisModuleString *GetKeyNameFromIO(RedisModuleIO *io) {
    static RedisModuleString name = {(char *)"ckv:0", 5};
    (void)io;
    return &name;
}
static int GetDbIdFromIO(RedisModuleIO *io) {
    (void)io;
    return 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static long long Milliseconds(void) {
    return shim_now_ms;
}
static long long CachedMicroseconds(void) {
    return shim_now_ms * 1000;
}
static int RegisterNumericConfig(RedisModuleCtx *ctx, const char *name, long long standard,
                                 unsigned int flags, long long min, long long max,
                                 RedisModuleConfigGetNumericFunc get,
                                 RedisModuleConfigSetNumericFunc set,
                                 RedisModuleConfigApplyFunc apply, void *data) {
    RedisModuleString *error = NULL;
    (void)ctx, (void)flags, (void)max, (void)get, (void)apply;
    /* Two maps are enough to have more than one. */
    return set(name, !strcmp(name, "maps") ? min + 1 : standard, data, &error);
}
static int CreateCommand(RedisModuleCtx *ctx, const char *name, RedisModuleCmdFunc function,
                         const char *flags, int first, int last, int step) {
    (void)ctx, (void)flags, (void)first, (void)last, (void)step;
    /* Those that stand for the server's own commands need the server. */
    if (strncmp(name, "ckv.", 4) && strncmp(name, "ckv+", 4) && strcmp(name, "cmoveout") &&
        strcmp(name, "cmovein") && strcmp(name, "cplain") && strcmp(name, "cprefixes"))
        shim_commands[shim_command_count++] = (shim_command){name, function};
    return REDISMODULE_OK;
}
static const char *running = "";
static const char *GetCurrentCommandName(RedisModuleCtx *ctx) {
    (void)ctx;
    return running;
}
static RedisModuleString *CreateStringFromLongLong(RedisModuleCtx *ctx, long long n) {
    char text[24];
    return CreateString(ctx, text, (size_t)snprintf(text, sizeof text, "%lld", n));
}
static RedisModuleCommand *GetCommand(RedisModuleCtx *ctx, const char *name) {
    (void)name;
    return (RedisModuleCommand *)ctx;
}
static RedisModuleType *CreateDataType(RedisModuleCtx *ctx, const char *name, int version,
                                       RedisModuleTypeMethods *methods) {
    (void)ctx, (void)name, (void)version;
    shim_type = *methods;
    return (RedisModuleType *)&shim_type;
}
static RedisModuleCtx *GetDetachedThreadSafeContext(RedisModuleCtx *ctx) {
    return ctx;
}
/* For what needs no answer: 0 is REDISMODULE_OK, NULL, no flags, database 0, no key. */
static int nothing(void) {
    return 0;
}

static int get_api(const char *name, void *at) {
#define HERE(function)                                                                             \
    { "RedisModule_" #function, (void *)function }
#define NOTHING(name)                                                                              \
    { "RedisModule_" #name, (void *)nothing }
    static const struct {
        const char *name;
        void *function;
    } table[] = {
        HERE(Alloc),
        {"RedisModule_TryAlloc", (void *)Alloc},
        HERE(Realloc),
        HERE(Calloc),
        {"RedisModule_TryRealloc", (void *)Realloc},
        HERE(Free),
        HERE(MallocUsableSize),
        HERE(PoolAlloc),
        HERE(CreateString),
        HERE(CreateStringPrintf),
        HERE(FreeString),
        HERE(StringPtrLen),
        HERE(StringCompare),
        HERE(StringToLongLong),
        HERE(StringToLongDouble),
        HERE(ReplySetArrayLength),
        HERE(ReplyWithArray),
        HERE(ReplyWithMap),
        HERE(ReplyWithError),
        HERE(WrongArity),
        {"RedisModule_ReplyWithSimpleString", (void *)ReplyWithText},
        {"RedisModule_ReplyWithCString", (void *)ReplyWithText},
        HERE(ReplyWithStringBuffer),
        HERE(ReplyWithLongLong),
        HERE(ReplyWithDouble),
        HERE(ReplyWithString),
        HERE(ReplyWithNull),
        HERE(BlockClient),
        HERE(OpenKey),
        HERE(CloseKey),
        HERE(KeyType),
        HERE(GetKeyNameFromModuleKey),
        HERE(ModuleTypeGetType),
        HERE(ModuleTypeGetValue),
        HERE(ModuleTypeSetValue),
        HERE(DeleteKey),
        HERE(SaveUnsigned),
        HERE(SaveStringBuffer),
        HERE(LoadUnsigned),
        HERE(LoadStringBuffer),
        HERE(IsIOError),
        HERE(GetKeyNameFromIO),
        HERE(GetDbIdFromIO),
        HERE(Milliseconds),
        HERE(CachedMicroseconds),
        HERE(RegisterNumericConfig),
        HERE(CreateCommand),
        HERE(GetCommand),
        HERE(GetCurrentCommandName),
        HERE(CreateStringFromLongLong),
        HERE(CreateDataType),
        HERE(GetDetachedThreadSafeContext),
        NOTHING(SetModuleAttribs),
        NOTHING(SetModuleOptions),
        NOTHING(GetContextFlags),
        NOTHING(GetServerVersion),
        NOTHING(GetClientId),
        NOTHING(GetCurrentUserName),
        NOTHING(GetModuleUserACLString),
        NOTHING(SetModuleUserACLString),
        NOTHING(SetCommandInfo),
        NOTHING(LoadConfigs),
        NOTHING(RegisterInfoFunc),
        NOTHING(RegisterStringConfig),
        NOTHING(CreateTimer),
        NOTHING(SubscribeToServerEvent),
        NOTHING(SubscribeToKeyspaceEvents),
        NOTHING(RegisterCommandFilter),
        NOTHING(UnregisterCommandFilter),
        NOTHING(GetSelectedDb),
        NOTHING(SelectDb),
        NOTHING(AvoidReplicaTraffic),
        NOTHING(Replicate),
        NOTHING(ReplicateVerbatim),
        NOTHING(Log),
        NOTHING(SignalModifiedKey),
        NOTHING(GetNotifyKeyspaceEvents),
        NOTHING(NotifyKeyspaceEvent),
        NOTHING(Call),
        NOTHING(GetServerInfo),
        NOTHING(FreeServerInfo),
        NOTHING(ServerInfoGetFieldUnsigned),
        NOTHING(ServerInfoGetFieldC),
        NOTHING(IsKeysPositionRequest),
        NOTHING(KeyAtPosWithFlags),
        NOTHING(EmitAOF),
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) {
            *(void **)at = table[i].function;
            return REDISMODULE_OK;
        }
    *(void **)at = NULL;
    return REDISMODULE_ERR;
}

void shim_start(void) {
    context.get_api = (void *)get_api;
    if (RedisModule_OnLoad(&context, NULL, 0) != REDISMODULE_OK) fail("the module did not load");
}

bool shim_call(RedisModuleCmdFunc function, const char *const *args, const size_t *lens,
               int count) {
    RedisModuleString *strings[64];
    if (count > 64) fail("too many arguments");
    for (int i = 0; i < count; i++) strings[i] = CreateString(NULL, args[i], lens[i]);
    reply.depth = 0;
    reply.missing[0] = 1;
    reply.error = false;
    running = args[0];
    function(&context, strings, count);
    if (reply.depth != 0 || reply.missing[0] != 0) fail("a reply that is not complete");
    for (int i = 0; i < count; i++) FreeString(NULL, strings[i]);
    return reply.error;
}
