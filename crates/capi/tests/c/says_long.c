/* A request that says that it is long, whatever its class, gives way to shorts that come behind it at the only worker: it ends once they are answered.
 *   says_long POLICY dedicated|inline heeded|off */
#include <headway.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "client.h"

enum { SHORTS = 2 };

static atomic_uint shorts_done;
static atomic_int running, overtaken;

static void wait_for_shorts(void) {
    const uint64_t end_ns = now_ns() + UINT64_C(60000000000);
    while (atomic_load(&shorts_done) < SHORTS && now_ns() < end_ns) headway_checkpoint();
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    if (headway_length(request) > 0) {
        headway_feedback_start(request);
        atomic_store(&running, 1);
        wait_for_shorts();
        atomic_store(&overtaken, atomic_load(&shorts_done) == SHORTS);
        headway_feedback_finished(request);
    } else {
        atomic_fetch_add(&shorts_done, 1);
    }
    headway_reply(request, "done", 4);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    struct headway_class classes[] = {{"any", 0}, {"other", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = 2};
    options.policy = argv[1];
    options.resume = HEADWAY_RESUME_ANYWHERE;
    options.layout = strcmp(argv[2], "dedicated") == 0 ? HEADWAY_LAYOUT_DEDICATED : HEADWAY_LAYOUT_INLINE;
    options.feedback = strcmp(argv[3], "heeded") == 0 ? HEADWAY_FEEDBACK_HEEDED : HEADWAY_FEEDBACK_OFF;
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    const int fd = connected(headway_port(server));
    CHECK(fd >= 0);

    const unsigned char long_request[HEADWAY_HEADER_BYTES + 1] = {0};
    CHECK(send(fd, long_request, sizeof long_request, 0) == sizeof long_request);
    while (!atomic_load(&running)) usleep(100);
    for (int i = 0; i < SHORTS; i++) CHECK(ask(fd, 0) == 0);
    CHECK(await(fd, SHORTS + 1) == 0);
    close(fd);
    CHECK(atomic_load(&overtaken));

    struct headway_class_stats of_class = {.size = sizeof of_class};
    CHECK(headway_read_class_stats(server, 0, &of_class) == HEADWAY_OK);
    CHECK(of_class.feedback_said_long == 1 && of_class.feedback_unended == 0);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    CHECK(stats.answered == SHORTS + 1 && stats.preemptions > 0);
    return 0;
}
