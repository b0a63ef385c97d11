/* pages.h: a map as its pages are, for whoever has the codecs that they name. The format is in
 * rdb.h. */
#ifndef CKV_PAGES_H
#define CKV_PAGES_H

#include "ckv.h"

void pages_save(RedisModuleIO *io, map *m);
/* `codec_ids`: from those of the saver to ours, see map_save.h. NULL: damaged or out of memory. */
map *pages_load(RedisModuleIO *io, const uint8_t codec_ids[256]);

#endif
