/* glob.c: patterns of keys. See glob.h. */
#include "commands/glob.h"

/* A pattern with more stars that take something matches nothing: from Redis 7.2 on, and in what
 * Debian made of 7.0 since. */
#define STARS_MAX 1000

typedef struct span {
    const unsigned char *at, *end;
} span;

/* One character of a class, which may be escaped. */
static unsigned char class_char(span *p) {
    if (*p->at == '\\' && p->at + 1 < p->end) p->at++;
    return *p->at++;
}

/* Takes a class, from behind its bracket to behind the one that closes it (or the end), and tells
 * whether c is of it. */
static bool match_class(span *p, unsigned char c) {
    bool negated = p->at < p->end && *p->at == '^', found = false;
    if (negated) p->at++;
    while (p->at < p->end && *p->at != ']') {
        unsigned char low = class_char(p), high = low;
        if (p->end - p->at >= 2 && p->at[0] == '-') {
            p->at++;
            high = class_char(p);
        }
        if (low > high) {
            unsigned char other = low;
            low = high;
            high = other;
        }
        found |= c >= low && c <= high;
    }
    if (p->at < p->end) p->at++;
    return found != negated;
}

/* Takes what stands for one character, and tells whether it stands for c. */
static bool match_one(span *p, unsigned char c) {
    unsigned char first = *p->at++;
    if (first == '?') return true;
    if (first == '[') return match_class(p, c);
    if (first == '\\' && p->at < p->end) first = *p->at++;
    return first == c;
}

/* When something behind a star does not match, the last star takes one character more: what an
 * earlier star took need not be tried again. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len) {
    span p = {(const unsigned char *)pattern, (const unsigned char *)pattern + pattern_len};
    span t = {(const unsigned char *)text, (const unsigned char *)text + text_len};
    span behind_star = {0}, taken = {0};
    size_t stars = 0;
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
