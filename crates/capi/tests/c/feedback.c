/* Tests the feedback calls from inside a handler. With the option, the server interrupts a request only while it declares
 * itself long. Without the option the calls do nothing. */
#include <headway.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "client.h"

enum { SHORT, SILENT, TELLING, CLASSES };

/* The exit code when the machine gave the dispatcher no time to ask the long part to yield. */

/* Milliseconds of each part of a long. */
enum { PART = 30 };

/* How many shorts were handled; a long looks at it to see whether it was interrupted. */
static atomic_uint shorts;
static atomic_uint running;
/* The observations of long requests. */
static unsigned before_part, inside_part, behind_part;

/* With probes by hand as well, for the compiler that places none. */
static unsigned shorts_in(unsigned milliseconds) {
    unsigned before = atomic_load(&shorts);
    uint64_t end_ns = now_ns() + milliseconds * UINT64_C(1000000);
    while (now_ns() < end_ns) headway_checkpoint();
    return atomic_load(&shorts) - before;
}

static void long_parts(struct headway_request *request, int says) {
    atomic_store(&running, 1);
    before_part = shorts_in(PART);
    unsigned before = atomic_load(&shorts);
    if (says) {
        headway_feedback_start(request);
        headway_feedback_start(request);
        shorts_in(PART);
        headway_feedback_finished(request);
    }
    shorts_in(PART);
    if (says) headway_feedback_finished(request);
    inside_part = atomic_load(&shorts) - before;
    behind_part = shorts_in(PART);
    headway_feedback_finished(request); /* One too many changes nothing. */
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    switch (headway_class_of(request)) {
    case SILENT: long_parts(request, 0); break;
    case TELLING: long_parts(request, 1); break;
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

/* Serves one long and a short that comes while it runs. */
static int serve(unsigned feedback, unsigned char class_number, struct headway_stats *stats) {
    struct headway_class classes[CLASSES] = {{"short", 1000}, {"silent", 0}, {"telling", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = CLASSES};
    options.feedback = feedback;
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

    CHECK(both(socket_fd, class_number) == 0);
    close(socket_fd);
    /* Of the parts that longs begin all are ended; the call too many is counted. The shorts say nothing. */
    struct headway_class_stats of_long = {.size = sizeof of_long}, of_short = {.size = sizeof of_short};
    CHECK(headway_read_class_stats(server, class_number, &of_long) == HEADWAY_OK);
    CHECK(headway_read_class_stats(server, SHORT, &of_short) == HEADWAY_OK);
    CHECK(of_long.feedback_said_long == (class_number == TELLING) && of_long.feedback_from_short == 0);
    CHECK(of_long.feedback_unended == 0 && of_long.feedback_unbegun == 1);
    CHECK(of_short.feedback_said_long == 0 && of_short.feedback_unbegun == 0);
    *stats = (struct headway_stats){.size = sizeof *stats};
    CHECK(headway_stop(server, 10000000000u, stats) == HEADWAY_OK);
    CHECK(stats->answered == 2);
    return 0;
}

int main(void) {
    struct headway_stats stats;
    CHECK(serve(HEADWAY_FEEDBACK_HEEDED, SILENT, &stats) == 0);
    CHECK(before_part + inside_part + behind_part == 0);
    CHECK(stats.preemptions == 0);

    CHECK(serve(HEADWAY_FEEDBACK_HEEDED, TELLING, &stats) == 0);
    CHECK(before_part == 0 && behind_part == 0);
    if (inside_part == 0) return NOT_ASKED;
    CHECK(inside_part == 1 && stats.preemptions > 0);

    CHECK(serve(HEADWAY_FEEDBACK_OFF, SILENT, &stats) == 0);
    if (before_part == 0) return NOT_ASKED;
    CHECK(before_part == 1 && stats.preemptions > 0);
    return 0;
}
