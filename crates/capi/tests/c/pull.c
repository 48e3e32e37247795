/* Tests the promises of a loop from inside: it answers each request once, in any order, and a mistake affects its own request only. */
#include <headway.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "client.h"

/* The action of the loop for each class of request. */
enum { ECHO, LOSE, LEAVE, TWICE, FAIL, SLOW, CLASSES };

static atomic_uint loops, ended, wrong, held_most;

static void one(struct headway_requests *requests, struct headway_request *request) {
    switch (headway_class_of(request)) {
    case FAIL:
        headway_fail(request);
        if (headway_finish(requests, request) != HEADWAY_OK) atomic_fetch_add(&wrong, 1);
        return;
    case TWICE:
        if (headway_send(requests, request, "once", 4) != HEADWAY_OK) atomic_fetch_add(&wrong, 1);
        if (headway_send(requests, request, "more", 4) != HEADWAY_E_ARGUMENT) atomic_fetch_add(&wrong, 1);
        return;
    case SLOW: {
        uint64_t end_ns = now_ns() + 2000000;
        while (now_ns() < end_ns) headway_checkpoint();
    } /* fall through */
    default:
        if (headway_send(requests, request, "done", 4) != HEADWAY_OK) atomic_fetch_add(&wrong, 1);
    }
}

static void serve(void *context, struct headway_requests *requests) {
    (void)context;
    atomic_fetch_add(&loops, 1);
    struct headway_request *taken[4];
    while (headway_recv(requests, &taken[0]) == HEADWAY_OK) {
        unsigned count = 1;
        while (count < 4 && headway_recv(requests, &taken[count]) == HEADWAY_OK) count++;
        if (count > atomic_load(&held_most)) atomic_store(&held_most, count);
        int leave = 0;
        while (count-- > 0) {
            unsigned class_number = headway_class_of(taken[count]);
            leave |= class_number == LEAVE;
            if (class_number == LOSE || class_number == LEAVE) headway_finish(requests, taken[count]);
            else one(requests, taken[count]);
        }
        if (leave) return;
    }
    atomic_fetch_add(&ended, 1);
}

/* The status of the answer to a request of this class: its bits of the header's second byte. */
static int status_of(int socket, unsigned char class_number) {
    unsigned char datagram[64];
    if (ask(socket, class_number)) return -1;
    if (recv(socket, datagram, sizeof datagram, 0) < HEADWAY_HEADER_BYTES) return -1;
    return datagram[1];
}

static int run(const char *policy, struct headway_stats *stats) {
    atomic_store(&loops, 0);
    atomic_store(&ended, 0);
    struct headway_class classes[CLASSES] = {{"echo", 1000}, {"lose", 1000}, {"leave", 1000}, {"twice", 1000}, {"fail", 1000}, {"slow", 2000000}};
    struct headway_options options = {.size = sizeof options, .policy = policy, .classes = classes, .class_count = CLASSES};
    struct headway_service service = {.size = sizeof service, .serve = serve};
    struct headway_server *server;
    CHECK(headway_start(&options, &service, &server) == HEADWAY_OK);
    int fd = connected(headway_port(server));
    const int done = status_of(fd, ECHO), failed = status_of(fd, FAIL);
    CHECK(done > 0 && failed > 0 && done != failed);
    CHECK(status_of(fd, LOSE) == failed && status_of(fd, LEAVE) == failed);
    CHECK(status_of(fd, TWICE) == done && status_of(fd, ECHO) == done);
    for (int round = 0; round < 20; round++) {
        for (int request = 0; request < 8; request++) CHECK(ask(fd, request % 4 ? ECHO : SLOW) == 0);
        CHECK(await(fd, 8) == 0);
    }
    close(fd);
    *stats = (struct headway_stats){.size = sizeof *stats};
    CHECK(headway_stop(server, 10000000000u, stats) == HEADWAY_OK);
    CHECK(stats->answered == 6 + 20 * 8 && atomic_load(&wrong) == 0);
    /* The loop that left was followed by another; all others heard of the end. */
    CHECK(atomic_load(&loops) == atomic_load(&ended) + 1);
    return 0;
}

int main(void) {
    struct headway_stats stats;
    CHECK(run("c-fcfs", &stats) == 0);
    CHECK(stats.preemptions == 0 && atomic_load(&held_most) == 1);
    CHECK(run("concord,q=20us,dispatcher=dedicated", &stats) == 0);
    if (stats.preemptions == 0 || atomic_load(&held_most) < 2) return NOT_ASKED;
    CHECK(atomic_load(&held_most) <= 4);

    struct headway_options options = {.size = sizeof options};
    struct headway_service neither = {.size = sizeof neither};
    struct headway_server *server;
    CHECK(headway_start(&options, &neither, &server) == HEADWAY_E_ARGUMENT);
    CHECK(strstr(headway_last_error(), "serve"));
    CHECK(headway_recv(NULL, NULL) == HEADWAY_E_ARGUMENT);
    return 0;
}
