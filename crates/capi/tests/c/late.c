/* A lock whose deadline has passed: the call returns an error at once and does not suspend the request. */
#define _GNU_SOURCE
#include <errno.h>
#include <headway.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "client.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int codes[8], waited;
static long waited_ns;

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    const struct timespec over = {1, 0}, no_time = {1, -1};
    codes[0] = pthread_mutex_timedlock(&mutex, &over);
    codes[1] = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &over);
    codes[2] = pthread_rwlock_timedrdlock(&rwlock, &over);
    codes[3] = pthread_rwlock_timedwrlock(&rwlock, &over);
    codes[4] = pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &over);
    codes[5] = pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &over);
    codes[6] = pthread_mutex_timedlock(&mutex, &no_time);
    headway_reply(request, "done", 4);
}

static void handle_patiently(void *context, struct headway_request *request) {
    (void)context;
    struct timespec until;
    const uint64_t start_ns = now_ns();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    waited = pthread_mutex_timedlock(&mutex, &until);
    waited_ns = (long)(now_ns() - start_ns);
    headway_reply(request, "done", 4);
}

/* Serves one request with this handler; how often it was interrupted. */
static int serve(void (*handler)(void *, struct headway_request *), unsigned long long *preemptions) {
    struct headway_options options = {.size = sizeof options, .policy = "shinjuku-sq,q=10s"};
    struct headway_service service = {.size = sizeof service, .handle_request = handler};
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    const int socket = connected(headway_port(server));
    CHECK(socket >= 0 && answer_all(socket, 1, 1) == 0);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    *preemptions = stats.preemptions;
    return 0;
}

int main(void) {
    alarm(60);
    unsigned long long preemptions;
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    if (serve(handle_request, &preemptions)) return 1;
    for (int i = 0; i < 6; i++) CHECK(codes[i] == ETIMEDOUT);
    CHECK(codes[6] == EINVAL);
    CHECK(preemptions == 0);
    /* With time left others run meanwhile, and the lock is waited for until then. */
    if (serve(handle_patiently, &preemptions)) return 1;
    CHECK(waited == ETIMEDOUT && waited_ns >= 900000000);
    CHECK(preemptions > 0);
    return 0;
}
