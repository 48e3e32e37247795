/* Tests what an interrupted job of a pool shares with the job that runs meanwhile: its thread-local variables on plain fibers, nothing otherwise. */
#include <headway_pool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s; last words: %s\n", __FILE__, __LINE__, #what, headway_last_error()); \
            exit(1); \
        } \
    } while (0)

static _Thread_local int mark;
static atomic_int has_begun, seen;

/* Goes on until it was interrupted and the other job ran. */
static void marks(void *data) {
    (void)data;
    mark = 7;
    atomic_store(&has_begun, 1);
    while (atomic_load(&seen) < 0) headway_checkpoint();
    mark = 0;
}

static void looks(void *data) {
    (void)data;
    atomic_store(&seen, mark);
}

static int seen_on(uint64_t fibers) {
    struct headway_pool_options options = {
        .size = sizeof options, .policy = "tiny-quanta,q=5us", .workers = 1, .fibers = fibers};
    struct headway_pool *pool;
    CHECK(headway_pool_start(&options, &pool) == HEADWAY_OK);
    atomic_store(&has_begun, 0);
    atomic_store(&seen, -1);
    CHECK(headway_pool_submit(pool, 0, marks, NULL, NULL) == HEADWAY_OK);
    while (!atomic_load(&has_begun)) {}
    CHECK(headway_pool_submit(pool, 0, looks, NULL, NULL) == HEADWAY_OK);
    CHECK(headway_pool_wait_idle(pool) == HEADWAY_OK);
    CHECK(headway_pool_stop(pool, UINT64_MAX, NULL) == HEADWAY_OK);
    return atomic_load(&seen);
}

static void mistakes(void) {
    struct headway_pool *none;
    struct headway_pool_options options = {.size = sizeof options, .fibers = 9};
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT && strstr(headway_last_error(), "fibers"));
    options.fibers = HEADWAY_FIBERS_PLAIN;
    options.policy = "tardis"; /* What it interrupts goes on at any worker. */
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_POLICY && strstr(headway_last_error(), "tardis"));
}

int main(void) {
    mistakes();
    CHECK(seen_on(HEADWAY_FIBERS_OF_THREADS) == 0);
    CHECK(seen_on(HEADWAY_FIBERS_PLAIN) == 7);
    return 0;
}
