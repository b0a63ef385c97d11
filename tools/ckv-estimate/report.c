/* report.c: what the reports have in common. See report.h. */
#include "report.h"

#include <math.h>
#include <stdio.h>

const char *report_server(const report *r, char text[REPORT_TEXT]) {
    const address *to = &r->o->to;
    if (to->socket)
        snprintf(text, REPORT_TEXT, "%s (%s)", to->socket, r->from->version);
    else
        snprintf(text, REPORT_TEXT, "%s:%ld (%s)", to->host, to->port, r->from->version);
    return text;
}

const char *report_cluster(const report *r, char text[REPORT_TEXT]) {
    *text = 0;
    if (r->from->cluster && r->from->primaries > 0)
        snprintf(text, REPORT_TEXT,
                 "This is about one node: the cluster has %ld primaries. Ask each of them.",
                 r->from->primaries);
    else if (r->from->cluster)
        snprintf(text, REPORT_TEXT,
                 "This is about one node of a cluster. Ask each of its primaries.");
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
