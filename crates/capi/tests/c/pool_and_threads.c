/* Tests that threads in user space may wait for a pool's jobs, and yield as a request does. */
#include "check.h"
#include <headway_threads.h>
#include <stdatomic.h>

static struct headway_pool *pool;
static atomic_int jobs;

static void job(void *data) {
    (void)data;
    atomic_fetch_add(&jobs, 1);
}

static void *waits(void *data) {
    for (int i = 0; i < 100; i++) {
        struct headway_job *submitted;
        CHECK(headway_pool_run(pool, 0, job, NULL) == HEADWAY_OK);
        CHECK(headway_pool_submit(pool, 0, job, NULL, &submitted) == HEADWAY_OK);
        CHECK(headway_job_wait(submitted) == HEADWAY_OK);
        headway_yield();
    }
    return data;
}

static void threads(void *data) {
    struct headway_thread *several[4];
    for (int i = 0; i < 4; i++) CHECK(headway_spawn(&several[i], waits, data) == HEADWAY_OK);
    for (int i = 0; i < 4; i++) CHECK(headway_join(several[i], NULL) == HEADWAY_OK);
}

int main(int argc, char **argv) {
    struct headway_pool_options options = {.size = sizeof options, .policy = argc > 1 ? argv[1] : NULL, .workers = 2};
    CHECK(headway_pool_start(&options, &pool) == HEADWAY_OK);
    struct headway_runtime *runtime;
    CHECK(headway_runtime_start(NULL, &runtime) == HEADWAY_OK);
    CHECK(headway_runtime_run(runtime, threads, NULL) == HEADWAY_OK);
    CHECK(headway_runtime_stop(runtime) == HEADWAY_OK);
    CHECK(headway_pool_stop(pool, UINT64_MAX, NULL) == HEADWAY_OK);
    CHECK(atomic_load(&jobs) == 800);
    return 0;
}
