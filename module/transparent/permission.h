/*
 * permission.h: whether a user may have a command served, whose rules speak of the server's own.
 *
 * The server checks a command by the name that the filter gave it. Where each user may run both
 * the server's command and ours that stands for it (most servers: users with +@all, or with
 * categories from Redis 7.2 on), that is right, and costs nothing. Where one may not, the name is
 * one that every user may run and that asks by itself (served.h). The server lets such a command
 * pass before a client has authenticated, so that it can only be taken where a client who has not
 * can be told from one who has:
 *
 *      default user without a password    any client is authenticated as it
 *      another user                       nobody is one without having authenticated
 *
 * Of the default user with a password, or who is off by now, who may run both commands ours is
 * taken by its first name, which the server lets nobody run who has not authenticated. What is left
 * are clients of such a user with rules of its own, and Redis 7.0, which does not tell filters who
 * sends a command: they are not served, but by the server itself. (There one that is off counts as
 * nobody.)
 */
#ifndef CKV_PERMISSION_H
#define CKV_PERMISSION_H

#include "ckv.h"
#include "server/filter.h"

typedef enum permission_way {
    PERMISSION_BY_RULES, /* ckv.get */
    PERMISSION_ASKING,   /* ckv+get */
    PERMISSION_NATIVE,   /* the server's own command */
    PERMISSION_DENIED,   /* the same: the server will refuse it */
} permission_way;

/* Whether users may have other rights behind an ACL or a CONFIG. */
bool permission_changes_by(filtered *command);

/* The rules of users change now, or at any moment until they have: who may what is asked command by
 * command then. When they have, all users are looked at, which takes long where there are many. */
void permission_change(void);
bool permission_changing(void);
void permission_changed(void);

/* How the command of that number (user_rules.h) is to be run for its sender. */
permission_way permission_way_of(filtered *command, int number);

/* Whether the sender of a command may run it as it was sent, as far as the server tells; who has
 * not authenticated counts as the default user. */
bool permission_may_send(filtered *command);

/* Whether the user behind a command of ours may run the server's own, of that number; of a ckv+ one
 * it may be that nobody has authenticated. False: that is the reply, and it is in ACL LOG. */
bool permission_ask(RedisModuleCtx *ctx, int number, RedisModuleString **argv, int argc,
                    bool may_be_nobody);

/* Whether every user may run the command of that number, and ours that stands for it. */
bool permission_of_all(int number);

#endif
