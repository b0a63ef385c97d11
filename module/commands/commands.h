/* commands.h: the commands, a family a file. command_table.c has the table: a command is added
 * there and here. */
#ifndef CKV_COMMANDS_H
#define CKV_COMMANDS_H

#include "redismodule.h"

#include <stdbool.h>

typedef int command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* cmd_set.c */
command cmd_cset, cmd_csetnx, cmd_csetex, cmd_cpsetex, cmd_cgetset;
/* cmd_get.c */
command cmd_cget, cmd_cstrlen, cmd_cgetdel, cmd_cgetex;
/* cmd_many.c */
command cmd_cmset, cmd_cmget, cmd_cmsetnx, cmd_cmsetex;
/* cmd_modify.c */
command cmd_cappend, cmd_cgetrange, cmd_csetrange;
command cmd_cincr, cmd_cdecr, cmd_cincrby, cmd_cdecrby, cmd_cincrbyfloat;
/* cmd_key.c */
command cmd_cdel, cmd_cdelex, cmd_cexists, cmd_ctouch, cmd_cdbsize;
/* cmd_scan.c */
command cmd_cscan, cmd_ckeys, cmd_crandomkey;
/* Whether what is met expired stays, by who calls them for a command that was called itself;
 * returns what was so before. */
bool cmd_scan_leave_expired(bool leave);
/* cmd_expire.c */
command cmd_cttl, cmd_cpttl, cmd_cexpiretime, cmd_cpexpiretime;
command cmd_cexpire, cmd_cpexpire, cmd_cexpireat, cmd_cpexpireat, cmd_cpersist;
/* cmd_ckv.c */
command cmd_cevict, cmd_ckv;

#endif
