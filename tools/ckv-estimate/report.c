/* report.c: what the reports have in common. See report.h. */
#include "report.h"

#include "common/common.h"

#include <math.h>
#include <stdio.h>

const char *report_server(const report *r, char text[REPORT_TEXT]) {
    const address *to = &r->o->to;
    if (to->socket)
        snprintf(text, REPORT_TEXT, "%s (%s)", to->socket, r->from->name);
    else
        snprintf(text, REPORT_TEXT, "%s:%ld (%s)", to->host, to->port, r->from->name);
    return text;
}

static void note_cluster(const report *r, FILE *to) {
    if (r->from->cluster && r->from->primaries > 0)
        fprintf(to, "This is about one node: the cluster has %ld primaries. Ask each of them.\n",
                r->from->primaries);
    else if (r->from->cluster)
        fputs("This is about one node of a cluster. Ask each of its primaries.\n", to);
}

static void note_unknown(double bytes, FILE *to) {
    char text[REPORT_TEXT];
    report_bytes(fabs(bytes), text);
    if (bytes > 0)
        fprintf(to, "%s more are in use that are not in these figures (MEMORY STATS).\n", text);
    else
        fprintf(to, "Today's figures are %s more than the server has in use (MEMORY STATS).\n",
                text);
}

const char *report_notes(const report *r, char text[REPORT_TEXT]) {
    FILE *to = fmemopen(text, REPORT_TEXT, "w");
    if (!to) fail(1, "out of memory");
    *text = 0;
    note_cluster(r, to);
    if (r->from->stale)
        fputs("The replica has lost its primary: its keys are those of before.\n", to);
    if (r->from->records > 0)
        fprintf(to, "%.0f records are in ckv already; this is about the other keys.\n",
                (double)r->from->records);
    if (r->e->unknown != 0) note_unknown(r->e->unknown, to);
    fclose(to);
    return text;
}

const char *report_bytes(double bytes, char text[REPORT_TEXT]) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int unit = 0;
    for (; fabs(bytes) >= 999.5 && unit < 4; unit++) bytes /= 1000;
    snprintf(text, REPORT_TEXT, "%.*f %s",
             unit == 0           ? 0
             : fabs(bytes) < 10  ? 2
             : fabs(bytes) < 100 ? 1
                                 : 0,
             bytes, units[unit]);
    return text;
}
