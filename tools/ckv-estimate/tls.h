/* tls.h: TLS over a connected socket, by OpenSSL. */
#ifndef ESTIMATE_TLS_H
#define ESTIMATE_TLS_H

#include "address.h"

#include <sys/types.h>

typedef struct tls tls;

/* Shakes hands; ends the program with a message if that fails. */
tls *tls_open(int fd, const address *to, const char *server);
void tls_close(tls *t);

/* As send() and recv(); *why is the reason of a failure that errno does not tell. */
ssize_t tls_write(tls *t, const void *bytes, size_t n, const char **why);
ssize_t tls_read(tls *t, void *bytes, size_t n, const char **why);

#endif
