/*
 * both.h: two long computations of which neither needs the other.
 *
 * In a server, whose cores are its clients', one comes after the other. A program that has cores to
 * spare sets run_both to something that takes two, before it has other threads.
 */
#ifndef CKV_BOTH_H
#define CKV_BOTH_H

/* Calls run(a) and run(b), and returns when both are done. */
extern void (*run_both)(void (*run)(void *), void *a, void *b);

#endif
