/* A library without probes, which keeps its thread over calls of the C library's, as an allocator does: here by its number. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static long thread(void) { return syscall(SYS_gettid); }

/* Some microseconds. */
static void work(void) {
    for (volatile int i = 0; i < 4000; i++) {}
}

static void initialise(void) { work(); }

/* Takes locks that others want too, and waits for a condition (not LOCKS_ONLY); returns how often it went on in another thread. */
unsigned long keep_thread(int rounds) {
    unsigned long moved = 0;
    for (int n = 0; n < rounds; n++) {
        long before = thread();
        pthread_mutex_lock(&mutex);
        work();
        pthread_mutex_unlock(&mutex);
        moved += thread() != before;

        before = thread();
        pthread_rwlock_wrlock(&rwlock);
        work();
        pthread_rwlock_unlock(&rwlock);
        moved += thread() != before;

        pthread_once_t once = PTHREAD_ONCE_INIT;
        before = thread();
        pthread_once(&once, initialise);
        moved += thread() != before;

#ifndef LOCKS_ONLY
        before = thread();
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 50000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&mutex);
        pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &until);
        pthread_mutex_unlock(&mutex);
        moved += thread() != before;
#else
        (void)never;
#endif
    }
    return moved;
}
