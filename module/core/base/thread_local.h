/*
 * thread_local.h: variables of which each thread has its own.
 *
 * For those of a library that is loaded by a running program, glibc takes memory as a thread first
 * touches one, and ends the process where there is none. Of this model they lie in what every
 * thread has from its beginning: some hundred bytes for all such libraries, of which these take a
 * few. musl, which knows no such thing, takes the memory as a thread starts.
 */
#ifndef CKV_THREAD_LOCAL_H
#define CKV_THREAD_LOCAL_H

#include <features.h>

#ifdef __GLIBC__
#define THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define THREAD_LOCAL _Thread_local
#endif

#endif
