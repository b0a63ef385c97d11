/* options.h: the command line. */
#ifndef ESTIMATE_OPTIONS_H
#define ESTIMATE_OPTIONS_H

#include "address.h"
#include "family.h"

#define ALL_DATABASES (-1)

typedef struct options {
    address to;
    long database;
    long keys, rate; /* of the sample; keys a second, 0: as fast as it goes */
    family_rule by;
    bool json, prefixes;
    const char *html; /* a file to write; NULL: none */
} options;

/* Ends the program with a message if it is wrong. */
void options_parse(options *o, int argc, char **argv);

#endif
