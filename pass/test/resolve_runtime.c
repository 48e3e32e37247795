// The tests' runtime as a shared library: the first request is the only one.
#include "headway_probes.h"

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self = {.countdown = INT64_MAX};
static uint64_t taken;

void test_probe_taken(void) {
    taken++;
    __headway_preempt.asked = 0;
    __headway_self.countdown = INT64_MAX;
}

uint64_t probes_taken(void) { return taken; }
