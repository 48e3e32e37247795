/* What is initialised once. Who comes second waits until it is done, for ever if the first one was interrupted on the same thread: so
 * an initialisation is not interrupted. A request to yield that came meanwhile is for the next probe, as at the end of a lock. */
#include <pthread.h>

#include "real.h"
#include "self.h"

#ifndef __EXCEPTIONS
#error "compile the shim with -fexceptions: C++ throws through pthread_once"
#endif

/* Ends the section also where the initialisation throws. */
static void end_section(const int *section) {
    (void)section;
    headway_no_preempt_end_quietly(HEADWAY_OTHER);
}

int pthread_once(pthread_once_t *once, void (*initialise)(void)) {
    if (headway_fiber() == NULL) return REAL(pthread_once)(once, initialise);
    headway_no_preempt_begin();
    __attribute__((cleanup(end_section))) int section = 0;
    return REAL(pthread_once)(once, initialise);
}

/* Those of C++'s static variables within functions: Itanium C++ ABI, 3.3.3. Acquire returns 1 to who is to initialise it. */
int __cxa_guard_acquire(int64_t *guard);
void __cxa_guard_release(int64_t *guard);
void __cxa_guard_abort(int64_t *guard);

static void end(void) {
    if (headway_fiber() != NULL && headway_sections() > 0) headway_no_preempt_end_quietly(HEADWAY_OTHER);
}

int __cxa_guard_acquire(int64_t *guard) {
    if (headway_fiber() == NULL) return REAL(__cxa_guard_acquire)(guard);
    headway_no_preempt_begin();
    int mine = REAL(__cxa_guard_acquire)(guard);
    if (!mine) headway_no_preempt_end_quietly(HEADWAY_OTHER);
    return mine;
}

void __cxa_guard_release(int64_t *guard) {
    REAL(__cxa_guard_release)(guard);
    end();
}

void __cxa_guard_abort(int64_t *guard) {
    REAL(__cxa_guard_abort)(guard);
    end();
}
