/* html.c: the estimate as one page that needs nothing else: no script, no font, no picture from
 * anywhere. See report.h. */
#include "report.h"

#include "common/common.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char style[] =
    ":root{--page:#fff;--text:#1c2430;--soft:#667085;--line:#e4e7ec;--now:#98a2b3;--ckv:#0e9384}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#14181f;--text:#e6e9ee;--soft:#98a2b3;"
    "--line:#2c3440;--now:#667085;--ckv:#2ed3b7}}\n"
    "body{margin:0 auto;padding:2.5rem 1.5rem;max-width:62rem;background:var(--page);"
    "color:var(--text);font:15px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.9rem;line-height:1.25;margin:0 0 .3rem}h2{font-size:1.1rem;margin:2.2rem 0 "
    ".6rem}\n"
    "p{margin:.3rem 0}.soft{color:var(--soft)}b.ckv{color:var(--ckv)}\n"
    "table{border-collapse:collapse;width:100%}td,th{padding:.45rem .5rem;text-align:right;"
    "border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "th{color:var(--soft);font-weight:normal}td:first-child,th:first-child{text-align:left;"
    "max-width:14rem;overflow:hidden;text-overflow:ellipsis}\n"
    "td.bars{width:40%;text-align:left}tr.total td{font-weight:600;border-bottom:0}\n"
    ".bar{position:relative;height:.6rem;margin:.12rem 0;border-radius:2px;min-width:1px}\n"
    ".now{background:var(--now)}.ckv.bar{background:var(--ckv)}\n"
    ".sure{position:absolute;top:-.15rem;height:.9rem;box-sizing:border-box;"
    "border:solid var(--text);border-width:0 1px}\n"
    ".key{display:inline-block;width:.8rem;height:.6rem;border-radius:2px;margin:0 .3rem 0 1rem}\n";

/* ---- texts ----------------------------------------------------------------------------------- */

static void escaped(FILE *f, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
    }
}

static void bytes(FILE *f, double n) {
    char text[REPORT_TEXT];
    fputs(report_bytes(n, text), f);
}

/* A number with thousands apart. */
static void count(FILE *f, double n) {
    char digits[40];
    int len = snprintf(digits, sizeof digits, "%.0f", n);
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) fputs("&#8239;", f);
        fputc(digits[i], f);
    }
}

static void name(FILE *f, const row *r) {
    escaped(f, *r->name ? r->name : "(no name)");
}

/* ---- the page -------------------------------------------------------------------------------- */

static void print_head(FILE *f, const report *r) {
    char text[REPORT_TEXT], day[32];
    time_t now = time(NULL);
    const row *total = &r->e->total;
    strftime(day, sizeof day, "%Y-%m-%d", localtime(&now));
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" "
          "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>ckv-estimate: ",
          f);
    escaped(f, report_server(r, text));
    fprintf(f, "</title>\n<style>\n%s</style>\n<h1>", style);
    bytes(f, total->now);
    fputs(" today, <b class=\"ckv\">", f);
    bytes(f, total->with_ckv);
    bool less = row_saved(total) >= 0;
    fprintf(f, "</b> with ckv</h1>\n<p>It would %s ", less ? "save" : "take");
    bytes(f, fabs(row_saved(total)));
    fputs(less ? "" : " more", f);
    fputs(". With 95% certainty between ", f);
    bytes(f, r->e->low);
    fputs(" and ", f);
    bytes(f, r->e->high);
    fputs(" would be left.</p>\n<p class=\"soft\">", f);
    escaped(f, report_server(r, text));
    fputs(", ", f);
    count(f, total->keys);
    fputs(" keys, ", f);
    count(f, (double)r->s->count);
    fprintf(f, " of them read on %s. ", day);
    escaped(f, report_notes(r, text));
    fputs("</p>\n", f);
}

