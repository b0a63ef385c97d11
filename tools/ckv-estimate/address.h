/* address.h: where a server is, and how it is spoken to. */
#ifndef ESTIMATE_ADDRESS_H
#define ESTIMATE_ADDRESS_H

#include <stdbool.h>

/* As redis-cli has it, which looks at a certificate's chain and not at the host's name. */
typedef struct address {
    const char *host;
    long port;
    const char *socket; /* a Unix socket instead; NULL: none */
    const char *user, *password;
    bool tls, insecure;
    const char *sni, *ca_file, *ca_dir, *certificate, *key, *ciphers, *ciphersuites;
} address;

#endif
