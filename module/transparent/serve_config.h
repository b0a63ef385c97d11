/*
 * serve_config.h: CONFIG GET, where maxmemory is what was asked for, wherever the setting stands
 * (background/evict.c), and CONFIG RESETSTAT, which resets counters of ours as well.
 */
#ifndef CKV_SERVE_CONFIG_H
#define CKV_SERVE_CONFIG_H

#include "commands/commands.h"

command serve_config;

#endif