static void print_bars(FILE *f, const report *r, const row *of, double scale) {
    fprintf(f, "<td class=\"bars\"><div class=\"bar now\" style=\"width:%.2f%%\"></div>",
            of->now * scale);
    fprintf(f, "<div class=\"bar ckv\" style=\"width:%.2f%%\">", of->with_ckv * scale);
    if (of == &r->e->total && of->with_ckv > 0)
        fprintf(f, "<span class=\"sure\" style=\"left:%.2f%%;width:%.2f%%\"></span>",
                100 * r->e->low / of->with_ckv, 100 * (r->e->high - r->e->low) / of->with_ckv);
    fputs("</div></td>", f);
}

static void print_row(FILE *f, const report *r, const row *of, double scale) {
    fputs(of == &r->e->total ? "<tr class=\"total\"><td>" : "<tr><td>", f);
    name(f, of);
    fputs("</td>", f);
    print_bars(f, r, of, scale);
    fputs("<td>", f);
    bytes(f, of->now);
    fputs("</td><td>", f);
    bytes(f, of->with_ckv);
    fputs("</td><td>", f);
    bytes(f, row_saved(of));
    fprintf(f, "</td><td>%.1f</td><td>", row_times(of));
    count(f, of->keys);
    fprintf(f, "</td><td>%.0f</td><td>%.0f%%</td></tr>\n", row_mean(of->value_bytes, of->keys),
            100 * row_mean(of->expiring, of->keys));
}

/* The families, each on the scale of the largest, and the total on its own. */
static void print_strings(FILE *f, const report *r) {
    const estimate *e = r->e;
    double largest = 1;
    for (size_t i = 0; i < e->count; i++)
        if (e->rows[i].stored > 0 && e->rows[i].now > largest) largest = e->rows[i].now;
    fputs("<h2>By family of keys<span class=\"soft\"><span class=\"key now\"></span>today"
          "<span class=\"key ckv bar\"></span>with ckv</span></h2>\n<table>\n"
          "<tr><th>family</th><th></th><th>today</th><th>with ckv</th><th>saved</th><th>times</th>"
          "<th>keys</th><th>value, bytes</th><th>expiring</th></tr>\n",
          f);
    for (size_t i = 0; i < e->count; i++)
        if (e->rows[i].stored > 0) print_row(f, r, &e->rows[i], 100 / largest);
    print_row(f, r, &e->total, e->total.now > 0 ? 100 / e->total.now : 0);
    fputs(
        "</table>\n<p class=\"soft\">The total is on a scale of its own, with what else the server "
        "has; the two marks at its lower bar are the interval.</p>\n",
        f);
}

static void print_staying(FILE *f, const report *r) {
    const estimate *e = r->e;
    if (e->total.staying == 0) return;
    fputs(
        "<h2>What would stay as it is</h2>\n<table>\n<tr><th>family</th><th>type</th><th>keys</th>"
        "<th>memory</th></tr>\n",
        f);
    for (size_t i = 0; i < e->count; i++) {
        const row *of = &e->rows[i];
        if (of->staying == 0) continue;
        fputs("<tr><td>", f);
        name(f, of);
        fputs("</td><td>", f);
        escaped(f, of->type);
        fputs("</td><td>", f);
        count(f, of->staying);
        fputs("</td><td>", f);
        bytes(f, of->staying_bytes);
        fputs("</td></tr>\n", f);
    }
    fputs("</table>\n<p class=\"soft\">No strings, or strings that ckv does not compress: larger "
          "ones, HyperLogLogs.</p>\n",
          f);
}

static void print_end(FILE *f, const report *r) {
    const row *total = &r->e->total;
    if (total->stored > 0)
        fprintf(
            f,
            "<p class=\"soft\">A value takes %.1f &micro;s to encode and %.1f &micro;s to decode, "
            "on the machine that estimated it.</p>\n",
            total->encode_us / total->stored, total->decode_us / total->stored);
    fputs("</html>\n", f);
}

void report_html(const report *r, const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) fail(1, "cannot write %s: %s", path, strerror(errno));
    print_head(f, r);
    if (r->e->total.stored > 0) print_strings(f, r);
    print_staying(f, r);
    print_end(f, r);
    bool failed = ferror(f);
    if (fclose(f) != 0 || failed) fail(1, "cannot write %s", path);
}
