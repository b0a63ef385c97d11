/* databases.h: the databases that the server has. */
#ifndef CKV_DATABASES_H
#define CKV_DATABASES_H

/* How many they are, for as long as it runs: one in a cluster, mostly. Main thread. */
int databases_count(void);

#endif
