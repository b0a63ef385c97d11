/* config.h: the settings, ckv.<name> of CONFIG GET and SET and of the configuration file. */
#ifndef CKV_CONFIG_H
#define CKV_CONFIG_H

#include "redismodule.h"

int config_register(RedisModuleCtx *ctx);

/* Gives back what they are kept in: the module is not loaded after all. */
void config_give_back(void);

#endif
