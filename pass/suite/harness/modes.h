// The ways to run a program of the suite.
#ifndef HEADWAY_SUITE_MODES_H
#define HEADWAY_SUITE_MODES_H

#include <stdbool.h>
#include <stdint.h>

// What ends a slice.
enum probe {
    PROBE_FLAG, // another core raises the flag
    PROBE_TSC,  // the program was built with probes that count down to a look at the clock
    PROBE_SELF, // flag probes whose flag is up always: what they call looks at the clock
};

struct options {
    bool full;
    uint64_t expected;    // the digest of the result where the program does not know it; 0: nor does who runs it
    enum probe probe;
    int core, timer_core; // where the kernel runs, and the thread that raises flags
    uint64_t repetitions;
    uint64_t quantum_ns;
    double seconds;
    int64_t tick_budget;
};

// Runs the kernel until `seconds` are over, the flag being raised `quantum_ns` after the last
// slice began, and as long a loop that does nothing but look at the flag, in turns; prints how long the
// slices were, as JSON.
void measure_slices(const struct options *options);

// Runs the kernel with every probe taken; prints how many there are, and the longest stretch
// between two of them, as JSON. Exits with an error if the result changed.
void measure_stretches(const struct options *options);

// One repetition, neither timed nor checked.
void run_repetition(const struct options *options);

// Ends the program with an error unless the kernel's last result is the expected one: by its digest
// (quick), or by its properties as well.
void check_digest(const struct options *options);
void check_result(const struct options *options);

// Lets the calling thread run on `core` only; an error says why that cannot be.
void pin_to(int core);

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

#endif
