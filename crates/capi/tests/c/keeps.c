/* Requests that are interrupted as often as can be, between two calls of a library without probes: that one is left by the thread it
 * was entered by. Where interrupted requests stay at their worker, so is all else. */
#define _GNU_SOURCE
#include <headway.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "client.h"

enum { REQUESTS = 200, IN_FLIGHT = 8, ROUNDS = 20 };

unsigned long keep_thread(int rounds);

static atomic_ulong moved_inside, moved_outside;

/* Some microseconds, with probes. */
static unsigned long work(unsigned long seed) {
    for (int i = 0; i < 5000; i++) seed = seed * 6364136223846793005u + (unsigned long)i;
    return seed;
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    unsigned long sum = 0;
    for (int n = 0; n < ROUNDS; n++) {
        atomic_fetch_add(&moved_inside, keep_thread(1));
        long before = syscall(SYS_gettid);
        sum += work(sum);
        atomic_fetch_add(&moved_outside, syscall(SYS_gettid) != before);
    }
    headway_reply(request, sum == 1 ? "one!" : "done", 4);
}

/* keeps stay|roam */
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const int roams = strcmp(argv[1], "roam") == 0;
    alarm(120); /* A deadlock is a failure. */
    struct headway_options options = {.size = sizeof options, .policy = "concord,q=5us", .workers = 2};
    options.resume = roams ? HEADWAY_RESUME_ANYWHERE : HEADWAY_RESUME_OWN_WORKER;
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    const int socket = connected(headway_port(server));
    CHECK(socket >= 0 && answer_all(socket, REQUESTS, IN_FLIGHT) == 0);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    CHECK(atomic_load(&moved_inside) == 0);
    /* One that its own thread went on with, since a worker was seen asleep, moved too: there is another attempt. */
    return stats.preemptions > REQUESTS && roams == (atomic_load(&moved_outside) > 0) ? 0 : NOT_ASKED;
}
