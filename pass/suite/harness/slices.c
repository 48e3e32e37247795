// How long slices are when another core asks for their end.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "modes.h"
#include "recorder.h"
#include "suite.h"

extern const char __executable_start[];

// The kernel and the control take turns of this length, so that both meet the same disturbances.
#define TURN_NS 25e6

struct timer {
    uint64_t *asked;
    uint64_t quantum_ticks;
    int core;
    _Atomic bool stop;
};

// Raises the flag when a quantum is over, then waits for the next slice to begin.
static void *raise_flags(void *argument) {
    struct timer *timer = argument;
    pin_to(timer->core);
    uint64_t seen = 0;
    while (!atomic_load_explicit(&timer->stop, memory_order_relaxed)) {
        uint64_t begin = atomic_load_explicit(&recorder_slice.begin, memory_order_acquire);
        if (begin == seen) {
            __builtin_ia32_pause();
            continue;
        }
        while (clock_ticks() < begin + timer->quantum_ticks) {
        }
        __atomic_store_n(timer->asked, 1, __ATOMIC_RELEASE);
        seen = begin;
    }
    return NULL;
}

// The control: nothing is slower to notice than a loop that only looks, except for disturbances.
static void look_at_flag_until(uint64_t end) {
    while (clock_ticks() < end) {
        while (__atomic_load_n(&__headway_preempt.asked, __ATOMIC_RELAXED) == 0) {
        }
        __headway_preempted();
    }
}

static void look_at_clock_until(uint64_t end) {
    while (clock_ticks() < end) {
        while (clock_ticks() < __headway_self.deadline) {
        }
        __headway_tick();
    }
}

static void run_kernel_until(uint64_t end) {
    while (clock_ticks() < end) kernel_run();
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// The value of `sorted` that a share `p` of them does not exceed (nearest rank).
static double percentile(const struct slice_log *log, double p, double ticks_per_ns) {
    size_t rank = (size_t)ceil(p * (double)log->count);
    return log->ticks[rank > 0 ? rank - 1 : 0] / ticks_per_ns;
}

// Deviation of all but the longest 1 %, around their mean or around a given length.
static double deviation(const struct slice_log *log, const double *around_ns, double ticks_per_ns) {
    size_t kept = log->count - log->count / 100;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < kept; i++) sum += log->ticks[i] / ticks_per_ns;
    double centre = around_ns ? *around_ns : sum / (double)kept;
    for (size_t i = 0; i < kept; i++) {
        double off = log->ticks[i] / ticks_per_ns - centre;
        squares += off * off;
    }
    return sqrt(squares / (double)kept);
}

static void print_log(const char *name, struct slice_log *log, const struct options *options,
                      double ticks_per_ns) {
    if (log->count < 100) fail("%s: only %zu slices; give it more --seconds", name, log->count);
    double target = (double)options->quantum_ns;
    qsort(log->ticks, log->count, sizeof log->ticks[0], ascending);
    printf("\"%s\":{\"slices\":%zu,\"p50_ns\":%.0f,\"p99_ns\":%.0f,\"max_ns\":%.0f,", name, log->count,
           percentile(log, 0.5, ticks_per_ns), percentile(log, 0.99, ticks_per_ns),
           percentile(log, 1, ticks_per_ns));
    printf("\"sigma_ns\":%.1f,\"off_target_ns\":%.1f,\"gaps\":%lu,\"gap_places\":[",
           deviation(log, NULL, ticks_per_ns), deviation(log, &target, ticks_per_ns), log->gaps);
    for (int i = 0; i < RECORDER_GAP_PLACES && log->places[i].probe != NULL; i++)
        printf("%s{\"at\":%td,\"gaps\":%lu,\"longest_ns\":%.0f}", i ? "," : "",
               (const char *)log->places[i].probe - __executable_start, log->places[i].gaps,
               (double)log->places[i].longest_ticks / ticks_per_ns);
    printf("]}");
}

