// Compiled with -mgeneral-regs-only: what runs inside a probe may not touch vector registers, which
// the stub therefore need not save. Nothing here calls anything.
#include "recorder.h"

#include "clock.h"

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self = {.deadline = HEADWAY_NO_DEADLINE};

struct recorder recorder = {.budgets = 1};
struct slice_line recorder_slice;

static void note_gap(struct slice_log *log, const void *probe, uint64_t ticks) {
    log->gaps++;
    for (int i = 0; i < RECORDER_GAP_PLACES; i++) {
        struct gap_place *place = &log->places[i];
        if (place->probe != probe && place->probe != NULL) continue;
        place->probe = probe;
        place->gaps++;
        if (ticks > place->longest_ticks) place->longest_ticks = ticks;
        return;
    }
}

static void end_slice(const void *probe, uint64_t now) {
    uint64_t ticks = now - recorder.begin;
    struct slice_log *log = recorder.log;
    if (recorder.skip) {
        recorder.skip = false;
    } else if (log->count < log->capacity) {
        log->ticks[log->count++] = ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
        if (ticks > recorder.gap_ticks) note_gap(log, probe, ticks);
    }
}

static void count_probe(const void *probe) {
    size_t at = (uintptr_t)probe * 2654435761u % RECORDER_PROBES;
    for (int tries = 0; tries < 16; tries++, at = (at + 1) % RECORDER_PROBES) {
        struct probe_count *count = &recorder.probes[at];
        if (count->probe != probe && count->probe != NULL) continue;
        count->probe = probe;
        count->taken++;
        return;
    }
}

static void end_stretch(const void *probe, uint64_t now) {
    uint64_t ticks = now - recorder.begin;
    size_t index = recorder.index++;
    if (index < recorder.capacity && ticks < recorder.shortest[index])
        recorder.shortest[index] = (uint32_t)ticks;
    if (index == recorder.wanted) {
        recorder.from = recorder.previous;
        recorder.to = probe;
    }
    recorder.previous = probe;
    if (recorder.capacity == 0) count_probe(probe); // in the first repetition only
}

size_t recorder_finish_stretches(void) {
    end_stretch(NULL, clock_ticks());
    return recorder.index;
}

// Called by the stubs with the address that the probe's call returns to.
void recorder_preempted(const void *probe) {
    switch (recorder.mode) {
    case RECORDER_OFF:
        put_flag_down();
        break;
    case RECORDER_SLICES:
        end_slice(probe, clock_ticks());
        // The flag is down before the new slice is seen to have begun (x86 keeps stores in order).
        put_flag_down();
        recorder.begin = clock_ticks();
        if (recorder.resting != 0) __headway_self.deadline = recorder.begin + recorder.quantum_ticks;
        atomic_store_explicit(&recorder_slice.begin, recorder.begin, memory_order_release);
        break;
    case RECORDER_STRETCHES:
        end_stretch(probe, clock_ticks());
        recorder.begin = clock_ticks();
        break;
    }
}

// As the runtime's: countdowns become longer while they end in less than half of the time that they should take.
static int64_t next_countdown(uint64_t now) {
    uint64_t ticks = now - recorder.looked;
    recorder.looked = now;
    if (ticks < RECORDER_LOOK_TICKS / 2 && recorder.budgets < RECORDER_MOST_BUDGETS)
        recorder.budgets *= 2;
    else if (ticks >= RECORDER_LOOK_TICKS && recorder.budgets > 1)
        recorder.budgets /= 2;
    return recorder.tick_budget * recorder.budgets;
}

void recorder_ticked(const void *probe) {
    uint64_t now = clock_ticks();
    __headway_self.countdown = next_countdown(now);
    if (recorder.mode == RECORDER_STRETCHES) {
        end_stretch(probe, now);
        recorder.begin = clock_ticks();
    } else if (now >= __headway_self.deadline) {
        end_slice(probe, now);
        recorder.begin = clock_ticks();
        __headway_self.deadline = recorder.begin + recorder.quantum_ticks;
        __headway_self.countdown = recorder.tick_budget;
        recorder.budgets = 1;
    }
}
