/* table.c: the estimate as a table for a terminal. See report.h. */
#include "report.h"

#include <math.h>
#include <stdio.h>

#define NAME_MAX_LEN 28 /* characters of a family's name, or of a type's */

static const char *name_of(const row *r) {
    return *r->name ? r->name : "(no name)";
}

/* Texts are UTF-8 (printable.h). Whether a byte is a character's first. */
static bool begins_character(char c) {
    return (c & 0xc0) != 0x80;
}

static int characters(const char *text) {
    int count = 0;
    for (; *text; text++) count += begins_character(*text);
    return count;
}

/* The first characters of a text, and blanks where it has fewer. */
static void name(int width, const char *text) {
    int left = width;
    for (; *text && (left > 0 || !begins_character(*text)); text++) {
        left -= begins_character(*text);
        putchar(*text);
    }
    printf("%*s", left, "");
}

/* "-" where there is nothing to tell. */
static void number(int width, const char *format, double value, bool there) {
    char text[64] = "-";
    if (there) snprintf(text, sizeof text, format, value);
    printf("  %*s", width, text);
}

static void bytes(double value, bool there) {
    char text[REPORT_TEXT];
    printf("  %9s", there ? report_bytes(value, text) : "-");
}

static void print_row(const row *r, int names, int types) {
    bool gains = r->strings && r->stored > 0;
    name(names, name_of(r));
    fputs("  ", stdout);
    name(types, r->type);
    number(11, "%.0f", r->keys, true);
    number(6, "%.1f", row_mean(r->key_bytes, r->keys), true);
    number(8, "%.1f", row_mean(r->value_bytes, r->keys), r->strings);
    number(4, "%.0f%%", 100 * row_mean(r->expiring, r->keys), true);
    bytes(r->now, true);
    bytes(r->with_ckv, true);
    bytes(row_saved(r), gains);
    number(5, "%.1f", row_times(r), gains);
    number(7, "%.2f", row_mean(r->encode_us, r->stored), gains);
    number(7, "%.2f", row_mean(r->decode_us, r->stored), gains);
    putchar('\n');
}

static int widest(const estimate *e, const char *(*text)(const row *), int least) {
    int widest = least;
    for (size_t i = 0; i < e->count; i++) {
        int width = characters(text(&e->rows[i]));
        if (width > widest) widest = width;
    }
    return widest < NAME_MAX_LEN ? widest : NAME_MAX_LEN;
}

static const char *type_of(const row *r) {
    return r->type;
}

static void print_rows(const estimate *e) {
    int names = widest(e, name_of, 6), types = widest(e, type_of, 6);
    row total = e->total;
    printf("%-*s  %-*s  %11s  %6s  %8s  %4s  %9s  %9s  %9s  %5s  %7s  %7s\n", names, "family",
           types, "type", "keys", "key", "value", "TTL", "now", "with ckv", "saved", "times",
           "us in", "us out");
    for (size_t i = 0; i < e->count; i++) print_row(&e->rows[i], names, types);
    total.strings = total.stored > 0;
    print_row(&total, names, types);
}

/* Whoever names all keys pays for these. */
static void print_losing(const estimate *e) {
    size_t losing = 0;
    for (size_t i = 0; i < e->count; i++) losing += row_saved(&e->rows[i]) < 0;
    if (losing > 0)
        printf("%zu of the families would take more than they do: --prefixes leaves them out.\n",
               losing);
}

static void print_total(const report *r) {
    const row *total = &r->e->total;
    double saved = row_saved(total);
    bool less = saved >= 0;
    char of[REPORT_TEXT], text[REPORT_TEXT], low[REPORT_TEXT], high[REPORT_TEXT];
    printf("\nckv would %s %s %s %s: ", less ? "save" : "take", report_bytes(fabs(saved), text),
           less ? "of" : "more than", report_bytes(total->now, of));
    printf("%s would be left (%s to %s, 95%% sure).\n", report_bytes(total->with_ckv, text),
           report_bytes(r->e->low, low), report_bytes(r->e->high, high));
    if (total->staying_bytes > 0)
        printf("%s of that stay as they are: no strings, or none that ckv compresses.\n",
               report_bytes(total->staying_bytes, text));
    print_losing(r->e);
}

void report_table(const report *r) {
    char text[REPORT_TEXT];
    printf("%s: %zu of %.0f keys read, %.1f s\n", report_server(r, text), r->s->count,
           (double)r->from->keys, r->seconds);
    fputs(report_notes(r, text), stdout);
    if (r->s->count == 0) {
        puts("There are no keys.");
        return;
    }
    putchar('\n');
    print_rows(r->e);
    print_total(r);
}
