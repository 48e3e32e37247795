/* Conditions. The request that will signal may wait for this very thread; so a request does not sleep on a condition for longer than
 * it takes to wake a thread, then lets others run and returns, as POSIX lets pthread_cond_wait() do at any time: callers look at
 * what they wait for again. One that holds another lock besides, or whose code cannot be suspended here (callers.h), sleeps as any
 * thread does; so does pthread_cond_timedwait(), of whose clock only the C library knows, for as long as it was told. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "callers.h"
#include "locks.h"
#include "real.h"
#include "self.h"

enum { NAP_NS = 20000, SECOND_NS = 1000000000 };

static int is_before(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Whether the caller can be suspended, and its one lock is that of the condition, so that it may let others run without it. */
static int may_step_aside(const void *caller) {
    return headway_fiber() != NULL && headway_sections() == 1 && headway_may_suspend(caller);
}

/* A nap, at most until `until` if that is not null; then others' turn, and 0. */
static int nap(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until,
               const void *caller) {
    struct timespec end;
    clock_gettime(clock, &end);
    end.tv_nsec += NAP_NS;
    if (end.tv_nsec >= SECOND_NS) {
        end.tv_nsec -= SECOND_NS;
        end.tv_sec++;
    }
    int is_last = until != NULL && is_before(until, &end);
    int code = REAL(pthread_cond_clockwait)(condition, mutex, clock, is_last ? until : &end);
    if (code != ETIMEDOUT || is_last) return code;
    pthread_mutex_unlock(mutex);
    headway_step_aside();
    return headway_lock(mutex, caller);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    if (!may_step_aside(CALLER)) return REAL(pthread_cond_wait)(condition, mutex);
    return nap(condition, mutex, CLOCK_MONOTONIC, NULL, CALLER);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until) {
    if (!may_step_aside(CALLER)) return REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
    return nap(condition, mutex, clock, until, CALLER);
}
