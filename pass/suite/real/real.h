// What the programs share that give a library its work.
#ifndef HEADWAY_SUITE_REAL_H
#define HEADWAY_SUITE_REAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/suite.h"

// Versions of a library differ in the bytes they make, so the plain build says what the digest is.
const uint64_t kernel_expected[2] = {0, 0};

// Writes one word of a vocabulary in which some words are much more frequent than others; gives its length, 3 to 10.
static inline size_t real_word(char *at, uint64_t *seed) {
    double u = suite_uniform(seed);
    uint64_t word = (uint64_t)(u * u * u * 3000) + 1000;
    size_t letters = 3 + suite_random(&word) % 8;
    for (size_t i = 0; i < letters; i++) at[i] = (char)('a' + suite_random(&word) % 26);
    return letters;
}

// Fills `text` with words, punctuation and lines.
static inline void real_text(char *text, size_t size, uint64_t seed) {
    size_t at = 0, words = 0;
    while (at + 16 < size) {
        at += real_word(text + at, &seed);
        words++;
        if (words % 9 == 0) text[at++] = ',';
        text[at++] = words % 13 == 0 ? '\n' : ' ';
    }
    memset(text + at, '.', size - at);
}

// Ends the program: a library refused what it should do.
__attribute__((noreturn)) static inline void real_fail(const char *what) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

#endif
