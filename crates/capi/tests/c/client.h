/* What the programs that check themselves have in common: a client of their own server, and how they say what is not so. */
#include <headway.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

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

/* Waits for so many answers of four bytes; 0 when they came. */
static inline int await(int socket, int answers) {
    unsigned char datagram[2048];
    while (answers-- > 0)
        if (recv(socket, datagram, sizeof datagram, 0) != HEADWAY_HEADER_BYTES + 4) return -1;
    return 0;
}

/* Ends the function that uses it with 1, and says where. */
#define CHECK(condition) \
    if (!(condition)) return fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), 1
