// The loops that have to yield. Each does `n` units of work, whatever the unit.
#ifndef HEADWAY_TEST_LOOPS_H
#define HEADWAY_TEST_LOOPS_H

#include <stdint.h>

struct loop {
    const char *name;
    uint64_t (*run)(uint64_t n);
};

extern const struct loop loops[];
extern const int loop_count;

void loops_setup(void);

// In another file with probes: calls back here, and returns what that returns.
uint64_t pong(uint64_t n, uint64_t x);
uint64_t ping(uint64_t n, uint64_t x);
uint64_t must_pong(uint64_t n, uint64_t x);
uint64_t must_ping(uint64_t n, uint64_t x);

// In a file without probes: what instrumented code calls out to.
uint64_t outside(uint64_t x);

#endif
