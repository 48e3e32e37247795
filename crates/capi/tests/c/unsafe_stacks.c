/* Requests of a program of clang's SafeStack: their arrays lie on a second stack, and must keep what is in them over interruptions.
 *   unsafe_stacks POLICY [fibers|threads]: with plain fibers, or a runtime of threads instead, which must be refused: 3. */
#include <headway.h>
#include <headway_threads.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>
#include "client.h"

enum { REQUESTS = 400, IN_FLIGHT = 8, BYTES = 600 };

static unsigned long wrong;

/* Writes through a pointer, so that the array must be on the second stack. */
__attribute__((noinline)) static void fill(unsigned char *bytes, unsigned char with) {
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = with;
        if (i % 8 == 0) headway_checkpoint();
    }
}

__attribute__((noinline)) static void nested(unsigned char seed, int depth) {
    unsigned char bytes[BYTES];
    for (int round = 0; round < 20; round++) fill(bytes, (unsigned char)(seed + depth));
    if (depth > 0) nested(seed, depth - 1);
    for (int i = 0; i < BYTES; i++)
        if (bytes[i] != (unsigned char)(seed + depth)) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void handle_request(void *context, struct headway_request *request) {
    static unsigned char next;
    (void)context;
    nested(__atomic_fetch_add(&next, 16, __ATOMIC_RELAXED), 12);
    headway_reply(request, "done", 4);
}

static int refused(void) {
    fprintf(stderr, "%s\n", headway_last_error());
    return 3;
}

int main(int argc, char **argv) {
    CHECK(argc >= 2);
    alarm(100);
    if (argc > 2 && strcmp(argv[2], "threads") == 0) {
        struct headway_runtime_options options = {.size = sizeof options, .kthreads = 1};
        struct headway_runtime *runtime;
        return headway_runtime_start(&options, &runtime) == HEADWAY_OK ? 1 : refused();
    }
    struct headway_class classes[] = {{"all", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = 1};
    options.policy = argv[1];
    options.workers = 2;
    options.pin = HEADWAY_PIN_OFF;
    options.fibers = argc > 2 ? HEADWAY_FIBERS_PLAIN : HEADWAY_FIBERS_OF_THREADS;
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return refused();
    const int fd = connected((uint16_t)headway_port(server));
    CHECK(fd >= 0);
    CHECK(answer_all(fd, REQUESTS, IN_FLIGHT) == 0);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    CHECK(stats.answered == REQUESTS && wrong == 0);
    printf("preemptions %llu\n", (unsigned long long)stats.preemptions);
    return 0;
}
