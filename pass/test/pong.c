// Compiled with the pass, in a file of its own: what calls loops.c back, last.
#include "loops.h"

uint64_t pong(uint64_t n, uint64_t x) {
    if (n == 0) return x;
    return ping(n - 1, x ^ n);
}

uint64_t must_pong(uint64_t n, uint64_t x) {
    if (n == 0) return x;
    __attribute__((musttail)) return must_ping(n - 1, x ^ n);
}
