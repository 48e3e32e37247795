/* The shared parts of self-checking programs: a client of their own server, and the report of a failed check. */
#include <arpa/inet.h>
#include <errno.h>
#include <headway.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Ends the function that uses it with 1, and says where. */
#define CHECK(condition) \
    if (!(condition)) return fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), 1

/* The time since some start. */
static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sends a request of this class, without a payload; 0 when it was sent. */
static inline int ask(int socket, unsigned char class_number) {
    unsigned char datagram[HEADWAY_HEADER_BYTES] = {class_number};
    return send(socket, datagram, sizeof datagram, 0) == sizeof datagram ? 0 : -1;
}

/* Waits for this many answers of four bytes; 0 when all came. */
static inline int await(int socket, int answers) {
    unsigned char datagram[2048];
    while (answers-- > 0) {
        ssize_t length;
        do length = recv(socket, datagram, sizeof datagram, 0);
        while (length < 0 && errno == EINTR); /* A child of the server ended. */
        if (length != HEADWAY_HEADER_BYTES + 4) return -1;
    }
    return 0;
}

/* A socket to the server at this port, which waits for an answer for a minute and a half; -1 if there is none. */
static inline int connected(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const struct timeval patience = {90, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

/* Sends requests of class 0 with a limit on those in flight; 0 when all were answered. */
static inline int answer_all(int socket, int requests, int in_flight) {
    for (int sent = 0, answered = 0; answered < requests; answered++) {
        for (; sent < requests && sent - answered < in_flight; sent++)
            if (ask(socket, 0)) return -1;
        if (await(socket, 1)) return -1;
    }
    return 0;
}

/* Sends the calling thread this signal every so many microseconds, to the end of the process; 0 when it does. */
static inline int signal_every_us(int signal_number, long interval_us) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_number;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return -1;
    const struct itimerspec every = {{0, interval_us * 1000}, {0, interval_us * 1000}};
    return timer_settime(timer, 0, &every, NULL);
}

/* The exit status that asks for another try, since no expected interruption happened. */
#define NOT_ASKED 2

/* Starts a server of two workers with one class, which is asked so many requests and stopped. 0 when each was answered. */
static inline int serve_itself(const char *policy, const struct headway_service *service, int requests, int in_flight,
                               struct headway_stats *stats) {
    struct headway_class classes[] = {{"all", 0}};
    struct headway_options options = {.size = sizeof options, .classes = classes, .class_count = 1};
    options.policy = policy;
    options.workers = 2;
    options.pin = HEADWAY_PIN_OFF;
    struct headway_server *server;
    if (headway_start(&options, service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    const int fd = connected((uint16_t)headway_port(server));
    CHECK(fd >= 0);
    CHECK(answer_all(fd, requests, in_flight) == 0);
    signal(SIGPROF, SIG_IGN);
    CHECK(headway_stop(server, 10000000000u, stats) == HEADWAY_OK);
    CHECK(stats->answered == (uint64_t)requests);
    return 0;
}

/* Has this signal handled, with calls of the system restarted; 0 when it is. */
static inline int handle(int signal_number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    return sigaction(signal_number, &action, NULL);
}
