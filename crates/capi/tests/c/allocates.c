/* Requests that allocate and free, interrupted as often as can be: what one of them wrote is there until it frees it. */
#include <headway.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "client.h"

enum { REQUESTS = 400, IN_FLIGHT = 16, ROUNDS = 40, KEPT = 64 };

static atomic_ulong torn;

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    unsigned char *kept[KEPT] = {NULL};
    unsigned long seed = (unsigned long)(size_t)request;
    for (int n = 0; n < ROUNDS * KEPT; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned char **at = &kept[seed >> 58];
        const size_t size = 16 + (seed >> 40) % (n % 16 == 0 ? 40000 : 1000);
        if (*at != NULL && ((*at)[0] != (unsigned char)(size_t)at || (*at)[15] != (unsigned char)(size_t)at)) atomic_fetch_add(&torn, 1);
        free(*at);
        *at = malloc(size);
        memset(*at, (int)(unsigned char)(size_t)at, size < 512 ? size : 512);
    }
    for (int i = 0; i < KEPT; i++) free(kept[i]);
    headway_reply(request, "done", 4);
}

/* allocates probes|signal */
int main(int argc, char **argv) {
    CHECK(argc == 2);
    alarm(120); /* A deadlock is a failure. */
    struct headway_options options = {.size = sizeof options, .policy = "concord,q=5us", .workers = 2};
    options.resume = HEADWAY_RESUME_ANYWHERE;
    if (strcmp(argv[1], "signal") == 0) {
        options.policy = "shinjuku-sq,q=100us";
        options.resume = HEADWAY_RESUME_OWN_WORKER;
        options.preempt = HEADWAY_PREEMPT_SIGNAL;
    }
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    const int socket = connected(headway_port(server));
    CHECK(socket >= 0 && answer_all(socket, REQUESTS, IN_FLIGHT) == 0);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    CHECK(atomic_load(&torn) == 0 && stats.answered == REQUESTS);
    printf("preemptions %llu\n", (unsigned long long)stats.preemptions);
    return 0;
}
