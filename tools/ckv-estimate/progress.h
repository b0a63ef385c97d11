/* progress.h: a bar with the time that is left, on stderr, if that is a terminal. */
#ifndef ESTIMATE_PROGRESS_H
#define ESTIMATE_PROGRESS_H

/* `done` of what there is to do, 0 to 1; begins anew when it goes back. */
void progress_show(const char *what, double done);
void progress_end(void);

double now_seconds(void);

#endif
