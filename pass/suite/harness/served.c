// The main() of a program whose kernel is a request of a server: interrupted wherever a slice ends, while others wait, and resumed by any worker or by its own.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <headway.h>

#include "clock.h"
#include "suite.h"

static const char USAGE[] =
    "usage: PROGRAM POLICY own|anywhere test|full INTERRUPTIONS SECONDS EXPECTED\n"
    "  repetitions until the kernel was interrupted so often, or for so long; prints them, its interruptions, and how many repetitions changed threads, as JSON\n";

enum { KERNEL, BESIDE, CLASSES };
// Requests beside the kernel, so that one waits whenever its slice ends.
enum { MOST_BESIDE = 4, ROUNDS_BESIDE = 3000 };
// Nobody waits longer for an answer.
enum { PATIENCE_S = 60 };
enum { STACK_BYTES = 8 << 20 };

static bool full;
static uint64_t moved;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

static void run_kernel(void) {
    const long before = syscall(SYS_gettid);
    for (unsigned pass = full ? kernel_passes : 1; pass > 0; pass--) kernel_run();
    moved += before != syscall(SYS_gettid);
}

static void run_beside(void) {
    for (volatile int round = 0; round < ROUNDS_BESIDE; round++) {}
}

static void handle(void *context, struct headway_request *request) {
    (void)context;
    const unsigned class = headway_class_of(request);
    if (class == KERNEL) run_kernel();
    else run_beside();
    const unsigned char answer = (unsigned char)class;
    headway_reply(request, &answer, 1);
}

static int connected(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {PATIENCE_S, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect: %s", strerror(errno));
    return fd;
}

static void ask(int socket, unsigned char class) {
    const unsigned char datagram[HEADWAY_HEADER_BYTES] = {class};
    if (send(socket, datagram, sizeof datagram, 0) != sizeof datagram) fail("send: %s", strerror(errno));
}

// The class of the next answer. A request beside the kernel may be refused for want of room.
static unsigned hear(int socket) {
    unsigned char datagram[2048];
    const ssize_t length = recv(socket, datagram, sizeof datagram, 0);
    if (length < 0) fail("no answer within %d s: %s", PATIENCE_S, strerror(errno));
    return length == HEADWAY_HEADER_BYTES + 1 ? datagram[HEADWAY_HEADER_BYTES] : BESIDE;
}

static struct headway_server *started(const char *policy, bool anywhere) {
    static const struct headway_class classes[CLASSES] = {{"kernel", 1000000}, {"beside", 10000}};
    const struct headway_options options = {
        .size = sizeof options,
        .policy = policy,
        .classes = classes,
        .class_count = CLASSES,
        .workers = 2,
        .resume = anywhere ? HEADWAY_RESUME_ANYWHERE : HEADWAY_RESUME_OWN_WORKER,
        .pin = HEADWAY_PIN_OFF,
        .stack_bytes = STACK_BYTES,
    };
    const struct headway_service service = {.size = sizeof service, .handle_request = handle};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) fail("%s", headway_last_error());
    return server;
}

static unsigned long long interruptions(const struct headway_server *server) {
    struct headway_class_stats stats = {.size = sizeof stats};
    headway_read_class_stats(server, KERNEL, &stats);
    return stats.preemptions;
}

// One repetition, while others wait.
static void repeat(int socket, unsigned *beside) {
    ask(socket, KERNEL);
    for (bool done = false; !done;) {
        for (; *beside < MOST_BESIDE; ++*beside) ask(socket, BESIDE);
        if (hear(socket) == KERNEL) done = true;
        else --*beside;
    }
}

int main(int argc, char **argv) {
    if (argc != 7) return fputs(USAGE, stderr), 2;
    full = strcmp(argv[3], "full") == 0;
    const unsigned long long enough = strtoull(argv[4], NULL, 10);
    const uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + strtoull(argv[5], NULL, 10) * 1000000000u;
    const uint64_t expected = strtoull(argv[6], NULL, 16);
    kernel_setup(full);
    struct headway_server *server = started(argv[1], strcmp(argv[2], "anywhere") == 0);
    const int socket = connected(headway_port(server));
    unsigned beside = 0, repetitions = 0;
    do {
        repeat(socket, &beside);
        repetitions++;
        if (kernel_digest() != expected) fail("the result's digest is %016lx, expected %016lx", kernel_digest(), expected);
    } while (interruptions(server) < enough && clock_ns(CLOCK_MONOTONIC) < end_ns);
    const unsigned long long met = interruptions(server);
    if (headway_stop(server, PATIENCE_S * 1000000000u, NULL) != HEADWAY_OK) fail("%s", headway_last_error());
    if (!kernel_valid()) fail("the result is not valid");
    printf("{\"repetitions\": %u, \"interruptions\": %llu, \"moved\": %lu}\n", repetitions, met, moved);
    return 0;
}
