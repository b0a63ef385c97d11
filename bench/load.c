/*
 * load.c: fills a server with records, faster than it can take them.
 *
 *     bench-load <port> <verb> <records> <file> <digits> <ttl>
 *
 * sends `<verb> KEY:<n> <line n of the file, from the first again after the last> EX <ttl>` for n
 * from 0, written with at least so many digits, in pipelines over several connections, and prints
 * the seconds that it took. Every reply must be OK.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 8
#define DEPTH       50
#define REPLY       "+OK\r\n"
#define REPLY_BYTES (sizeof REPLY - 1)

typedef struct line {
    const char *bytes;
    size_t len;
} line;

static struct {
    line *list;
    size_t count;
    size_t longest;
} lines;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *checked(void *block) {
    if (!block) fail("memory");
    return block;
}

static void read_lines(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) fail(path);
    size_t size = (size_t)ftell(f);
    char *text = checked(malloc(size + 1));
    rewind(f);
    if (fread(text, 1, size, f) != size) fail(path);
    fclose(f);
    text[size] = '\n';
    for (char *at = text, *end; at <= text + size; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + size + 1 - at));
        size_t len = (size_t)(end - at);
        if (len == 0) continue;
        if (lines.count % 1024 == 0)
            lines.list = checked(realloc(lines.list, (lines.count + 1024) * sizeof *lines.list));
        lines.list[lines.count++] = (line){at, len};
        if (len > lines.longest) lines.longest = len;
    }
    if (lines.count == 0) {
        fprintf(stderr, "%s is empty\n", path);
        exit(1);
    }
}

static int connect_to(const char *port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(port)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void send_all(int fd, const char *bytes, size_t n) {
    for (ssize_t sent; n > 0; bytes += sent, n -= (size_t)sent)
        if ((sent = write(fd, bytes, n)) <= 0) fail("write");
}

/* Reads the replies of `count` commands, all of which must be OK. */
static void expect(int fd, size_t count) {
    char got[DEPTH * REPLY_BYTES];
    size_t wanted = count * REPLY_BYTES, n = 0;
    while (n < wanted) {
        ssize_t more = read(fd, got + n, wanted - n);
        if (more <= 0) fail("read");
        n += (size_t)more;
        /* An error may be all that comes. */
        for (size_t i = n - (size_t)more; i < n; i++) {
            if (got[i] == REPLY[i % REPLY_BYTES]) continue;
            fprintf(stderr, "the server answered: %.*s\n", (int)n, got);
            exit(1);
        }
    }
}

/* Appends one command; returns its end. */
static char *put_command(char *to, const char *verb, unsigned long number, int digits,
                         const char *ttl) {
    const line *value = &lines.list[number % lines.count];
    char key[32];
    int key_len = snprintf(key, sizeof key, "KEY:%0*lu", digits, number);
    to += sprintf(to, "*5\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n$%zu\r\n", strlen(verb), verb, key_len, key,
                  value->len);
    memcpy(to, value->bytes, value->len);
    to += value->len;
    return to + sprintf(to, "\r\n$2\r\nEX\r\n$%zu\r\n%s\r\n", strlen(ttl), ttl);
}

static void load(const char *port, const char *verb, unsigned long records, int digits,
                 const char *ttl) {
    int fd[CONNECTIONS];
    size_t waiting[CONNECTIONS] = {0};
    char *batch = checked(malloc(DEPTH * (lines.longest + strlen(verb) + strlen(ttl) + 128)));
    for (int i = 0; i < CONNECTIONS; i++) fd[i] = connect_to(port);
    unsigned long next = 0;
    for (int turn = 0; next < records; turn = (turn + 1) % CONNECTIONS) {
        char *end = batch;
        size_t count = records - next < DEPTH ? records - next : DEPTH;
        for (size_t i = 0; i < count; i++) end = put_command(end, verb, next++, digits, ttl);
        expect(fd[turn], waiting[turn]);
        send_all(fd[turn], batch, (size_t)(end - batch));
        waiting[turn] = count;
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        expect(fd[i], waiting[i]);
        close(fd[i]);
    }
    free(batch);
}

int main(int argc, char **argv) {
    int digits = argc == 7 ? atoi(argv[5]) : 0;
    if (digits < 1 || digits > 20) {
        fprintf(stderr, "usage: %s <port> <verb> <records> <file> <digits> <ttl>\n", argv[0]);
        return 2;
    }
    struct timespec began, ended;
    read_lines(argv[4]);
    clock_gettime(CLOCK_MONOTONIC, &began);
    load(argv[1], argv[2], strtoul(argv[3], NULL, 10), digits, argv[6]);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%.3f\n",
           (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9);
    return 0;
}
