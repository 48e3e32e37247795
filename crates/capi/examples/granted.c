/* Counts primes in threads in user space, on the cores that a host's daemon grants and takes back meanwhile.
 *   headway host --app primes &
 *   cc -O2 granted.c $(pkg-config --cflags --libs headway) -o granted && ./granted primes 3000000 */
#include <headway_threads.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 64 };

static long below;
static atomic_long primes;

static void *count(void *first) {
    for (long number = (long)first; number < below; number += THREADS) {
        long divisor = 2;
        while (divisor * divisor <= number && number % divisor != 0) divisor++;
        if (number > 1 && divisor * divisor > number) primes++;
    }
    return NULL;
}

static void begin(void *nothing) {
    struct headway_thread *threads[THREADS];
    (void)nothing;
    for (long first = 0; first < THREADS; first++) headway_spawn(&threads[first], count, (void *)first);
    for (int thread = 0; thread < THREADS; thread++) headway_join(threads[thread], NULL);
}

int main(int argc, char **argv) {
    struct headway_runtime_options options = {.size = sizeof options, .kthreads = 16, .application = argv[1]};
    struct headway_runtime *runtime;
    if (argc < 3) return fprintf(stderr, "usage: granted APPLICATION BELOW [SOCKET]\n"), 2;
    below = atol(argv[2]);
    if (argc > 3) options.host_socket = argv[3];
    if (headway_runtime_start(&options, &runtime) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    headway_runtime_run(runtime, begin, NULL);
    headway_runtime_stop(runtime);
    printf("%ld\n", primes);
}
