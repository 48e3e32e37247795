/* A loop per worker that takes requests and answers them: with how many this loop has served, and the sum of the payload's bytes.
 *   headway-cc -O2 pull.c $(pkg-config --cflags --libs headway) -o pull && ./pull concord,q=20us 2 */
#include <headway.h>
#include <stdio.h>
#include <stdlib.h>

static void serve(void *context, struct headway_requests *requests) {
    (void)context;
    uint64_t answer[2] = {0, 0}; /* The loop's own state, shared with nobody. */
    struct headway_request *request;
    while (headway_recv(requests, &request) == HEADWAY_OK) {
        answer[0]++;
        answer[1] = 0;
        for (size_t i = 0; i < headway_length(request); i++) answer[1] += headway_buffer(request)[i];
        headway_send(requests, request, answer, sizeof answer);
    }
}

int main(int argc, char **argv) {
    struct headway_options options = {.size = sizeof options, .policy = argc > 1 ? argv[1] : "darc"};
    options.workers = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    struct headway_service service = {.size = sizeof service, .serve = serve};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    printf("listening udp://127.0.0.1:%u\n", headway_port(server));
    fflush(stdout);
    while (getchar() != EOF) {} /* Until whoever started it closes its input. */
    struct headway_stats stats = {.size = sizeof stats};
    headway_stop(server, 1000000000, &stats);
    printf("answered %llu, preemptions %llu\n", (unsigned long long)stats.answered, (unsigned long long)stats.preemptions);
}
