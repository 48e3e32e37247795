/* What a program shares with its probes: docs/probes.md, "The contract between probes and the runtime".
 * Nothing here is needed to be preempted; it is for programs that want to be left alone for a while. */
#ifndef HEADWAY_PROBES_H
#define HEADWAY_PROBES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No probes in this function: `HEADWAY_NO_PROBES void f(void)`. Calls from instrumented code count as leaving it.
 * clang takes it on no function with `target_clones`: put the loop into a function of its own. */
#if defined(__clang__)
#define HEADWAY_NO_PROBES __attribute__((annotate("headway_no_probes"), noinline))
#else
#define HEADWAY_NO_PROBES
#endif

#ifdef __cplusplus
#define HEADWAY_ALIGNED alignas(64)
#else
#define HEADWAY_ALIGNED _Alignas(64)
#endif

/* The word that others write. 0: go on. Otherwise yield: the epoch of the assignment that is to yield, or
 * HEADWAY_SELF_TIMED: the slow path looks at the clock. */
struct headway_preempt {
    HEADWAY_ALIGNED uint64_t asked;
};

#define HEADWAY_SELF_TIMED UINT64_MAX
#define HEADWAY_NO_DEADLINE UINT64_MAX

/* Written by its own thread only. */
struct headway_self {
    HEADWAY_ALIGNED uint64_t deadline; /* time-stamp counter; HEADWAY_NO_DEADLINE = never */
    uint32_t no_preempt;            /* nesting of sections that must not yield */
    uint32_t deferred;              /* a preemption was asked for meanwhile */
    int64_t countdown;              /* weighted instructions until a TSC probe looks at the clock */
    void *fiber;                    /* the running fiber; null = none */
    uint64_t epoch;                 /* of the current assignment */
};

#ifndef __cplusplus
extern _Thread_local struct headway_preempt __headway_preempt __attribute__((tls_model("initial-exec")));
extern _Thread_local struct headway_self __headway_self __attribute__((tls_model("initial-exec")));
#endif

/* Called by probes of the pass only. They preserve what LLVM's preserve_all does: every register but r11, the flags, and of vector registers
 * what is beyond ymm0 to ymm15. */
void __headway_preempted(void);
void __headway_tick(void);
/* As the first, for a probe placed by hand: preserves what any function does. */
void __headway_checkpoint(void);

#ifdef __cplusplus
}
#endif

#endif
