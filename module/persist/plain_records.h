/* plain_records.h: a map as plain records, for whoever has other codecs. The format is in rdb.h. */
#ifndef CKV_PLAIN_RECORDS_H
#define CKV_PLAIN_RECORDS_H

#include "keyspace/maps.h"

void plain_records_save(RedisModuleIO *io, map *m);
/* NULL: damaged or out of memory. */
map *plain_records_load(RedisModuleIO *io);

#endif
