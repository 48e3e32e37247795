/* A thousand threads in user space take turns at a counter, and the last one to come wakes the first.
 *   cc -O2 threads.c $(pkg-config --cflags --libs headway) -o threads && ./threads 2 */
#include <headway_threads.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 1000, TURNS = 10 };

static struct headway_mutex mutex;
static struct headway_condvar all_came;
static long count, came;

static void *take_turns(void *number) {
    for (int turn = 0; turn < TURNS; turn++) {
        headway_mutex_lock(&mutex);
        count += (long)number;
        headway_mutex_unlock(&mutex);
        headway_thread_yield();
    }
    headway_mutex_lock(&mutex);
    if (++came == THREADS) headway_condvar_notify_one(&all_came);
    headway_mutex_unlock(&mutex);
    return number;
}

static void begin(void *nothing) {
    (void)nothing;
    for (long number = 1; number <= THREADS; number++) headway_spawn(NULL, take_turns, (void *)number);
    headway_mutex_lock(&mutex);
    while (came < THREADS) headway_condvar_wait(&all_came, &mutex);
    headway_mutex_unlock(&mutex);
}

int main(int argc, char **argv) {
    struct headway_runtime_options options = {.size = sizeof options, .kthreads = argc > 1 ? (size_t)atoi(argv[1]) : 1};
    struct headway_runtime *runtime;
    headway_mutex_init(&mutex);
    headway_condvar_init(&all_came);
    if (headway_runtime_start(&options, &runtime) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    headway_runtime_run(runtime, begin, NULL);
    headway_runtime_stop(runtime);
    printf("%ld\n", count);
}
