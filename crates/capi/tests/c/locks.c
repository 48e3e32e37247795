/* A program with locks that knows nothing of preemption, served with the shim: requests and a thread of the program's own take
 * mutexes (nested too), a reader-writer lock and a spin lock, wait for conditions and allocate, while requests are
 * interrupted as often as can be. What the locks protect must add up, and everything must end. */
#define _GNU_SOURCE
#include <headway.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "client.h"

enum { COUNT, PRODUCE, CONSUME, CLASSES };
enum { ROUNDS = 150, REQUESTS = 600, IN_FLIGHT = 24, ITEMS = 20 };

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static unsigned long by_outer, by_both, by_recursive, by_writer, by_spin;
static unsigned long pair[2]; /* Equal whenever no writer is at work. */
static atomic_ulong torn, rounds;

static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t store_filled = PTHREAD_COND_INITIALIZER;
static unsigned long stored, consumed;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned long initialised;

/* About a microsecond or two, with probes in it. */
static unsigned long work(unsigned long seed) {
    for (int i = 0; i < 1500; i++) seed = seed * 6364136223846793005u + (unsigned long)i;
    return seed;
}

/* Adds 1 in a way that loses it if somebody comes in between. */
static void add_slowly(unsigned long *number) {
    volatile unsigned long *place = number;
    unsigned long before = *place;
    *place = before + 1 + (work(before) == 1);
}

static void initialise(void) { add_slowly(&initialised); }

static void one_round(unsigned long n) {
    pthread_once(&once, initialise);
    pthread_mutex_lock(&outer);
    add_slowly(&by_outer);
    if (n % 3 == 0) {
        pthread_mutex_lock(&inner);
        add_slowly(&by_both);
        pthread_mutex_unlock(&inner);
    }
    pthread_mutex_unlock(&outer);

    char *text = malloc(64 + n % 1000);
    memset(text, (int)n, 64);
    text = realloc(text, 2000);
    work(n);
    if (text[63] != (char)n) atomic_fetch_add(&torn, 1);
    free(text);

    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    add_slowly(&by_recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);

    if (n % 4 == 0) {
        pthread_rwlock_wrlock(&shared);
        add_slowly(&by_writer);
        add_slowly(&pair[0]);
        add_slowly(&pair[1]);
    } else {
        pthread_rwlock_rdlock(&shared);
        unsigned long first = *(volatile unsigned long *)&pair[0];
        work(n);
        if (first != *(volatile unsigned long *)&pair[1]) atomic_fetch_add(&torn, 1);
    }
    pthread_rwlock_unlock(&shared);

    pthread_spin_lock(&spin);
    add_slowly(&by_spin);
    pthread_spin_unlock(&spin);
    atomic_fetch_add(&rounds, 1);
}

static void produce(void) {
    for (int i = 0; i < ITEMS; i++) {
        work(1);
        pthread_mutex_lock(&store_lock);
        add_slowly(&stored);
        pthread_cond_signal(&store_filled);
        pthread_mutex_unlock(&store_lock);
    }
}

static void consume(void) {
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&store_lock);
        while (stored == 0) pthread_cond_wait(&store_filled, &store_lock);
        stored--;
        add_slowly(&consumed);
        pthread_mutex_unlock(&store_lock);
        work(2);
    }
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    switch (headway_class_of(request)) {
    case PRODUCE: produce(); break;
    case CONSUME: consume(); break;
    default:
        for (unsigned long n = 0; n < ROUNDS; n++) one_round(n);
    }
    headway_reply(request, "done", 4);
}

static atomic_int stop_thread;

static void *program_thread(void *nothing) {
    for (unsigned long n = 0; !atomic_load(&stop_thread); n++) one_round(12 * (n % 1000) + n % 12);
    return nothing;
}

/* Sends all requests with a limit on those in flight, consumers before their producers; 0 when all were answered. */
static int drive(int fd) {
    int sent = 0, answered = 0;
    while (answered < REQUESTS) {
        while (sent < REQUESTS && sent - answered < IN_FLIGHT) {
            static const unsigned char classes[] = {CONSUME, COUNT, PRODUCE, COUNT};
            unsigned char datagram[HEADWAY_HEADER_BYTES] = {classes[sent % 4]};
            CHECK(send(fd, datagram, sizeof datagram, 0) == sizeof datagram);
            sent++;
        }
        unsigned char answer[2048];
        CHECK(recv(fd, answer, sizeof answer, 0) == HEADWAY_HEADER_BYTES + 4);
        answered++;
    }
    return 0;
}

/* locks POLICY WORKERS */
int main(int argc, char **argv) {
    CHECK(argc == 3);
    alarm(120); /* A deadlock is a failure. */
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    struct headway_class classes[CLASSES] = {{"count", 0}, {"produce", 0}, {"consume", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = CLASSES};
    options.policy = argv[1];
    options.workers = (uint32_t)atoi(argv[2]);
    options.resume = HEADWAY_RESUME_ANYWHERE;
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct timeval patience = {.tv_sec = 100};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(headway_port(server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, program_thread, NULL) == 0);
    if (drive(fd)) return 1;
    atomic_store(&stop_thread, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);

    unsigned long all = atomic_load(&rounds);
    printf("rounds %lu preemptions %llu\n", all, (unsigned long long)stats.preemptions);
    CHECK(all >= (unsigned long)REQUESTS / 2 * ROUNDS);
    CHECK(by_outer == all && by_recursive == all && by_spin == all);
    CHECK(by_both > 0 && by_writer > 0 && pair[0] == by_writer && pair[1] == by_writer);
    CHECK(atomic_load(&torn) == 0 && initialised == 1);
    CHECK(stored == 0 && consumed == (unsigned long)REQUESTS / 4 * ITEMS);
    CHECK(stats.answered == REQUESTS);
    return 0;
}
