/*
 * reply.h: what a command was answered with.
 *
 * Whatever is at the other end may answer anything. An answer that the command does not give, by
 * its type or as it is larger, ends the program with a message.
 */
#ifndef ESTIMATE_REPLY_H
#define ESTIMATE_REPLY_H

#include <hiredis/hiredis.h>

/* A text of at most so many bytes, which is never NULL; its length is the reply's. */
const char *reply_text(const redisReply *reply, const char *command, size_t most);
long long reply_number(const redisReply *reply, const char *command, long long most);
/* How many elements a list has. */
size_t reply_list(const redisReply *reply, const char *command, size_t most);

/* Ends the program, as a command was answered with an error. */
void reply_refused(const redisReply *error, const char *command) __attribute__((noreturn));

#endif