static struct slice_log new_log(const struct options *options) {
    size_t capacity = (size_t)(options->seconds * 1e9 / (double)options->quantum_ns) + 4096;
    struct slice_log log = {.ticks = malloc(capacity * sizeof log.ticks[0]), .capacity = capacity};
    if (log.ticks == NULL) fail("no memory for %zu slices", capacity);
    memset(log.ticks, 1, capacity * sizeof log.ticks[0]); // no page fault while measuring
    return log;
}

void measure_slices(const struct options *options) {
    bool by_flag = options->probe == PROBE_FLAG;
    if (by_flag && options->timer_core < 0)
        fail("a flag needs a second core to be raised from, and this process may use one only");
    double ticks_per_ns = clock_ticks_per_ns();
    struct slice_log kernel = new_log(options), control = new_log(options);
    recorder.quantum_ticks = (uint64_t)((double)options->quantum_ns * ticks_per_ns);
    recorder.gap_ticks = (uint64_t)(RECORDER_GAP_NS * ticks_per_ns);

    struct timer timer = {&__headway_preempt.asked, recorder.quantum_ticks, options->timer_core, false};
    pthread_t thread;
    if (by_flag && (errno = pthread_create(&thread, NULL, raise_flags, &timer)) != 0)
        fail("cannot start the thread that raises flags: %s", strerror(errno));

    recorder.log = &kernel;
    recorder.mode = RECORDER_SLICES;
    recorder.begin = clock_ticks();
    atomic_store(&recorder_slice.begin, recorder.begin);
    if (!by_flag) __headway_self.deadline = recorder.begin + recorder.quantum_ticks;

    uint64_t turn = (uint64_t)(TURN_NS * ticks_per_ns);
    uint64_t turns = (uint64_t)(options->seconds * 1e9 / TURN_NS) + 1;
    uint64_t kernel_ticks = 0, control_ticks = 0;
    uint64_t *gaps_after = malloc(turns * 2 * sizeof *gaps_after);
    if (gaps_after == NULL) fail("no memory for %lu turns", turns);
    for (uint64_t i = 0; i < turns; i++) {
        uint64_t begin = clock_ticks();
        recorder.log = &kernel;
        recorder.skip = true;
        run_kernel_until(begin + turn);
        uint64_t middle = clock_ticks();
        recorder.log = &control;
        recorder.skip = true;
        (options->probe == PROBE_TSC ? look_at_clock_until : look_at_flag_until)(middle + (middle - begin));
        gaps_after[2 * i] = kernel.gaps;
        gaps_after[2 * i + 1] = control.gaps;
        kernel_ticks += middle - begin;
        control_ticks += clock_ticks() - middle;
    }
    recorder.mode = RECORDER_OFF;
    __headway_self.deadline = HEADWAY_NO_DEADLINE;
    if (by_flag) {
        atomic_store(&timer.stop, true);
        pthread_join(thread, NULL);
    }
    check_result(options);

    printf("{\"quantum_ns\":%lu,\"ticks_per_ns\":%.6f,\"kernel_s\":%.3f,\"control_s\":%.3f,",
           options->quantum_ns, ticks_per_ns, (double)kernel_ticks / ticks_per_ns / 1e9,
           (double)control_ticks / ticks_per_ns / 1e9);
    print_log("kernel", &kernel, options, ticks_per_ns);
    printf(",");
    print_log("control", &control, options, ticks_per_ns);
    printf(",\"gaps_by_turn\":["); // of the kernel and of the control, turn by turn
    for (uint64_t i = 0; i < turns; i++)
        printf("%s[%lu,%lu]", i ? "," : "", gaps_after[2 * i] - (i ? gaps_after[2 * i - 2] : 0),
               gaps_after[2 * i + 1] - (i ? gaps_after[2 * i - 1] : 0));
    printf("]}\n");
}
