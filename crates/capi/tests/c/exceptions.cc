// Requests that throw and catch take turns on a thread, and each must find its own exceptions again: those of the C++ runtime, and those of a library with
// a runtime of its own.
//   exceptions POLICY WORKERS [LIBRARY]
#include <headway.h>
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "throws.h"

// The C++ runtime's exceptions of the calling thread (Itanium C++ ABI, section 2.5.1).
extern "C" void *__cxa_get_globals(void) noexcept;

namespace {

constexpr unsigned kRounds = 40, kRequests = 300, kInFlight = 24;

// The library's own; null without one.
unsigned long (*library_round)(unsigned long id);

void handle_request(void *, struct headway_request *request) {
    static std::atomic<unsigned long> ids{1};
    const unsigned long id = ids++;
    for (unsigned round = 0; round < kRounds; round++) {
        one_round(id);
        if (!library_round) continue;
        try {
            throw First{id, work(id)};
        } catch (const First &first) {
            expect(library_round(id) == 0 && first.id == id);
        }
    }
    headway_reply(request, "done", 4);
}

int not_so(int line, const char *what) {
    std::fprintf(stderr, "exceptions.cc:%d: not so: %s\n", line, what);
    return 1;
}
#define CHECK(condition) \
    if (!(condition)) return not_so(__LINE__, #condition)

int drive(int fd) {
    for (unsigned sent = 0, answered = 0; answered < kRequests; answered++) {
        for (; sent < kRequests && sent - answered < kInFlight; sent++) {
            const unsigned char datagram[HEADWAY_HEADER_BYTES] = {};
            CHECK(send(fd, datagram, sizeof datagram, 0) == sizeof datagram);
        }
        unsigned char answer[2048];
        CHECK(recv(fd, answer, sizeof answer, 0) == HEADWAY_HEADER_BYTES + 4);
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    CHECK(argc == 3 || argc == 4);
    alarm(120);
    if (argc == 4) {
        void *library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
        if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 1;
        library_round = reinterpret_cast<unsigned long (*)(unsigned long)>(dlsym(library, "library_round"));
        auto globals = reinterpret_cast<void *(*)()>(dlsym(library, "library_globals"));
        CHECK(library_round && globals && globals() != __cxa_get_globals());
    }
    struct headway_class classes[] = {{"throws", 0}};
    struct headway_options options = {};
    options.size = sizeof options;
    options.classes = classes;
    options.class_count = 1;
    options.policy = argv[1];
    options.workers = static_cast<uint32_t>(std::atoi(argv[2]));
    options.resume = HEADWAY_RESUME_ANYWHERE;
    struct headway_service service = {};
    service.size = sizeof service;
    service.handle_request = handle_request;
    struct headway_server *server;
    if (headway_start(&options, &service, &server) != HEADWAY_OK) return std::fprintf(stderr, "%s\n", headway_last_error()), 1;
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct timeval patience = {100, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(headway_port(server));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd, reinterpret_cast<struct sockaddr *>(&address), sizeof address) == 0);
    if (drive(fd)) return 1;
    struct headway_stats stats = {};
    stats.size = sizeof stats;
    CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
    std::printf("rounds %lu preemptions %llu\n", rounds.load(), static_cast<unsigned long long>(stats.preemptions));
    CHECK(wrong == 0);
    CHECK(rounds == kRequests * kRounds && stats.answered == kRequests);
    return 0;
}
