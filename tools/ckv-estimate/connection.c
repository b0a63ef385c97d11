/* connection.c: see connection.h. */
#include "connection.h"

#include "common/common.h"
#include "reply.h"
#include "tls.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S 60 /* for an answer, and for a connection */
#define READ_BYTES (64u << 10)

struct connection {
    int fd;
    tls *secure; /* NULL: none */
    redisReader *reader;
    char *out; /* the pipeline */
    size_t out_len, out_max;
    long database;
    char name[300]; /* of the server, for messages */
};

/* ---- connecting ------------------------------------------------------------------------------ */

static void name_server(connection *c, const address *to) {
    if (to->socket)
        snprintf(c->name, sizeof c->name, "%s", to->socket);
    else
        snprintf(c->name, sizeof c->name, "%s:%ld", to->host, to->port);
}

/* The system's connect() keeps the limit for sending as well. */
static void limit_waiting(int fd) {
    struct timeval limit = {.tv_sec = PATIENCE_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static int try_connect(int family, const struct sockaddr *where, socklen_t len) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    limit_waiting(fd);
    if (connect(fd, where, len) == 0) return fd;
    int why = errno == EINPROGRESS ? ETIMEDOUT : errno;
    close(fd);
    errno = why;
    return -1;
}

static int connect_unix(const connection *c, const char *path) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof where.sun_path) fail(1, "the path of the socket is too long");
    strcpy(where.sun_path, path);
    int fd = try_connect(AF_UNIX, (const struct sockaddr *)&where, sizeof where);
    if (fd < 0) fail(1, "cannot connect to %s: %s", c->name, strerror(errno));
    return fd;
}

static int connect_tcp(const connection *c, const address *to) {
    char port[24];
    struct addrinfo *all, wanted = {.ai_socktype = SOCK_STREAM};
    int fd = -1, no_delay = 1;
    snprintf(port, sizeof port, "%ld", to->port);
    int why = getaddrinfo(to->host, port, &wanted, &all);
    if (why != 0) fail(1, "cannot connect to %s: %s", c->name, gai_strerror(why));
    for (const struct addrinfo *at = all; at && fd < 0; at = at->ai_next)
        fd = try_connect(at->ai_family, at->ai_addr, at->ai_addrlen);
    if (fd < 0) fail(1, "cannot connect to %s: %s", c->name, strerror(errno));
    freeaddrinfo(all);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
    return fd;
}

static void log_in(connection *c, const address *to) {
    if (!to->password) return;
    const char *argv[] = {"AUTH", to->user ? to->user : to->password, to->password};
    const size_t lengths[] = {strlen(argv[0]), strlen(argv[1]), strlen(argv[2])};
    connection_send(c, to->user ? 3 : 2, argv, lengths);
    freeReplyObject(connection_answer(c, "AUTH"));
}

connection *connection_open(const address *to) {
    connection *c = allocate(sizeof *c);
    name_server(c, to);
    c->reader = redisReaderCreate();
    if (!c->reader) fail(1, "out of memory");
    c->fd = to->socket ? connect_unix(c, to->socket) : connect_tcp(c, to);
    if (to->tls) c->secure = tls_open(c->fd, to, c->name);
    log_in(c, to);
    return c;
}

void connection_close(connection *c) {
    if (c->secure) tls_close(c->secure);
    close(c->fd);
    redisReaderFree(c->reader);
    free(c->out);
    free(c);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void lost(const connection *c, const char *why) {
    bool late = !why && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (late) fail(1, "%s has not answered for %d seconds", c->name, PATIENCE_S);
    fail(1, "the connection to %s is lost: %s", c->name, why ? why : strerror(errno));
}

static void send_all(connection *c) {
    for (size_t sent = 0; sent < c->out_len;) {
        const char *why = NULL;
        ssize_t n = c->secure ? tls_write(c->secure, c->out + sent, c->out_len - sent, &why)
                              : send(c->fd, c->out + sent, c->out_len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR && !why) continue;
        if (n <= 0) lost(c, why);
        sent += (size_t)n;
    }
    c->out_len = 0;
}

static void receive_some(connection *c) {
    char bytes[READ_BYTES];
    const char *why = NULL;
    ssize_t n;
    do {
        n = c->secure ? tls_read(c->secure, bytes, sizeof bytes, &why)
                      : recv(c->fd, bytes, sizeof bytes, 0);
    } while (n < 0 && errno == EINTR && !why);
    if (n == 0) lost(c, "the server has closed it");
    if (n < 0) lost(c, why);
    if (redisReaderFeed(c->reader, bytes, (size_t)n) != REDIS_OK) fail(1, "out of memory");
}

/* ---- commands -------------------------------------------------------------------------------- */

static void add(connection *c, char *command, int len) {
    if (len < 0) fail(1, "out of memory");
    size_t wanted = c->out_len + (size_t)len;
    if (wanted > c->out_max) c->out = reallocate(c->out, c->out_max = 2 * wanted);
    memcpy(c->out + c->out_len, command, (size_t)len);
    c->out_len = wanted;
    redisFreeCommand(command);
}

void connection_send(connection *c, int argc, const char **argv, const size_t *lengths) {
    char *command;
    int len = redisFormatCommandArgv(&command, argc, argv, lengths);
    add(c, command, len);
}

void connection_send_text(connection *c, const char *format, ...) {
    char *command;
    va_list arguments;
    va_start(arguments, format);
    int len = redisvFormatCommand(&command, format, arguments);
    va_end(arguments);
    add(c, command, len);
}

redisReply *connection_reply(connection *c) {
    void *reply = NULL;
    if (c->out_len > 0) send_all(c);
    for (;;) {
        if (redisReaderGetReply(c->reader, &reply) != REDIS_OK)
            fail(1, "%s does not speak Redis' protocol: %s", c->name, c->reader->errstr);
        if (reply) return reply;
        receive_some(c);
    }
}

redisReply *connection_answer(connection *c, const char *command) {
    redisReply *reply = connection_reply(c);
    if (reply->type == REDIS_REPLY_ERROR) reply_refused(reply, command);
    return reply;
}

void connection_select(connection *c, long database) {
    if (database == c->database) return;
    connection_send_text(c, "SELECT %ld", database);
    freeReplyObject(connection_answer(c, "SELECT"));
    c->database = database;
}
