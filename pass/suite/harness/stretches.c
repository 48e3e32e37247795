// How many probes a repetition executes, and how far apart they are.
//
// Every probe is taken. A repetition takes the same way each time, so the n-th stretch of one is the
// n-th of all, and the shortest time that any of them needed for it is free of disturbances. Where repetitions differ (a library whose hashes
// depend on addresses), the least of their longest stretches is printed instead: the n-th of one is another's no more.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "modes.h"
#include "recorder.h"
#include "suite.h"

extern const char __executable_start[];

// More probes than this in a repetition are counted, but not told apart.
#define CAPACITY (1u << 25)

static size_t take_every_probe(const struct options *options) {
    recorder.index = 0;
    recorder.previous = NULL;
    if (options->probe == PROBE_TSC) recorder.tick_budget = __headway_self.countdown = 0;
    else __atomic_store_n(&__headway_preempt.asked, 1, __ATOMIC_RELAXED);
    recorder.mode = RECORDER_STRETCHES;
    recorder.begin = clock_ticks();
    run_repetition(options);
    size_t stretches = recorder_finish_stretches();
    recorder.mode = RECORDER_OFF;
    put_flag_down();
    recorder.tick_budget = __headway_self.countdown = options->tick_budget;
    return stretches;
}

static void print_place(const char *name, const void *probe) {
    if (probe != NULL) printf(",\"%s\":%td", name, (const char *)probe - __executable_start);
}

static int by_descending_count(const void *a, const void *b) {
    const struct probe_count *x = a, *y = b;
    return (x->taken < y->taken) - (x->taken > y->taken);
}

// Where the most probes were executed.
static void print_hottest(void) {
    qsort(recorder.probes, RECORDER_PROBES, sizeof recorder.probes[0], by_descending_count);
    printf(",\"hottest\":[");
    for (int i = 0; i < 5 && recorder.probes[i].probe != NULL; i++)
        printf("%s{\"at\":%td,\"taken\":%lu}", i ? "," : "",
               (const char *)recorder.probes[i].probe - __executable_start, recorder.probes[i].taken);
    printf("]");
}

static void forget_stretches(void) { memset(recorder.shortest, 0xff, recorder.capacity * sizeof recorder.shortest[0]); }

static size_t longest_stretch(size_t count) {
    size_t longest = 0;
    for (size_t i = 1; i < count; i++)
        if (recorder.shortest[i] > recorder.shortest[longest]) longest = i;
    return longest;
}

// The least of the repetitions' longest stretches, in ticks.
static uint32_t least_longest(const struct options *options) {
    uint32_t least = UINT32_MAX;
    for (uint64_t i = 0; i < options->repetitions; i++) {
        forget_stretches();
        size_t stretches = take_every_probe(options);
        uint32_t longest = recorder.shortest[longest_stretch(stretches < recorder.capacity ? stretches : recorder.capacity)];
        if (longest < least) least = longest;
    }
    return least;
}

void measure_stretches(const struct options *options) {
    double ticks_per_ns = clock_ticks_per_ns();
    recorder.wanted = SIZE_MAX;
    size_t stretches = take_every_probe(options); // how many are there, and where?
    check_result(options);

    recorder.capacity = stretches < CAPACITY ? stretches : CAPACITY;
    recorder.shortest = malloc(recorder.capacity * sizeof recorder.shortest[0]);
    if (recorder.shortest == NULL) fail("no memory for %zu stretches", recorder.capacity);
    forget_stretches();
    bool same = true;
    for (uint64_t i = 0; i < options->repetitions; i++) same &= take_every_probe(options) == stretches;

    uint32_t longest_ticks;
    if (same) {
        recorder.wanted = longest_stretch(recorder.capacity);
        longest_ticks = recorder.shortest[recorder.wanted];
        take_every_probe(options);
    } else {
        longest_ticks = least_longest(options);
    }
    check_result(options);

    printf("{\"probes\":%zu,\"same_each_time\":%s,\"longest_ns\":%.0f", stretches - 1,
           same ? "true" : "false", longest_ticks / ticks_per_ns);
    print_place("from", recorder.from);
    print_place("to", recorder.to);
    print_hottest();
    printf("}\n");
}
