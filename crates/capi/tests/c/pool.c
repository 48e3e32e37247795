/* Tests the promises of a pool from inside: each job has one end and says which; a full queue is told at once; mistakes get words. */
#include "check.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POINT, REPORT };

static atomic_int gate_open, at_gate, sum;
static atomic_int ends[17];

static void waits(void *data) {
    (void)data;
    atomic_fetch_add(&at_gate, 1);
    while (!atomic_load(&gate_open)) usleep(100);
}

static void counts(void *data) { atomic_fetch_add(&sum, *(int *)data); }

static void ended(void *data, int code) {
    (void)data;
    if (code != HEADWAY_OK && strlen(headway_last_error()) == 0) code = -15;
    atomic_fetch_add(&ends[-code], 1);
}

static void until_cancelled(void *data) {
    atomic_fetch_add(&at_gate, 1);
    while (!headway_pool_cancelled()) headway_checkpoint();
    atomic_store((atomic_int *)data, 1);
}

static struct headway_pool *pool;

static void close_gate(void) {
    atomic_store(&gate_open, 0);
    atomic_store(&at_gate, 0);
    CHECK(headway_pool_submit(pool, POINT, waits, NULL, NULL) == HEADWAY_OK);
    while (!atomic_load(&at_gate)) usleep(100);
}

/* A job that waits for a child in a pool of one worker, and asks for what a job cannot have. */
static void waits_for_child(void *data) {
    struct headway_job *child;
    CHECK(headway_pool_submit(pool, POINT, counts, data, &child) == HEADWAY_OK);
    CHECK(headway_job_wait(child) == HEADWAY_OK);
    CHECK(headway_pool_run(pool, POINT, counts, data) == HEADWAY_E_INSIDE);
    CHECK(headway_pool_wait_idle(pool) == HEADWAY_E_INSIDE);
    headway_pool_blocking(counts, data);
}

static struct headway_job_options job_of(void (*function)(void *), void *data) {
    struct headway_job_options job = {
        .size = sizeof job, .function = function, .data = data, .ended = ended, .class_index = POINT};
    return job;
}

/* A job that submits after the pool's end has begun. */
static void submits_late(void *data) {
    waits(NULL);
    struct headway_job *child;
    CHECK(headway_pool_submit(pool, POINT, counts, data, &child) == HEADWAY_OK);
    CHECK(headway_job_wait(child) == HEADWAY_OK);
}

/* A job that is stuck at the pool's end, and submits nevertheless. */
static void submits_too_late(void *data) {
    waits(NULL);
    CHECK(headway_pool_submit(pool, POINT, counts, data, NULL) == HEADWAY_E_SHUT_DOWN);
    atomic_fetch_add(&ends[16], 1);
}

static void *stops(void *stats) {
    CHECK(headway_pool_stop(pool, UINT64_MAX, stats) == HEADWAY_OK);
    return NULL;
}

/* The handle is good while a job runs, also once the pool is being stopped. */
static void stops_while_a_job_submits(const struct headway_pool_options *options) {
    CHECK(headway_pool_start(options, &pool) == HEADWAY_OK);
    int one = 1, nothing = 0;
    atomic_store(&gate_open, 0);
    atomic_store(&at_gate, 0);
    atomic_store(&sum, 0);
    CHECK(headway_pool_submit(pool, POINT, submits_late, &one, NULL) == HEADWAY_OK);
    while (!atomic_load(&at_gate)) usleep(100);
    struct headway_pool_stats stats = {.size = sizeof stats};
    pthread_t stopper;
    CHECK(pthread_create(&stopper, NULL, stops, &stats) == 0);
    int code;
    do {
        usleep(100);
        code = headway_pool_submit(pool, REPORT, counts, &nothing, NULL);
    } while (code == HEADWAY_OK || code == HEADWAY_E_OVERLOADED);
    CHECK(code == HEADWAY_E_SHUT_DOWN);
    atomic_store(&gate_open, 1);
    CHECK(pthread_join(stopper, NULL) == 0);
    CHECK(atomic_load(&sum) == 1 && stats.running == 0 && stats.done == stats.submitted);
}

