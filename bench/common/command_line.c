#include "common/command_line.h"

#include "common/common.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What getopt calls options of several letters: from here on. */
#define LONG_NAME (UCHAR_MAX + 1)

void option_text(void *options, const Option *option, const char *text) {
    *(const char **)((char *)options + option->at) = text;
}

void option_flag(void *options, const Option *option, const char *text) {
    (void)text;
    *(bool *)((char *)options + option->at) = true;
}

void option_number(void *options, const Option *option, const char *text) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < option->least || n > option->most)
        fail(2, "%s%s must be a number from %ld to %ld, not '%s'", option_dashes(option),
             option->name, option->least, option->most, text);
    *(long *)((char *)options + option->at) = n;
}

void option_real(void *options, const Option *option, const char *text) {
    char *end;
    double n = strtod(text, &end);
    if (end == text || *end || !option_allows(option, n))
        fail(2, "%s%s must be from %ld to %ld, not '%s'", option_dashes(option), option->name,
             option->least, option->most, text);
    memcpy((char *)options + option->at, &n, sizeof n);
}

bool option_allows(const Option *option, double number) {
    return number >= (double)option->least && number <= (double)option->most;
}

const char *option_dashes(const Option *option) {
    return option->name[1] ? "--" : "-";
}

void options_print(const Option *all, int count, int column) {
    for (int i = 0; i < count; i++) {
        int room = column - (int)(strlen(option_dashes(&all[i])) + strlen(all[i].name));
        printf("  %s%s %-*s", option_dashes(&all[i]), all[i].name, room,
               all[i].argument ? all[i].argument : "");
        for (const char *at = all[i].help; *at; at++)
            *at == '\n' ? printf("\n%*s", column + 3, "") : putchar(*at);
        putchar('\n');
    }
}

/* Which of the options getopt has found; `count`: none, so help. */
static int index_of(const Option *all, int count, int found) {
    if (found >= LONG_NAME) return found - LONG_NAME;
    int i = 0;
    while (i < count && (all[i].name[0] != found || all[i].name[1])) i++;
    return i;
}

void options_read(void *options, const Option *all, int count, void (*help)(void), int argc,
                  char **argv) {
    struct option *names = allocate(((size_t)count + 2) * sizeof *names);
    char *letters = allocate(2 * (size_t)count + 2);
    int long_names = 0;
    for (int i = 0; i < count; i++) {
        if (all[i].name[1])
            names[long_names++] =
                (struct option){all[i].name, all[i].argument != NULL, NULL, LONG_NAME + i};
        else
            strcat(strcat(letters, all[i].name), ":");
    }
    names[long_names] = (struct option){"help", no_argument, NULL, LONG_NAME + count};
    strcat(letters, "h");
    optind = 1;
    for (int found; (found = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        if (found == '?') exit(2); /* getopt has said what is wrong */
        int i = index_of(all, count, found);
        if (i == count) {
            help();
            check_printed();
            exit(0);
        }
        all[i].set(options, &all[i], optarg);
    }
    if (optind < argc) fail(2, "unknown argument '%s'", argv[optind]);
    free(names);
    free(letters);
}
