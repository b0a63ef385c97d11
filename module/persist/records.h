/* records.h: a map as plain records, for whoever has other codecs. The format is in rdb.h. */
#ifndef CKV_RECORDS_H
#define CKV_RECORDS_H

#include "keyspace/maps.h"

void records_save(RedisModuleIO *io, map *m);
/* NULL: damaged or out of memory. */
map *records_load(RedisModuleIO *io);

#endif
