/* The functions that the shim stands before: the next ones in the order in which the dynamic linker looks. */
#ifndef HEADWAY_SHIM_REAL_H
#define HEADWAY_SHIM_REAL_H

#include <stdatomic.h>

/* Found at the first call, by any thread, and kept: every one finds the same. Aborts where there is none. */
void *headway_real(_Atomic(void *) *kept, const char *name);

/* REAL(pthread_mutex_lock)(mutex) */
#define REAL(function)                                                                       \
    ((__typeof__(&function))({                                                               \
        static _Atomic(void *) kept;                                                         \
        void *found = atomic_load_explicit(&kept, memory_order_relaxed);                     \
        __builtin_expect(found != 0, 1) ? found : headway_real(&kept, #function);            \
    }))

#endif
