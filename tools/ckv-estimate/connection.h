/*
 * connection.h: one connection to a server: TCP, TLS or a Unix socket, and pipelines over it.
 *
 * hiredis writes commands and reads replies as the protocol has them; the bytes are sent and
 * received here, so that TLS is the same with any version of it. Whatever goes wrong with the
 * connection ends the program with a message.
 */
#ifndef ESTIMATE_CONNECTION_H
#define ESTIMATE_CONNECTION_H

#include "address.h"

#include <hiredis/hiredis.h>

typedef struct connection connection;

/* Connects, and logs in if there is a password. */
connection *connection_open(const address *to);
void connection_close(connection *c);

/* Puts a command into the pipeline, which is sent when a reply is asked for. */
void connection_send(connection *c, int argc, const char **argv, const size_t *lengths);
void connection_send_text(connection *c, const char *format, ...);

/* The reply to the first command that has not been answered; errors are replies. The caller frees
 * it. */
redisReply *connection_reply(connection *c);

/* The reply to the next command, which may not be an error. */
redisReply *connection_answer(connection *c, const char *command);

/* The commands from here on are about this database. */
void connection_select(connection *c, long database);

#endif
