/*
 * serve_client.h: CLIENT UNPAUSE in a pause of which something has to be told when it is over
 * (pause.h). Where threads of the server's have read it (io-threads), what the pause held back runs
 * next, before any timer.
 */
#ifndef CKV_SERVE_CLIENT_H
#define CKV_SERVE_CLIENT_H

#include "commands/commands.h"

command serve_client;

#endif
