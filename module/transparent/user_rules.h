/*
 * user_rules.h: what the rules of all users say of the commands that are served: whether each user
 * may run both the server's command and ours that stands for it, and whether the default user asks
 * for a password. To ask what each may takes long, so it is kept until rules change.
 */
#ifndef CKV_USER_RULES_H
#define CKV_USER_RULES_H

#include "ckv.h"

#define USER_RULES_DEFAULT   "default"
#define USER_RULES_NAMES_MAX 64

typedef struct user_rules {
    const char *const *names; /* of the commands, by number */
    int count;
    bool changing;                  /* the rules may, at any moment */
    bool known;                     /* what follows is still true */
    bool all[USER_RULES_NAMES_MAX]; /* every user may run both commands */
    bool default_off;               /* the default user is off */
    bool default_password;          /* it is on and has a password */
    bool by_db;                     /* some user's rules are for some databases only */
} user_rules;

/* Once, at load, with the names of the server's commands; they stay the caller's. */
void user_rules_start(const char *const *names, int count);

/* As they were looked at last. */
const user_rules *user_rules_now(void);

/* Looks at them, if they are not known. While rules change: who may what is asked command by
 * command, unless all can be looked at now (false). Then, and at other times, it is known what
 * every user may. */
bool user_rules_look(void);

/* Whether the default user is off, also while rules change. */
bool user_rules_default_is_off(void);

/* The rules change now, or at any moment from now on. */
void user_rules_change(void);
/* They have changed. False: that is not taken note of, as all users were looked at lately, and it
 * took long: they count as changing. */
bool user_rules_changed(void);

#endif
