/*
 * saved_codecs.h: codecs beside the pages that name them, in a file or a payload:
 *
 *      [current id][codecs] ([id][codec, see codec_file.h])...
 *
 * Ids are those of the server that saved them.
 */
#ifndef CKV_SAVED_CODECS_H
#define CKV_SAVED_CODECS_H

#include "ckv.h"

/* From ids of the saver to ours; MAP_SAVE_NO_CODEC: there is none of that id. */
typedef struct codec_ids {
    uint8_t ours[256];
    uint8_t current; /* ours of the saver's current one, or MAP_SAVE_NO_CODEC */
} codec_ids;

/* Writes those that are wanted. */
void saved_codecs_save(RedisModuleIO *io, const bool wanted[CODECS_MAX]);
/* Adds them to ours; those that are here already are recognised. False: one is damaged, or there
 * was no memory, or no id left. What has been added then is freed as what no page names is. */
bool saved_codecs_load(RedisModuleIO *io, codec_ids *ids);

#endif
