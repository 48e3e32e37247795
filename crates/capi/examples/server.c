/* A server that answers at once, or adds up as many numbers as the request says; a long sum has no checkpoint in it.
 *   headway-cc -O2 server.c $(pkg-config --cflags --libs headway) -o server && ./server concord,q=20us 2
 * A third argument names an application whose cores a host's daemon grants, and a fourth the daemon's socket. */
#include <headway.h>
#include <stdio.h>
#include <stdlib.h>

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    char digits[24] = {0};
    size_t length = headway_length(request);
    for (size_t i = 0; i < length && i + 1 < sizeof digits; i++) digits[i] = (char)headway_buffer(request)[i];
    uint64_t sum = 1, steps = strtoull(digits, NULL, 10);
    for (uint64_t i = 0; i < steps; i++) sum = sum * 6364136223846793005u + i;
    headway_reply(request, &sum, sizeof sum);
}

int main(int argc, char **argv) {
    struct headway_class classes[] = {{"short", 1000}, {"long", 1000000}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = 2};
    options.policy = argc > 1 ? argv[1] : "concord";
    options.workers = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    if (argc > 3) options.application = argv[3];
    if (argc > 4) options.host_socket = argv[4];
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) {
        fprintf(stderr, "%s\n", headway_last_error());
        return 1;
    }
    printf("listening udp://127.0.0.1:%u\n", headway_port(server));
    fflush(stdout);
    while (getchar() != EOF) {} /* Until whoever started it closes its input. */
    struct headway_stats stats = {.size = sizeof stats};
    headway_stop(server, 1000000000, &stats);
    printf("answered %llu, preemptions %llu\n", (unsigned long long)stats.answered, (unsigned long long)stats.preemptions);
    return 0;
}
