// The time-stamp counter, and how fast it runs.
#ifndef HEADWAY_SUITE_CLOCK_H
#define HEADWAY_SUITE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ticks(void) { return __builtin_ia32_rdtsc(); }

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Ticks of the counter per nanosecond, measured for 40 ms; the pair of reads that was disturbed
// least on either side counts.
static inline double clock_ticks_per_ns(void) {
    uint64_t ticks[2], ns[2];
    for (int side = 0; side < 2; side++) {
        if (side == 1)
            while (clock_ns(CLOCK_MONOTONIC_RAW) - ns[0] < 40000000u) {
            }
        uint64_t tightest = UINT64_MAX;
        for (int i = 0; i < 50; i++) {
            uint64_t before = clock_ticks(), between = clock_ns(CLOCK_MONOTONIC_RAW), after = clock_ticks();
            if (after - before >= tightest) continue;
            tightest = after - before;
            ticks[side] = before + (after - before) / 2;
            ns[side] = between;
        }
    }
    return (double)(ticks[1] - ticks[0]) / (double)(ns[1] - ns[0]);
}

#endif
