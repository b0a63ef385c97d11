/* cores.h: the learning on two cores, where the machine has them. */
#ifndef CKV_ESTIMATE_CORES_H
#define CKV_ESTIMATE_CORES_H

/* To be called once, before anything is learned. */
void cores_use(void);

#endif
