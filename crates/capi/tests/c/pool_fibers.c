/* Tests what an interrupted job of a pool shares with the job that runs meanwhile: its thread-local variables on plain fibers, nothing otherwise. And
   that jobs beyond a limit are not interrupted, and that workers take a program's events in. */
#include "check.h"
#include <stdatomic.h>
#include <string.h>

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

static atomic_int begun, most_begun;

static void looks_often(void *data) {
    (void)data;
    const int now = atomic_fetch_add(&begun, 1) + 1;
    if (now > atomic_load(&most_begun)) atomic_store(&most_begun, now);
    for (int turn = 0; turn < 10000; turn++) headway_checkpoint();
    atomic_fetch_sub(&begun, 1);
}

static void limit_holds(void) {
    struct headway_pool_options options = {
        .size = sizeof options, .policy = "mlfq", .workers = 1, .begun_at_most = 1};
    struct headway_pool_stats stats = {.size = sizeof stats};
    struct headway_pool *pool;
    CHECK(headway_pool_start(&options, &pool) == HEADWAY_OK);
    for (int job = 0; job < 20; job++) CHECK(headway_pool_submit(pool, 0, looks_often, NULL, NULL) == HEADWAY_OK);
    CHECK(headway_pool_wait_idle(pool) == HEADWAY_OK);
    CHECK(headway_pool_read_stats(pool, &stats) == HEADWAY_OK);
    CHECK(atomic_load(&most_begun) == 1 && stats.without_fiber == 0);
    CHECK(headway_pool_stop(pool, UINT64_MAX, NULL) == HEADWAY_OK);
}

#define EVENTS 100
static struct headway_pool *_Atomic polled;
static atomic_int taken_in, served;

static void serve(void *data) {
    (void)data;
    atomic_fetch_add(&served, 1);
}

/* Called by several workers at once. */
static void take_in(void *events) {
    struct headway_pool *pool = atomic_load(&polled);
    if (pool == NULL || atomic_load((atomic_int *)events) >= EVENTS) return;
    if (atomic_fetch_add((atomic_int *)events, 1) < EVENTS) {
        CHECK(headway_pool_submit(pool, 0, serve, NULL, NULL) == HEADWAY_OK);
    }
}

static void workers_poll(void) {
    struct headway_pool_options options = {
        .size = sizeof options, .workers = 2, .poll = take_in, .poll_data = &taken_in};
    struct headway_pool *pool;
    CHECK(headway_pool_start(&options, &pool) == HEADWAY_OK);
    atomic_store(&polled, pool);
    while (atomic_load(&served) < EVENTS) {}
    CHECK(headway_pool_stop(pool, UINT64_MAX, NULL) == HEADWAY_OK);
    CHECK(atomic_load(&served) == EVENTS);
}

int main(void) {
    mistakes();
    limit_holds();
    workers_poll();
    CHECK(seen_on(HEADWAY_FIBERS_OF_THREADS) == 0);
    CHECK(seen_on(HEADWAY_FIBERS_PLAIN) == 7);
    return 0;
}
