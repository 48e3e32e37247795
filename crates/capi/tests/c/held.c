/* The server counts, by kind, the locks that keep requests from yielding: a mutex held for a whole call, and a reader's lock. It runs
 * behind the shim. */
#include <headway.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "client.h"

enum { SHORT, MUTEX, RWLOCK, CLASSES };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_uint running;

/* Long enough to be asked to yield. Probes by hand as well, for the compiler that places none. */
static void work(void) {
    atomic_store(&running, 1);
    uint64_t end_ns = now_ns() + 100000000;
    while (now_ns() < end_ns) headway_checkpoint();
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    switch (headway_class_of(request)) {
    case MUTEX:
        pthread_mutex_lock(&mutex);
        work();
        pthread_mutex_unlock(&mutex);
        break;
    case RWLOCK:
        pthread_rwlock_rdlock(&rwlock);
        work();
        pthread_rwlock_unlock(&rwlock);
        break;
    default: break;
    }
    /* The shim leaves the request to yield to the next probe. */
    headway_checkpoint();
    headway_reply(request, "done", 4);
}

/* A long, and a short once it runs. */
static int both(int socket, unsigned char class_number) {
    atomic_store(&running, 0);
    if (ask(socket, class_number)) return -1;
    while (!atomic_load(&running)) usleep(100);
    return ask(socket, SHORT) || await(socket, 2);
}

int main(void) {
    struct headway_class classes[CLASSES] = {{"short", 1000}, {"mutex", 0}, {"rwlock", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = CLASSES};
    options.policy = "concord,q=20us,dispatcher=dedicated";
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_server *server;
    CHECK(headway_start(&options, &service, &server) == HEADWAY_OK);
    int socket_fd = connected(headway_port(server));
    CHECK(socket_fd >= 0);
    CHECK(both(socket_fd, MUTEX) == 0);
    CHECK(both(socket_fd, RWLOCK) == 0);

    struct headway_class_stats of_mutex = {.size = sizeof of_mutex}, of_rwlock = {.size = sizeof of_rwlock};
    CHECK(headway_read_class_stats(server, MUTEX, &of_mutex) == HEADWAY_OK);
    CHECK(headway_read_class_stats(server, RWLOCK, &of_rwlock) == HEADWAY_OK);
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    if (of_mutex.preemptions == 0 || of_rwlock.preemptions == 0) return NOT_ASKED;
    CHECK(of_mutex.held_mutex == 1 && of_mutex.held_rwlock == 0 && of_mutex.lock_yields == 1);
    CHECK(of_rwlock.held_rwlock == 1 && of_rwlock.held_mutex == 0 && of_rwlock.lock_yields == 1);
    /* It was asked while it worked, and went on until it had released the lock. */
    CHECK(of_mutex.held_mutex_ns > 1000 && of_mutex.held_mutex_ns < 10000000000u);
    return 0;
}
