/* ckv-estimate: what the strings of a server would take with ckv. In the order in which it goes:
 *
 *   options.c      the command line; uri.c
 *   connection.c   pipelines over TCP, TLS (tls.c) or a Unix socket; reply.c
 *   server.c       what the server tells about itself
 *   sample.c       keys and values, by families (family.c), no faster than may be (rate.c);
 *                  what others call themselves is shown by printable.c
 *   neighbours.c   how many keys share a stem
 *   store.c        a server with ckv, imitated: selection.c, entries.c, counted.c,
 *                  learn.c on two cores (cores.c)
 *   estimate.c     from the sample to the whole: tables.c, interval.c, prefixes.c
 *   table.c json.c html.c
 */
#include "common/common.h"
#include "cores.h"
#include "neighbours.h"
#include "progress.h"
#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void tell(const report *r) {
    if (r->o->html) report_html(r, r->o->html);
    if (r->o->prefixes) {
        char *prefixes = estimate_prefixes(r->e);
        printf("ckv.prefixes \"%s\"\n", prefixes);
        free(prefixes);
    } else if (r->o->json) {
        report_json(r);
    } else {
        report_table(r);
    }
    check_printed();
}

int main(int argc, char **argv) {
    options o;
    server from;
    sample s;
    store_figures figures;
    estimate e;
    signal(SIGPIPE, SIG_IGN);
    options_parse(&o, argc, argv);
    double began = now_seconds();
    connection *c = connection_open(&o.to);
    server_look(&from, c, o.database);
    sample_take(&s, c, &from, &o);
    if (!s.whole) neighbours_ask(&s, c, &from, &o);
    connection_close(c);
    cores_use();
    store_imitate(&figures, &s, &from);
    estimate_make(&e, &s, &from, &figures);
    tell(&(report){&o, &from, &s, &e, now_seconds() - began});
    estimate_free(&e);
    store_figures_free(&figures);
    sample_free(&s);
    server_free(&from);
    return 0;
}
