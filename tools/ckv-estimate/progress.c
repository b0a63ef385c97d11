/* progress.c: see progress.h. */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WIDTH     30
#define EVERY_S   0.1
#define SURE_AT_S 1.0 /* before that the time that is left would be a guess */

static struct { double began, drawn, done; } bar;

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void progress_show(const char *what, double done) {
    double now = now_seconds();
    if (bar.began == 0 || done < bar.done) bar.began = now, bar.drawn = 0;
    bar.done = done;
    if (now - bar.drawn < EVERY_S) return;
    bar.drawn = now;
    if (!isatty(STDERR_FILENO)) return;
    int filled = (int)(WIDTH * done);
    fprintf(stderr, "\r\033[K%-24s [%.*s%.*s] %3d%%", what, filled,
            "##############################", WIDTH - filled, "..............................",
            (int)(100 * done));
    double left = done > 0 ? (now - bar.began) * (1 - done) / done : 0;
    if (now - bar.began >= SURE_AT_S)
        fprintf(stderr, "  %d:%02d left", (int)left / 60, (int)left % 60);
    fflush(stderr);
}

void progress_end(void) {
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}
