/* command_line.h: the options of a program, from a table of them. */
#ifndef CKV_BENCH_COMMAND_LINE_H
#define CKV_BENCH_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Option Option;
struct Option {
    const char *name; /* of one letter: -x, and it has an argument */
    /* Fills what the program keeps its options in, or ends the program. */
    void (*set)(void *options, const Option *option, const char *text);
    size_t at;                   /* of the member, for those below */
    const char *argument, *help; /* NULL: it has no argument */
    long least, most;            /* of a number */
};

/* What most are: const char *, bool, long, double. */
void option_text(void *options, const Option *option, const char *text);
void option_flag(void *options, const Option *option, const char *text);
void option_number(void *options, const Option *option, const char *text);
void option_real(void *options, const Option *option, const char *text);

bool option_allows(const Option *option, double number);
const char *option_dashes(const Option *option);
/* A line or more for each; what they do stands behind `column`. */
void options_print(const Option *all, int count, int column);

/* Ends the program with a message if an argument is wrong; behind help() after --help, and after -h
 * where that is none of the options. */
void options_read(void *options, const Option *all, int count, void (*help)(void), int argc,
                  char **argv);

#endif
