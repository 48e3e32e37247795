// Raises the flag every 100 us from another thread while each loop runs, and compares how often a
// probe saw it with how often it was raised.
//
// usage: yield [--never NAME,…]   with --never the named loops are to fail (the negative control)
#define _GNU_SOURCE
#include "loops.h"
#include "headway_probes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PERIOD_NS = 100000, LEAST_NS = 3000000, LONG_ENOUGH_NS = 12000000, ROUNDS = 8 };

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self;

static _Atomic(uint64_t) taken;
static _Atomic(_Atomic(uint64_t) *) flag; // null: nobody is to be asked
static _Atomic(uint64_t) raised;
static atomic_bool still; // the timer has seen that nobody is to be asked, and raises no flag meanwhile

// The slow path of flag probes and of TSC probes.
void test_probe_taken(void) {
    const bool asked = __headway_preempt.asked != 0;
    __headway_preempt.asked = 0;
    __headway_self.countdown = 1000;
    if (asked) atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
}

static clockid_t loop_time; // processor time of the thread that runs the loops

static uint64_t read_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void) { return read_ns(CLOCK_MONOTONIC); }

// Only a loop that has run since it was last asked can be due to answer: machines are shared. Nor is
// one asked before it has begun: a load hoisted to its start would see the flag up and answer all the way.
static void *timer(void *unused) {
    (void)unused;
    _Atomic(uint64_t) *before = NULL;
    for (uint64_t last = 0, ran;;) {
        struct timespec pause = {0, PERIOD_NS};
        nanosleep(&pause, NULL);
        _Atomic(uint64_t) *at = atomic_load(&flag);
        if (!at) atomic_store(&still, true);
        ran = read_ns(loop_time);
        if (at && !before) last = ran;
        before = at;
        if (!at || ran - last < PERIOD_NS / 2) continue;
        last = ran;
        atomic_store(at, 1);
        atomic_fetch_add(&raised, 1);
    }
    return NULL;
}

// Once this returns, no flag goes up before the next one is named. Without it a timer that slept through the change would
// ask the next loop before it has begun.
static void stop_timer(void) {
    atomic_store(&still, false);
    atomic_store(&flag, NULL);
    while (!atomic_load(&still)) nanosleep(&(struct timespec){0, PERIOD_NS}, NULL);
}

// Units of work that take long enough to be asked often.
static uint64_t calibrate(const struct loop *loop) {
    for (uint64_t n = 1 << 16;; n *= 2) {
        const uint64_t start = now_ns();
        volatile uint64_t sink = loop->run(n);
        (void)sink;
        const uint64_t ns = now_ns() - start;
        if (ns >= LEAST_NS || n >= UINT32_MAX / 2) return n;
    }
}

static bool named(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return true;
    return false;
}

struct round {
    uint64_t due, fired, runs;
};

// Asks the loop again and again while it runs, or while it runs once for the control: a load hoisted to its start has seen
// the flag down, for good.
static struct round ask(const struct loop *loop, uint64_t n, bool once) {
    atomic_store(&taken, 0);
    atomic_store(&raised, 0);
    __headway_preempt.asked = 0;
    atomic_store(&flag, (_Atomic(uint64_t) *)&__headway_preempt.asked);
    const uint64_t start = now_ns();
    uint64_t runs = 0;
    volatile uint64_t sink;
    do sink = loop->run(n), runs++;
    while (!once && now_ns() - start < LONG_ENOUGH_NS);
    (void)sink;
    stop_timer();
    return (struct round){atomic_load(&raised), atomic_load(&taken), runs};
}

// A host takes a processor from its guest unseen, for milliseconds at a time, and the thread's clock goes on: a round may be
// lost to it. So a loop yields if it does in any round; one whose probes do not see the flag does in none.
static bool yields(const struct loop *loop, bool once, struct round *round) {
    uint64_t n = calibrate(loop);
    for (int i = 0; i < ROUNDS;) {
        *round = ask(loop, n, once);
        // Whoever looks at the flag once a run only must not pass for one that looks inside it.
        if (round->due < 4 * round->runs && n < UINT32_MAX / 2) {
            n *= 2;
            continue;
        }
        if (round->due > 0 && round->fired * 2 >= round->due) return true;
        i++;
    }
    return false;
}

int main(int argc, char **argv) {
    const char *never = argc == 3 && strcmp(argv[1], "--never") == 0 ? argv[2] : "";
    pthread_t thread;
    if (pthread_getcpuclockid(pthread_self(), &loop_time) != 0) return 2;
    if (pthread_create(&thread, NULL, timer, NULL) != 0) return 2;
    loops_setup();
    int wrong = 0;
    for (int i = 0; i < loop_count; i++) {
        if (*never && !named(never, loops[i].name)) continue;
        struct round round;
        const bool good = yields(&loops[i], *never, &round) == !*never && round.due > 0;
        wrong += !good;
        printf("%-22s fired %5llu of %5llu due, %3llu runs%s\n", loops[i].name, (unsigned long long)round.fired,
               (unsigned long long)round.due, (unsigned long long)round.runs, good ? "" : "  <-- WRONG");
    }
    return wrong != 0;
}
