/* json.c: the estimate as JSON. See report.h. */
#include "report.h"

#include <stdio.h>

/* Texts hold no control characters (printable.h). */
static void text(const char *name, const char *value) {
    printf("\"%s\": \"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') putchar('\\');
        putchar(*value);
    }
    putchar('"');
}

static void number(const char *name, double value) {
    printf(", \"%s\": %.2f", name, value);
}

static void whole(const char *name, double value) {
    printf(", \"%s\": %.0f", name, value);
}

static void print_figures(const row *r) {
    whole("bytes_now", r->now);
    whole("bytes_with_ckv", r->with_ckv);
    whole("saved", row_saved(r));
    number("times", row_times(r));
    whole("keys_staying", r->staying);
    whole("bytes_staying", r->staying_bytes);
    if (r->stored == 0) return;
    number("encode_us", r->encode_us / r->stored);
    number("decode_us", r->decode_us / r->stored);
}

static void print_family(const row *r) {
    printf("  {");
    text("family", r->name);
    printf(", ");
    text("prefix", r->prefix);
    printf(", ");
    text("type", r->type);
    whole("keys", r->keys);
    number("mean_key", row_mean(r->key_bytes, r->keys));
    if (r->strings) number("mean_value", row_mean(r->value_bytes, r->keys));
    printf(", \"expiring\": %.4f", row_mean(r->expiring, r->keys));
    print_figures(r);
    printf("}");
}

void report_json(const report *r) {
    printf("{\"server\": {");
    text("version", r->from->name);
    if (r->from->stale) printf(", \"stale\": true");
    if (r->from->cluster) whole("cluster_primaries", (double)r->from->primaries);
    printf("},\n \"sample\": {\"keys\": %zu", r->s->count);
    printf(", \"whole\": %s", r->s->whole ? "true" : "false");
    number("seconds", r->seconds);
    printf("},\n \"families\": [");
    for (size_t i = 0; i < r->e->count; i++) {
        printf(i ? ",\n" : "\n");
        print_family(&r->e->rows[i]);
    }
    printf("],\n \"total\": {\"keys\": %.0f", r->e->total.keys);
    print_figures(&r->e->total);
    whole("low", r->e->low);
    whole("high", r->e->high);
    printf("}}\n");
}
