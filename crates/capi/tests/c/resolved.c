/* A server whose handler calls a function that was chosen as the program started.
 *   resolved POLICY */
#include <headway.h>
#include <unistd.h>
#include "client.h"

enum { REQUESTS = 200, IN_FLIGHT = 8, STEPS = 20000 };

unsigned long chosen(unsigned long steps);

static unsigned long wrong;

static unsigned long counted(unsigned long steps) {
    unsigned long sum = 1;
    for (unsigned long step = 0; step < steps; step++) {
        sum = sum * 6364136223846793005u + step;
        headway_checkpoint();
    }
    return sum;
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    if (chosen(STEPS) != counted(STEPS)) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    headway_reply(request, "done", 4);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    alarm(100);
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request};
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(serve_itself(argv[1], &service, REQUESTS, IN_FLIGHT, &stats) == 0);
    CHECK(wrong == 0);
    printf("preemptions %llu\n", (unsigned long long)stats.preemptions);
    return 0;
}
