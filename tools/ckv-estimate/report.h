/* report.h: the estimate, told. */
#ifndef ESTIMATE_REPORT_H
#define ESTIMATE_REPORT_H

#include "estimate.h"

typedef struct report {
    const options *o;
    const server *from;
    const sample *s;
    const estimate *e;
    double seconds; /* that all of it took */
} report;

void report_table(const report *r);
void report_json(const report *r);
/* Ends the program if the file cannot be written. */
void report_html(const report *r, const char *path);

/* Where the server is, as a text. */
#define REPORT_TEXT 1000
const char *report_server(const report *r, char text[REPORT_TEXT]);
/* What is to be known of the server besides, a line each; "" if there is nothing. */
const char *report_notes(const report *r, char text[REPORT_TEXT]);
/* "41.2 MB" */
const char *report_bytes(double bytes, char text[REPORT_TEXT]);

#endif
