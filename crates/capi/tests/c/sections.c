/* The promises of headway_preempt.h, checked in the handler: a request in a no-preempt section yields at the section's
 * end, and not before; in code without probes it yields at a checkpoint. */
#include <headway.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "client.h"

enum { SHORT, SECTION, CHECKPOINTS, CLASSES };

/* The exit code when the machine gave the dispatcher no time to ask the section to yield. */

/* How many shorts were handled; a long looks at it to see whether it was interrupted. */
static atomic_uint shorts;
static atomic_uint running;
/* The observations of long requests. */
static unsigned inside_section, after_section, at_checkpoints;

static void busy_until(uint64_t end_ns) {
    while (now_ns() < end_ns) {}
}

static void section(void) {
    headway_no_preempt_begin();
    headway_no_preempt_begin();
    atomic_store(&running, 1);
    unsigned before = atomic_load(&shorts);
    uint64_t end_ns = now_ns() + 100000000;
    /* Probes by hand as well, for the compiler that places none. */
    while (now_ns() < end_ns) headway_checkpoint();
    headway_no_preempt_end();
    busy_until(now_ns() + 1000000);
    headway_checkpoint();
    inside_section = atomic_load(&shorts) - before;
    headway_no_preempt_end();
    after_section = atomic_load(&shorts) - before;
}

static void checkpoints(void) {
    unsigned before = atomic_load(&shorts);
    atomic_store(&running, 1);
    uint64_t end_ns = now_ns() + 30000000000u;
    while (now_ns() < end_ns && atomic_load(&shorts) == before) headway_checkpoint();
    at_checkpoints = atomic_load(&shorts) - before;
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    switch (headway_class_of(request)) {
    case SECTION: section(); break;
    case CHECKPOINTS: checkpoints(); break;
    default: atomic_fetch_add(&shorts, 1);
    }
    headway_reply(request, "done", 4);
}

/* A long, and a short once it runs. */
static int both(int socket, unsigned char class_number) {
    atomic_store(&running, 0);
    if (ask(socket, class_number)) return -1;
    while (!atomic_load(&running)) usleep(100);
    return ask(socket, SHORT) || await(socket, 2);
}

int main(void) {
    struct headway_class classes[CLASSES] = {{"short", 1000}, {"section", 0}, {"checkpoints", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = CLASSES};
    options.policy = "concord,q=20us,dispatcher=dedicated";
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    CHECK(headway_start(&options, &service, &server) == HEADWAY_OK);
    int socket_fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct timeval patience = {.tv_sec = 60};
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(headway_port(server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(socket_fd, (struct sockaddr *)&address, sizeof address) == 0);

    CHECK(both(socket_fd, SECTION) == 0);
    CHECK(inside_section == 0);
    if (after_section == 0) return NOT_ASKED;
    CHECK(after_section == 1);
    CHECK(both(socket_fd, CHECKPOINTS) == 0);
    CHECK(at_checkpoints == 1);

    /* Outside a request they do nothing. */
    headway_no_preempt_begin();
    headway_checkpoint();
    headway_no_preempt_end();
    headway_yield();

    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    CHECK(stats.answered == 4 && stats.preemptions >= 2);
    return 0;
}
