/* Locks (SYNERGY, "Locks"): a request that holds one is not interrupted until it has released it; one that cannot get one lets
 * others run if it holds none and its code can be suspended here (callers.h), and else waits as any thread does. So whoever holds a
 * lock runs, or is a thread that is not Headway's, and the wait ends. A lock that is held is a no-preempt section. Outside a request
 * nothing is different. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "callers.h"
#include "locks.h"
#include "real.h"
#include "self.h"

/* How often a request lets others run before it waits for a lock as a thread does. */
enum { PATIENCE = 64 };

/* Held from here on, if it was got; a robust mutex whose owner died is. */
static int got(enum headway_section section, int code) {
    if (code != 0 && code != EOWNERDEAD) headway_no_preempt_end_quietly(section);
    return code;
}

/* Ends the section of a lock that was released. The caller may be a library without probes, so a request to yield that came meanwhile
 * is for the next probe: in code that has some, there is one right behind the call. */
static int released(enum headway_section section, int code) {
    if (code == 0 && headway_fiber() != NULL && headway_sections() > 0) headway_no_preempt_end_quietly(section);
    return code;
}

/* Whether there is nothing left to wait for; then the C library says so, or what is wrong with the deadline. */
static int is_over(clockid_t clock, const struct timespec *until) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0 || until->tv_nsec < 0 || until->tv_nsec >= 1000000000) return 1;
    return now.tv_sec != until->tv_sec ? now.tv_sec > until->tv_sec : now.tv_nsec >= until->tv_nsec;
}

/* Takes the lock by `try`, which says EBUSY as long as it cannot, and at last by `wait`; at once by that if it is `late`. */
#define TAKE_FOR(section, caller, try, wait, late)                         \
    do {                                                                   \
        if (headway_fiber() == NULL) return wait;                          \
        for (int tries = 0; tries < PATIENCE; tries++) {                   \
            int alone = headway_sections() == 0;                           \
            headway_no_preempt_begin();                                    \
            int code = try;                                                \
            if (code != EBUSY) return got(section, code);                  \
            if (!alone || (late) || !headway_may_suspend_at_lock(caller))  \
                return got(section, wait);                                 \
            headway_no_preempt_end_quietly(section);                       \
            headway_step_aside();                                          \
        }                                                                  \
        headway_no_preempt_begin();                                        \
        return got(section, wait);                                         \
    } while (0)

#define TAKE(section, try, wait) TAKE_FOR(section, CALLER, try, wait, 0)
#define TAKE_UNTIL(section, try, wait, clock, until) TAKE_FOR(section, CALLER, try, wait, is_over(clock, until))

#define TRY(section, try)                                                  \
    do {                                                                   \
        if (headway_fiber() == NULL) return try;                           \
        headway_no_preempt_begin();                                        \
        return got(section, try);                                          \
    } while (0)

int headway_lock(pthread_mutex_t *mutex, const void *caller) {
    TAKE_FOR(HEADWAY_MUTEX, caller, REAL(pthread_mutex_trylock)(mutex), REAL(pthread_mutex_lock)(mutex), 0);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) { return headway_lock(mutex, CALLER); }

int pthread_mutex_trylock(pthread_mutex_t *mutex) { TRY(HEADWAY_MUTEX, REAL(pthread_mutex_trylock)(mutex)); }

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
    TAKE_UNTIL(HEADWAY_MUTEX, REAL(pthread_mutex_trylock)(mutex), REAL(pthread_mutex_timedlock)(mutex, until), CLOCK_REALTIME, until);
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    TAKE_UNTIL(HEADWAY_MUTEX, REAL(pthread_mutex_trylock)(mutex), REAL(pthread_mutex_clocklock)(mutex, clock, until), clock, until);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) { return released(HEADWAY_MUTEX, REAL(pthread_mutex_unlock)(mutex)); }

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    TAKE(HEADWAY_RWLOCK, REAL(pthread_rwlock_tryrdlock)(lock), REAL(pthread_rwlock_rdlock)(lock));
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    TAKE(HEADWAY_RWLOCK, REAL(pthread_rwlock_trywrlock)(lock), REAL(pthread_rwlock_wrlock)(lock));
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) { TRY(HEADWAY_RWLOCK, REAL(pthread_rwlock_tryrdlock)(lock)); }

int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) { TRY(HEADWAY_RWLOCK, REAL(pthread_rwlock_trywrlock)(lock)); }

int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until) {
    TAKE_UNTIL(HEADWAY_RWLOCK, REAL(pthread_rwlock_tryrdlock)(lock), REAL(pthread_rwlock_timedrdlock)(lock, until), CLOCK_REALTIME, until);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until) {
    TAKE_UNTIL(HEADWAY_RWLOCK, REAL(pthread_rwlock_trywrlock)(lock), REAL(pthread_rwlock_timedwrlock)(lock, until), CLOCK_REALTIME, until);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until) {
    TAKE_UNTIL(HEADWAY_RWLOCK, REAL(pthread_rwlock_tryrdlock)(lock), REAL(pthread_rwlock_clockrdlock)(lock, clock, until), clock, until);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until) {
    TAKE_UNTIL(HEADWAY_RWLOCK, REAL(pthread_rwlock_trywrlock)(lock), REAL(pthread_rwlock_clockwrlock)(lock, clock, until), clock, until);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock) { return released(HEADWAY_RWLOCK, REAL(pthread_rwlock_unlock)(lock)); }

int pthread_spin_lock(pthread_spinlock_t *lock) {
    TAKE(HEADWAY_OTHER, REAL(pthread_spin_trylock)(lock), REAL(pthread_spin_lock)(lock));
}

int pthread_spin_trylock(pthread_spinlock_t *lock) { TRY(HEADWAY_OTHER, REAL(pthread_spin_trylock)(lock)); }

int pthread_spin_unlock(pthread_spinlock_t *lock) { return released(HEADWAY_OTHER, REAL(pthread_spin_unlock)(lock)); }
