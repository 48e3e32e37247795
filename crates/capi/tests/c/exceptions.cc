// Exceptions in flight while requests are interrupted, in destructors that unwinding calls and in catch blocks, nested too. Requests take turns on a
// thread, and each must find its own exceptions again.
#include <headway.h>
#include <arpa/inet.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

constexpr unsigned kRounds = 40, kRequests = 300, kInFlight = 24, kDepth = 4;

std::atomic<unsigned long> rounds{0}, wrong{0};

// About a microsecond, with probes in it.
unsigned long work(unsigned long seed) {
    for (int i = 0; i < 1000; i++) seed = seed * 6364136223846793005u + static_cast<unsigned long>(i);
    return seed;
}

void expect(bool holds) {
    if (!holds) wrong++;
}

struct First {
    unsigned long id, worked;
};

struct Second {
    unsigned long id, worked;
};

// Takes its time while an exception passes.
struct Guard {
    unsigned long id;
    ~Guard() {
        expect(std::uncaught_exceptions() == 1);
        expect(work(id) != 1);
        expect(std::uncaught_exceptions() == 1);
    }
};

[[noreturn]] void fail(unsigned long id, unsigned depth) {
    if (depth == 0) throw First{id, work(id)};
    Guard guard{id};
    fail(id, depth - 1);
}

void one_round(unsigned long id) {
    try {
        fail(id, kDepth);
    } catch (const First &first) {
        expect(first.worked == work(id) && first.id == id && std::uncaught_exceptions() == 0);
        try {
            throw Second{id, work(~id)};
        } catch (const Second &second) {
            const std::exception_ptr held = std::current_exception();
            expect(second.worked == work(~id) && second.id == id);
            try {
                std::rethrow_exception(held);
            } catch (const Second &again) {
                expect(work(again.id) == work(id));
            }
        }
        try {
            throw;
        } catch (const First &again) {
            expect(again.worked == work(id) && &again == &first);
        }
    }
    expect(std::uncaught_exceptions() == 0 && !std::current_exception());
    rounds++;
}

void handle_request(void *, struct headway_request *request) {
    static std::atomic<unsigned long> ids{1};
    const unsigned long id = ids++;
    for (unsigned round = 0; round < kRounds; round++) one_round(id);
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

// exceptions POLICY WORKERS
int main(int argc, char **argv) {
    CHECK(argc == 3);
    alarm(120);
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
