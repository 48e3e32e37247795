// The tests' runtime for Rust: raises the caller's flag from another thread, and counts.
#define _GNU_SOURCE
#include "headway_probes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { PERIOD_NS = 100000 };

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self;

static struct watch {
    pthread_t thread;
    clockid_t watched_time;
    _Atomic(uint64_t) *flag;
    atomic_bool stop;
    uint64_t due;
} watch;
static _Thread_local uint64_t fired;

void test_probe_taken(void) {
    fired += __headway_preempt.asked != 0;
    __headway_preempt.asked = 0;
    __headway_self.countdown = 1000;
}

static uint64_t read_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Only code that has run since it was last asked can be due to answer: machines are shared.
static void *ask(void *unused) {
    (void)unused;
    for (uint64_t last = 0, ran; !atomic_load(&watch.stop);) {
        struct timespec pause = {0, PERIOD_NS};
        nanosleep(&pause, NULL);
        if ((ran = read_ns(watch.watched_time)) - last < PERIOD_NS / 2) continue;
        last = ran;
        atomic_store(watch.flag, 1);
        watch.due++;
    }
    return NULL;
}

void test_watch_start(void) {
    watch.due = fired = 0;
    watch.flag = (_Atomic(uint64_t) *)&__headway_preempt.asked;
    atomic_store(&watch.stop, false);
    if (pthread_getcpuclockid(pthread_self(), &watch.watched_time) != 0 ||
        pthread_create(&watch.thread, NULL, ask, NULL) != 0)
        abort();
}

void test_watch_stop(uint64_t *due, uint64_t *seen) {
    atomic_store(&watch.stop, true);
    pthread_join(watch.thread, NULL);
    __headway_preempt.asked = 0;
    *due = watch.due;
    *seen = fired;
}
