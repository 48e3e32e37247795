/* The thread-local words of the contract for a program without the runtime. Weak: the runtime's own win. */
#include "headway_probes.h"

__attribute__((weak, tls_model("initial-exec"))) _Thread_local struct headway_preempt __headway_preempt;
__attribute__((weak, tls_model("initial-exec"))) _Thread_local struct headway_self __headway_self = {
    .deadline = HEADWAY_NO_DEADLINE,
};

_Static_assert(sizeof(struct headway_preempt) == 64, "one cache line");
_Static_assert(sizeof(struct headway_self) == 64, "one cache line");