/* A mistaken count is refused before anything behind the array is read: a page that cannot be. */
static void mistaken_counts(void) {
    enum { CLASSES = 16 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    struct headway_pool_class *classes = (void *)(pages + page - CLASSES * sizeof *classes);
    for (int at = 0; at < CLASSES; at++) classes[at].name = "point";
    const size_t counts[] = {1000, SIZE_MAX, CLASSES};
    struct headway_pool *none;
    for (size_t at = 0; at < sizeof counts / sizeof *counts; at++) {
        struct headway_pool_options options = {
            .size = sizeof options, .classes = classes, .class_count = counts[at]};
        CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
        CHECK(strstr(headway_last_error(), "class_count"));
    }
    struct headway_pool_options options = {
        .size = sizeof options, .cores = (uint32_t *)(pages + page) - 1, .core_count = UINT32_MAX};
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
    CHECK(strstr(headway_last_error(), "core_count"));
    munmap(pages, 2 * page);
}

static void mistakes(void) {
    mistaken_counts();
    struct headway_pool *none;
    struct headway_pool_options options = {.size = sizeof options, .policy = "darc-stabel"};
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_POLICY);
    CHECK(strstr(headway_last_error(), "darc-stable"));
    options = (struct headway_pool_options){.size = 3};
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
    options = (struct headway_pool_options){.size = sizeof options, .class_count = 2};
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
    const double shares[] = {NAN, -1, INFINITY, 1e300};
    for (size_t at = 0; at < sizeof shares / sizeof *shares; at++) {
        struct headway_pool_class class = {.name = "point", .share = shares[at]};
        options = (struct headway_pool_options){.size = sizeof options, .classes = &class, .class_count = 1};
        CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
        CHECK(strstr(headway_last_error(), "share of class 'point'"));
    }
    CHECK(headway_pool_start(NULL, NULL) == HEADWAY_E_ARGUMENT);
    CHECK(headway_pool_wait_idle(NULL) == HEADWAY_E_ARGUMENT);
    CHECK(headway_pool_submit(pool, 7, counts, NULL, NULL) == HEADWAY_E_ARGUMENT);
    CHECK(strstr(headway_last_error(), "no class 7"));
    CHECK(headway_pool_submit(pool, POINT, NULL, NULL, NULL) == HEADWAY_E_ARGUMENT);
    CHECK(headway_job_wait(NULL) == HEADWAY_E_ARGUMENT);
    CHECK(headway_pool_cancelled() == 0);
}

int main(int argc, char **argv) {
    struct headway_pool_class classes[] = {{.name = "point", .queue_limit = 3}, {.name = "report"}};
    struct headway_pool_options options = {.size = sizeof options,
                                           .policy = argc > 1 ? argv[1] : NULL,
                                           .name = "c",
                                           .classes = classes,
                                           .class_count = 2,
                                           .workers = 1};
    CHECK(headway_pool_start(&options, &pool) == HEADWAY_OK);
    mistakes();

    /* What runs is told its code, and its data was used. */
    int one = 1;
    CHECK(headway_pool_run(pool, POINT, counts, &one) == HEADWAY_OK);
    CHECK(atomic_load(&sum) == 1);
    CHECK(headway_pool_run(pool, REPORT, waits_for_child, &one) == HEADWAY_OK);
    CHECK(atomic_load(&sum) == 3);

    /* Three wait, the fourth is refused with when to try again; one of the three is cancelled. */
    close_gate();
    struct headway_job *jobs[3];
    struct headway_job_options job = job_of(counts, &one);
    struct headway_overload overload = {.size = sizeof overload};
    for (int at = 0; at < 3; at++) CHECK(headway_pool_try_submit(pool, &job, &jobs[at], &overload) == HEADWAY_OK);
    CHECK(headway_pool_try_submit(pool, &job, NULL, &overload) == HEADWAY_E_OVERLOADED);
    CHECK(overload.queued == 3 && overload.retry_after_ns > 0);
    CHECK(headway_job_cancel(jobs[1]) == HEADWAY_OK);
    CHECK(atomic_load(&ends[-HEADWAY_E_CANCELLED]) == 1);
    struct headway_pool_class_stats points = {.size = sizeof points};
    CHECK(headway_pool_read_class_stats(pool, POINT, &points) == HEADWAY_OK);
    CHECK(points.waiting == 2 && points.refused == 1 && points.cancelled == 1 && points.running == 1);
    atomic_store(&gate_open, 1);
    CHECK(headway_job_wait(jobs[0]) == HEADWAY_OK);
    CHECK(headway_job_wait(jobs[2]) == HEADWAY_OK);
    CHECK(atomic_load(&ends[0]) == 2 && atomic_load(&sum) == 5);

    /* What runs sees that it was cancelled. */
    atomic_int seen = 0;
    atomic_store(&at_gate, 0);
    struct headway_job *runs;
    CHECK(headway_pool_submit(pool, REPORT, until_cancelled, &seen, &runs) == HEADWAY_OK);
    while (!atomic_load(&at_gate)) usleep(100);
    CHECK(headway_job_cancel(runs) == HEADWAY_OK);
    CHECK(headway_pool_wait_idle(pool) == HEADWAY_OK);
    CHECK(atomic_load(&seen) == 1);

    /* What waits at the end is abandoned, and what runs is named; the counts add up. */
    atomic_store(&gate_open, 0);
    atomic_store(&at_gate, 0);
    CHECK(headway_pool_submit(pool, POINT, submits_too_late, &one, NULL) == HEADWAY_OK);
    while (!atomic_load(&at_gate)) usleep(100);
    CHECK(headway_pool_try_submit(pool, &job, &jobs[0], NULL) == HEADWAY_OK);
    struct headway_pool_stats stats = {.size = sizeof stats};
    CHECK(headway_pool_stop(pool, 0, &stats) == HEADWAY_E_STUCK);
    CHECK(headway_job_wait(jobs[0]) == HEADWAY_E_ABANDONED);
    CHECK(atomic_load(&ends[-HEADWAY_E_ABANDONED]) == 1);
    CHECK(stats.submitted == stats.done + stats.cancelled + stats.shed + stats.abandoned + stats.waiting + stats.running);
    CHECK(stats.running == 1 && stats.abandoned == 1);
    atomic_store(&gate_open, 1);
    while (!atomic_load(&ends[16])) usleep(100);
    stops_while_a_job_submits(&options);
    printf("interruptions %llu\n", (unsigned long long)stats.interruptions);
    return 0;
}
