/* Requests that vfork: the child runs code with probes, while others ask its parent's worker to yield, and ends with a status of its own. */
#define _GNU_SOURCE
#include <headway.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client.h"

enum { REQUESTS = 60, IN_FLIGHT = 8 };

extern char **environ;
static unsigned long wrong;

static unsigned long work(unsigned long seed) {
    for (int i = 0; i < 20000; i++) seed = seed * 6364136223846793005u + (unsigned long)i;
    return seed;
}

static int status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) != child) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    work(1);
    pid_t child = vfork();
    if (child == 0) _exit((int)(work(7) % 2) + 40);
    int status = status_of(child);
    if (status != (int)(work(7) % 2) + 40) wrong++;
    char *arguments[] = {"true", NULL};
    pid_t spawned;
    if (posix_spawnp(&spawned, "true", NULL, NULL, arguments, environ) || status_of(spawned) != 0) wrong++;
    work(2);
    headway_reply(request, "done", 4);
}

/* vforks POLICY WORKERS */
int main(int argc, char **argv) {
    CHECK(argc == 3);
    alarm(100);
    struct headway_class classes[] = {{"all", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = 1};
    options.policy = argv[1];
    options.workers = (uint32_t)atoi(argv[2]);
    options.pin = HEADWAY_PIN_OFF;
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    int fd = connected((uint16_t)headway_port(server));
    CHECK(fd >= 0);
    CHECK(answer_all(fd, REQUESTS, IN_FLIGHT) == 0);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    CHECK(stats.answered == REQUESTS && stats.received == REQUESTS && wrong == 0);
    printf("preemptions %llu\n", (unsigned long long)stats.preemptions);
    return 0;
}
