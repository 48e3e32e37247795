// What happens at a probe that is taken: the suite's own `__headway_preempted` and `__headway_tick`.
//
// Neither switches anything. They note when they were called and let the program go on, so what is
// measured is the probes: when they notice, and how far apart they are.
#ifndef HEADWAY_SUITE_RECORDER_H
#define HEADWAY_SUITE_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../runtime/headway_probes.h"

enum recorder_mode {
    RECORDER_OFF,       // nothing is noted: a flag is put down, a countdown begins anew
    RECORDER_SLICES,    // the time from the beginning of a slice to the probe that ended it
    RECORDER_STRETCHES, // the time from every probe to the next one
};

// Slices longer than this count as gaps.
#define RECORDER_GAP_NS 15000

enum { RECORDER_GAP_PLACES = 64 };

struct gap_place {
    const void *probe; // where a gap ended: the address that the probe's call returns to
    uint64_t gaps;
    uint64_t longest_ticks;
};

// Time between two looks at the clock, and how much longer than the shortest a countdown becomes: as in the runtime.
enum { RECORDER_LOOK_TICKS = 512, RECORDER_MOST_BUDGETS = 16 };

enum { RECORDER_PROBES = 4096 };

struct probe_count {
    const void *probe;
    uint64_t taken;
};

struct slice_log {
    uint32_t *ticks; // `capacity` of them, of which `count` are filled
    size_t count, capacity;
    uint64_t gaps;
    struct gap_place places[RECORDER_GAP_PLACES];
};

struct recorder {
    enum recorder_mode mode;
    uint64_t resting; // what the flag is while nobody raised it: 0, or HEADWAY_SELF_TIMED
    uint64_t quantum_ticks, gap_ticks;
    int64_t tick_budget; // the shortest countdown of TSC probes
    int64_t budgets;     // as many of it has the present countdown: a power of two
    uint64_t looked;     // when the last countdown ended
    uint64_t begin;      // when the current slice or stretch began

    // RECORDER_SLICES
    struct slice_log *log;
    bool skip; // the current slice began before what is measured

    // RECORDER_STRETCHES: the probes of a repetition by their order, each with the shortest time
    // from its predecessor that any repetition saw. A disturbance lengthens one repetition's.
    uint32_t *shortest;
    size_t index, capacity;
    size_t wanted; // of this one the two ends are noted
    const void *previous, *from, *to;
    struct probe_count probes[RECORDER_PROBES]; // by a hash of the address; those beyond are left out
};
extern struct recorder recorder;

// When the slice that runs began: written by the kernel's thread, read by the one that raises flags.
struct slice_line {
    _Alignas(64) _Atomic uint64_t begin;
};
extern struct slice_line recorder_slice;

// Whoever raised the flag has been heard.
static inline void put_flag_down(void) {
    __atomic_store_n(&__headway_preempt.asked, recorder.resting, __ATOMIC_RELAXED);
}

// Ends the stretch that is running, as a probe would, and gives the number of stretches.
size_t recorder_finish_stretches(void);

#endif
