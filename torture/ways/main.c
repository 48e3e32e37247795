/* torture POLICY WORKERS own|anywhere SWITCHES [ONLY]: a server whose requests do one thing in the middle of which they are interrupted; after SWITCHES interruptions, or
 * when its time is over, the next thing. Each is a WAY (torture.h). Prints for each how often its requests were interrupted and what was not so, and at the end the sums. */
#include "torture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WAYS = 200, IN_FLIGHT = 12, SHOWN = 3 };
/* Of a way, in a request of either class. */
enum { LONG_ROUNDS = 16, SHORT_ROUNDS = 1 };
/* Nobody waits longer for an answer. */
enum { PATIENCE_S = 60 };

struct way {
    const char *name;
    void (*run)(unsigned long seed);
};

static struct way ways[MOST_WAYS];
static int way_count;
static const struct way *current;
static unsigned long wrong;

void add_way(const char *name, void (*way)(unsigned long seed)) {
    if (way_count == MOST_WAYS) abort();
    ways[way_count++] = (struct way){name, way};
}

void was_wrong(const char *place, int line, const char *what) {
    unsigned long before = __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    if (before < SHOWN) fprintf(stderr, "%s: %s:%d: not so: %s\n", current->name, place, line, what);
}

/* A handler's. */
static void handle(void *context, struct headway_request *request) {
    (void)context;
    static unsigned long next;
    const unsigned long seed = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
    const int rounds = headway_class_of(request) == 0 ? LONG_ROUNDS : SHORT_ROUNDS;
    for (int round = 0; round < rounds; round++) current->run(seed);
    headway_reply(request, "done", 4);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int connected(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {PATIENCE_S, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

/* Long requests and short ones in turn: by `srpt` the short ones interrupt. */
static int ask(int socket, unsigned number) {
    unsigned char datagram[HEADWAY_HEADER_BYTES] = {(unsigned char)(number % 2)};
    return send(socket, datagram, sizeof datagram, 0) == sizeof datagram;
}

enum { NO_ANSWER, ANSWERED, REFUSED };
/* Of an answer's second byte (docs/wire.md). */
enum { STATUS_SHED = 1 << 3 | 1 << 2 };

/* The next answer: the request was handled, or refused for want of room, which a server may. */
static int hear(int socket) {
    unsigned char datagram[2048];
    ssize_t length;
    do length = recv(socket, datagram, sizeof datagram, 0);
    while (length < 0 && errno == EINTR); /* A child of a request ended. */
    if (length == HEADWAY_HEADER_BYTES + 4) return ANSWERED;
    if (length == HEADWAY_HEADER_BYTES && datagram[1] == STATUS_SHED) return REFUSED;
    if (length < 0) fprintf(stderr, "no answer within %d s: %s\n", PATIENCE_S, strerror(errno));
    if (length >= HEADWAY_HEADER_BYTES) fprintf(stderr, "an answer of %zd bytes, with the flag %d\n", length, datagram[1]);
    return NO_ANSWER;
}

static unsigned long long preemptions(const struct headway_server *server) {
    struct headway_stats stats = {.size = sizeof stats};
    headway_read_stats(server, &stats);
    return stats.preemptions;
}

/* Has requests go this way until `switches` interruptions are over, or the time. The interruptions; -1 where a request was not answered. */
static long long go(const struct headway_server *server, int socket, unsigned long long switches, uint64_t limit_ns) {
    const unsigned long long before = preemptions(server);
    const uint64_t end_ns = now_ns() + limit_ns;
    unsigned sent = 0, answered = 0;
    for (int more = 1; more || answered < sent;) {
        while (more && sent - answered < IN_FLIGHT)
            if (!ask(socket, sent++)) return -1;
        if (hear(socket) == NO_ANSWER) return -1;
        answered++;
        more = more && (answered < 2 * IN_FLIGHT || (preemptions(server) - before < switches && now_ns() < end_ns));
    }
    return (long long)(preemptions(server) - before);
}

/* Whether TORTURE_WITHOUT, words with a space between them, has the name. */
static int left_out(const char *name) {
    const char *without = getenv("TORTURE_WITHOUT");
    const size_t length = strlen(name);
    for (const char *at = without; at && (at = strstr(at, name)); at += length) {
        if ((at == without || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return 1;
    }
    return 0;
}

static struct headway_server *started(char **argv) {
    /* What srpt goes by. */
    static const struct headway_class classes[] = {{"long", 1000000}, {"short", 1000}};
    struct headway_options options = {
        .size = sizeof options,
        .policy = argv[1],
        .classes = classes,
        .class_count = 2,
        .workers = (uint32_t)atoi(argv[2]),
        .resume = strcmp(argv[3], "anywhere") == 0 ? HEADWAY_RESUME_ANYWHERE : HEADWAY_RESUME_OWN_WORKER,
        /* Who interrupts for srpt has no quantum to wait for. */
        .layout = strncmp(argv[1], "srpt", 4) == 0 ? HEADWAY_LAYOUT_DEDICATED : HEADWAY_LAYOUT_AUTO,
        .pin = HEADWAY_PIN_OFF,
        .fibers = getenv("TORTURE_PLAIN") ? HEADWAY_FIBERS_PLAIN : HEADWAY_FIBERS_OF_THREADS,
    };
    struct headway_service service = {.size = sizeof service, .handle_request = handle};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) == HEADWAY_OK) return server;
    fprintf(stderr, "%s\n", headway_last_error());
    exit(1);
}

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "usage: torture POLICY WORKERS own|anywhere SWITCHES [ONLY]\n"), 1;
    const char *limit = getenv("TORTURE_MS");
    const uint64_t limit_ns = (uint64_t)(limit ? atol(limit) : 60000) * 1000000u;
    current = ways;
    struct headway_server *server = started(argv);
    const int socket = connected((uint16_t)headway_port(server));
    unsigned long long sum = 0, all_wrong = 0;
    int gone = 0, failed = 0;
    for (int i = 0; i < way_count; i++) {
        if (argc > 5 && strcmp(argv[5], ways[i].name) != 0) continue;
        if (left_out(ways[i].name)) continue;
        current = &ways[i];
        wrong = 0;
        const long long switches = go(server, socket, strtoull(argv[4], NULL, 10), limit_ns);
        if (switches < 0) {
            struct headway_stats stats = {.size = sizeof stats};
            headway_read_stats(server, &stats);
            fprintf(stderr, "%s: a request was not answered, after %lu that were not so: of %llu received %llu were answered, %llu shed; %llu interruptions\n", current->name, wrong,
                    (unsigned long long)stats.received, (unsigned long long)stats.answered, (unsigned long long)stats.shed, (unsigned long long)stats.preemptions);
            _exit(3);
        }
        printf("%s %lld %lu\n", current->name, switches, wrong);
        fflush(stdout);
        gone++, sum += (unsigned long long)switches, all_wrong += wrong, failed += wrong > 0;
    }
    struct headway_stats stats = {.size = sizeof stats};
    if (headway_stop(server, 60000000000u, &stats) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    printf("ways %d switches %llu wrong %llu refused %llu\n", gone, sum, all_wrong, (unsigned long long)stats.shed);
    return gone == 0 || failed;
}
