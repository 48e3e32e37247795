// Computations that move between threads at every probe; they use thread-local state on the way.
#ifndef HEADWAY_TEST_MIGRATE_H
#define HEADWAY_TEST_MIGRATE_H

#include <stdint.h>

struct computation {
    const char *name;
    // Returns how often thread-local state was found to be another thread's.
    uint64_t (*run)(uint64_t n);
};

extern const struct computation computations[];
extern const int computation_count;

// Every thread counts here what it does; in another file, so that its address is known to the linker only.
extern _Thread_local uint64_t work_done;

extern _Thread_local uint64_t shared_table[4];

#endif
