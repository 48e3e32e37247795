/* A server that `headway ctl` reaches: its argument says where. Each line of its input is set as parameters, but "go", which lets its long requests go on; the end of the input
 * stops it. */
#include <headway.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int goes_on;

__attribute__((noinline)) void innermost_of_a_long(void) {
    while (!atomic_load(&goes_on)) headway_checkpoint();
}

__attribute__((noinline)) void middle_of_a_long(int depth) {
    volatile char room[100] = {(char)depth};
    if (depth > 0) middle_of_a_long(depth - 1);
    else innermost_of_a_long();
    room[99] = room[0];
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    if (headway_class_of(request) == 1) middle_of_a_long(3);
    headway_reply(request, "done", 4);
}

/* Prints what each worker has done. */
static int print_workers(const struct headway_server *server) {
    for (size_t index = 0;; index++) {
        struct headway_worker_stats stats = {.size = sizeof stats};
        const int code = headway_read_worker_stats(server, index, &stats);
        if (code != HEADWAY_OK) return code == HEADWAY_E_ARGUMENT ? 0 : 1;
        printf("worker %zu: answered %llu, own %llu, stolen %llu\n", index, (unsigned long long)stats.answered,
               (unsigned long long)stats.own, (unsigned long long)stats.stolen);
    }
}

int main(int argc, char **argv) {
    struct headway_class classes[] = {{"short", 1000}, {"long", 1000000}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = 2};
    options.policy = "concord,q=20us,dispatcher=dedicated";
    options.workers = 2;
    options.control = argc > 1 ? argv[1] : NULL;
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) {
        fprintf(stderr, "%s\n", headway_last_error());
        return 1;
    }
    printf("listening udp://127.0.0.1:%u\n", headway_port(server));
    fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "go") == 0) {
            atomic_store(&goes_on, 1);
            continue;
        }
        const int code = headway_set_parameters(server, line);
        printf("%d %s\n", code, code == HEADWAY_OK ? "" : headway_last_error());
        fflush(stdout);
    }
    if (print_workers(server)) return 1;
    return headway_stop(server, 10000000000u, NULL) == HEADWAY_OK ? 0 : 1;
}
