// Clearing and copying a megabyte meets probes on the way, at every size all bytes are done and none beyond.
#include "headway_probes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 20, GUARD = 64, PIECE = 1 << 15 };

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self;
static unsigned long probes;
void test_probe_taken(void) { probes++; }

static unsigned char from[MOST + GUARD], to[MOST + GUARD];

__attribute__((noinline)) static void set(unsigned char *p, int byte, size_t n) { memset(p, byte, n); }
__attribute__((noinline)) static void copy(void *restrict p, const void *restrict q, unsigned n) { memcpy(p, q, n); }
__attribute__((noinline)) static void copy_all(void) { memcpy(to, from, MOST); }

// A probe between any two pieces; the rest, no longer than one, follows the last.
HEADWAY_NO_PROBES static bool enough(const char *what, size_t n, unsigned long taken) {
    const size_t due = n <= 2 * PIECE ? 0 : (n - 1) / PIECE - 1;
    if (taken < due) printf("%s of %zu bytes: %lu probes, %zu due\n", what, n, taken, due);
    return taken >= due;
}

HEADWAY_NO_PROBES static bool right(const char *what, size_t n, bool set_only) {
    for (size_t i = 0; i < sizeof to; i++) {
        const unsigned char due = i >= n ? 0xee : set_only ? 0x5a : from[i];
        if (to[i] != due) return printf("%s of %zu bytes: byte %zu is wrong\n", what, n, i), false;
    }
    return true;
}

HEADWAY_NO_PROBES static void fresh(void) {
    for (size_t i = 0; i < sizeof to; i++) to[i] = 0xee;
    probes = 0;
}

HEADWAY_NO_PROBES int main(void) {
    static const size_t sizes[] = {0, 1, 31, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 1, 5 * PIECE + 77, MOST - 1, MOST};
    bool good = true;
    for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 7 + (i >> 8));
    __headway_preempt.asked = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fresh();
        set(to, 0x5a, sizes[i]);
        good &= enough("memset", sizes[i], probes) && right("memset", sizes[i], true);
        fresh();
        copy(to, from, (unsigned)sizes[i]);
        good &= enough("memcpy", sizes[i], probes) && right("memcpy", sizes[i], false);
    }
    fresh();
    copy_all();
    good &= enough("memcpy of constant size", MOST, probes) && right("memcpy of constant size", MOST, false);
    printf("%s\n", good ? "all bytes, and a probe for every piece" : "WRONG");
    return !good;
}
