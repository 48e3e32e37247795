// Without probes: code that instrumented code leaves for.
#include "loops.h"

uint64_t outside(uint64_t x) {
    for (int i = 0; i < 20; i++) x = x * 33 + (x >> 5);
    return x;
}
