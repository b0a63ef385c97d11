/* defaults.h: settings as they are unless a server is told otherwise; for the server, and for
 * programs that do what it would do. */
#ifndef CKV_DEFAULTS_H
#define CKV_DEFAULTS_H

#define DEFAULT_MAPS              1024
#define DEFAULT_DICTIONARY_SIZE   (8 << 20)
#define DEFAULT_COMPRESSION_LEVEL 3
#define DEFAULT_TRAIN_AFTER       (1 << 20)
#define DEFAULT_ENCODE_THREADS    1
#define DEFAULT_MOVE_CPU          2 /* percent */

#endif
