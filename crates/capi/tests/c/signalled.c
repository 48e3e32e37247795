/* Signals that the program handles itself, beside interruptions: a handler meets probes and is never suspended there, and a request's mask is its own.
 *   signalled POLICY */
#define _GNU_SOURCE
#include <headway.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "client.h"

enum { REQUESTS = 4000, IN_FLIGHT = 8, INTERVAL_US = 1000 };

static unsigned long handled, wrong;
static __thread int inside;

/* Interrupts whatever runs, malloc too: suspended here, it would keep that from all others. The C library's allocator has no probes of its own. */
static void handler(int signal) {
    (void)signal;
    inside++;
    for (int i = 0; i < 20; i++) headway_checkpoint();
    inside--;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static int blocks(int signal) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, signal);
}

static void handle_request(void *context, struct headway_request *request) {
    static unsigned long next;
    (void)context;
    unsigned long number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    if (blocks(SIGUSR1)) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    if (number % 2 == 0) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &one, NULL);
    }
    for (int i = 0; i < 400; i++) {
        void *room = malloc(100 + (size_t)i);
        for (int j = 0; j < 20; j++) headway_checkpoint();
        /* Another request that was suspended in a handler of this one's thread would be seen here. */
        if (inside) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        free(room);
    }
    if (blocks(SIGUSR1) != (number % 2 == 0)) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    headway_reply(request, "done", 4); /* It ends with its mask. */
}

static int setup_worker(void *context, unsigned int worker, int core) {
    (void)context, (void)worker, (void)core;
    return signal_every_us(SIGPROF, INTERVAL_US);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    alarm(100);
    CHECK(handle(SIGPROF, handler) == 0);
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request, .setup_worker = setup_worker};
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(serve_itself(argv[1], &service, REQUESTS, IN_FLIGHT, &stats) == 0);
    fprintf(stderr, "%lu handled, %lu wrong\n", handled, wrong);
    CHECK(wrong == 0 && handled > 0);
    printf("preemptions %llu\n", (unsigned long long)stats.preemptions);
    return 0;
}
