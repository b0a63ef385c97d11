/* tls.c: see tls.h. */
#include "tls.h"

#include "common/common.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

struct tls {
    SSL_CTX *context;
    SSL *session;
};

static const char *reason(void) {
    const char *text = ERR_reason_error_string(ERR_get_error());
    return text ? text : "unknown";
}

static void check(int done, const char *what, const char *of) {
    if (!done) fail(1, "TLS: cannot use %s %s: %s", what, of, reason());
}

static void choose_ciphers(SSL_CTX *context, const address *to) {
    if (to->ciphers) check(SSL_CTX_set_cipher_list(context, to->ciphers), "ciphers", to->ciphers);
    if (to->ciphersuites)
        check(SSL_CTX_set_ciphersuites(context, to->ciphersuites), "ciphersuites",
              to->ciphersuites);
}

/* Which servers are trusted, and who we are. */
static void choose_certificates(SSL_CTX *context, const address *to) {
    SSL_CTX_set_verify(context, to->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (to->ca_file || to->ca_dir)
        check(SSL_CTX_load_verify_locations(context, to->ca_file, to->ca_dir), "certificates of",
              to->ca_file ? to->ca_file : to->ca_dir);
    else
        check(SSL_CTX_set_default_verify_paths(context), "certificates of", "the system");
    if (to->certificate)
        check(SSL_CTX_use_certificate_chain_file(context, to->certificate), "certificate",
              to->certificate);
    if (to->key)
        check(SSL_CTX_use_PrivateKey_file(context, to->key, SSL_FILETYPE_PEM), "key", to->key);
}

tls *tls_open(int fd, const address *to, const char *server) {
    tls *t = allocate(sizeof *t);
    t->context = SSL_CTX_new(TLS_client_method());
    if (!t->context) fail(1, "TLS: %s", reason());
    SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION);
    choose_certificates(t->context, to);
    choose_ciphers(t->context, to);
    t->session = SSL_new(t->context);
    if (!t->session || !SSL_set_fd(t->session, fd)) fail(1, "TLS: %s", reason());
    if (to->sni) check((int)SSL_set_tlsext_host_name(t->session, to->sni), "the name", to->sni);
    if (SSL_connect(t->session) == 1) return t;
    long verified = SSL_get_verify_result(t->session);
    if (verified != X509_V_OK)
        fail(1, "TLS: the certificate of %s is not trusted: %s", server,
             X509_verify_cert_error_string(verified));
    fail(1, "TLS: no secure connection to %s: %s", server, reason());
}

void tls_close(tls *t) {
    SSL_shutdown(t->session);
    SSL_free(t->session);
    SSL_CTX_free(t->context);
    free(t);
}

/* NULL where errno has the reason. */
static ssize_t result_of(tls *t, int n, const char **why) {
    if (n > 0) return n;
    int error = SSL_get_error(t->session, n);
    if (error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_SYSCALL && n == 0)) return 0;
    if (error == SSL_ERROR_SSL) *why = reason();
    return -1;
}

static int at_most(size_t n) {
    return n < INT_MAX ? (int)n : INT_MAX;
}

ssize_t tls_write(tls *t, const void *bytes, size_t n, const char **why) {
    return result_of(t, SSL_write(t->session, bytes, at_most(n)), why);
}

ssize_t tls_read(tls *t, void *bytes, size_t n, const char **why) {
    return result_of(t, SSL_read(t->session, bytes, at_most(n)), why);
}
