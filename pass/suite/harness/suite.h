// What a program of the suite provides, and the little that all of them share.
//
// A program is one file: it makes its input from a fixed seed, computes something real, and lets the
// harness look at the result. The same result is expected from every build of it, so an optimiser
// cannot drop the work, and a pass that breaks the program is noticed.
#ifndef HEADWAY_SUITE_H
#define HEADWAY_SUITE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Makes the input: once, before anything is measured. `full` is the size that is measured
// (5 to 20 ms a repetition), otherwise the small one of the tests.
void kernel_setup(bool full);

// The work that is measured. It leaves the input as it found it, and each time executes the same
// instructions.
void kernel_run(void);

// How often it runs in a repetition of the full size. Data stay small, about what the caches of a
// core hold, so that what the neighbours of a virtual machine do to shared caches counts little: then a probe
// cannot hide behind memory either.
extern const unsigned kernel_passes;

// A digest of the whole result of the last run (not measured).
uint64_t kernel_digest(void);

// Whether the result has the properties that define it: sorted, inverse, residual, conserved …
// Independent of the digest, which only says that nothing changed (not measured).
bool kernel_valid(void);

// The digest of the small and of the full size; 0: it depends on the version of a library, and --expected gives it.
extern const uint64_t kernel_expected[2];

#ifdef __cplusplus
}
#endif

// splitmix64: the next of a sequence of uniformly distributed words.
static inline uint64_t suite_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Uniform in [0, 1).
static inline double suite_uniform(uint64_t *state) { return (double)(suite_random(state) >> 11) * 0x1p-53; }

// Uniform in [0, bound), by multiplication (the bias is below bound / 2^32).
static inline uint32_t suite_below(uint64_t *state, uint32_t bound) {
    return (uint32_t)(((suite_random(state) >> 32) * bound) >> 32);
}

// Adds a word to a digest; the order matters.
static inline uint64_t suite_mix(uint64_t digest, uint64_t word) {
    uint64_t state = digest ^ (word * 0xff51afd7ed558ccdu);
    return suite_random(&state);
}

// Adds a real number to a digest, to a millionth: another C library's last bits do not change it.
static inline uint64_t suite_mix_real(uint64_t digest, double value) {
    return suite_mix(digest, (uint64_t)llrint(value * 1e6));
}

static inline uint64_t suite_mix_bytes(uint64_t digest, const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < size; i++) digest = suite_mix(digest, at[i]);
    return digest;
}

#endif
