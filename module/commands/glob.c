/* glob.c: patterns of keys. See glob.h. */
#include "commands/glob.h"

#include <stddef.h>

/* A pattern with more stars that take something matches nothing: from Redis 7.2 on, and in what
 * Debian made of 7.0 since. */
#define STARS_MAX 1000

/* Plain characters, as servers compare them: whether those from 0x80 on are negative is the
 * machine's business. */
typedef struct span {
    const char *at, *end;
} span;

static bool is_between(char c, char one, char other) {
    return one <= other ? one <= c && c <= other : other <= c && c <= one;
}

/* Takes a class, from behind its bracket to behind the one that closes it (or the end), and tells
 * whether c is of it. What is escaped begins no range, and nothing is escaped that ends one. */
static bool match_class(span *p, char c) {
    bool negated = p->at < p->end && *p->at == '^', found = false;
    if (negated) p->at++;
    for (; p->at < p->end && *p->at != ']'; p->at++) {
        ptrdiff_t left = p->end - p->at;
        if (left >= 2 && p->at[0] == '\\') {
            found |= *++p->at == c;
        } else if (left >= 3 && p->at[1] == '-') {
            found |= is_between(c, p->at[0], p->at[2]);
            p->at += 2;
        } else {
            found |= *p->at == c;
        }
    }
    if (p->at < p->end) p->at++;
    return found != negated;
}

/* Takes what stands for one character, and tells whether it stands for c. */
static bool match_one(span *p, char c) {
    char first = *p->at++;
    if (first == '?') return true;
    if (first == '[') return match_class(p, c);
    if (first == '\\' && p->at < p->end) first = *p->at++;
    return first == c;
}

/* When something behind a star does not match, the last star takes one character more: what an
 * earlier star took need not be tried again. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len) {
    span p = {pattern, pattern + pattern_len}, t = {text, text + text_len};
    span behind_star = {0}, taken = {0};
    size_t stars = 0;
    /* Servers look at no pattern for nothing, but for "*", which stands for no pattern. */
    if (text_len == 0) return pattern_len == 0 || (pattern_len == 1 && *pattern == '*');
    while (t.at < t.end) {
        if (p.at < p.end && *p.at == '*') {
            while (p.at < p.end && *p.at == '*') p.at++;
            if (p.at < p.end && ++stars > STARS_MAX) return false;
            behind_star = p;
            taken = t;
        } else if (p.at < p.end && match_one(&p, *t.at)) {
            t.at++;
        } else if (behind_star.end) {
            p = behind_star;
            t.at = ++taken.at;
        } else {
            return false;
        }
    }
    while (p.at < p.end && *p.at == '*') p.at++;
    return p.at == p.end;
}
