/* Threads in user space for C and C++. See docs/threads.md.
 *
 * Generated from crates/capi/src; `make header` writes it anew. */

#ifndef HEADWAY_THREADS_H
#define HEADWAY_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "headway.h"

// Kernel threads that run threads of the program.
struct headway_runtime;

// A thread that was not joined or detached yet.
struct headway_thread;

// How a runtime is made. 0 is every field's default.
struct headway_runtime_options {
    // sizeof(struct headway_runtime_options).
    size_t size;
    // Kernel threads, each of which has a run queue and steals from the others; 1 by default. With more than one, a thread may go on in another kernel
    // thread after a function of this interface and after a probe (docs/threads.md, "C and C++").
    size_t kthreads;
    // Usable bytes of each thread's stack; 64 KiB by default.
    size_t stack_bytes;
    // How long a thread computes while others wait until its next probe interrupts it; 10 us by default.
    uint64_t slice_ns;
};

// A lock. Threads of a runtime that wait for it let others run; threads of the operating system may use it too.
struct headway_mutex {
    uint64_t words[6];
};

// A condition that threads of a runtime wait for.
struct headway_condvar {
    uint64_t words[4];
};

// A number of permits.
struct headway_semaphore {
    uint64_t words[11];
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Starts a runtime. Writes its handle to `*runtime`, for headway_runtime_stop() to take. `options` may be null.
//
// # Safety
// `options` is null or has as many bytes as its size says; `runtime` can be written. With more than one kernel thread, the program's threads keep to
// docs/threads.md, "C and C++".
int headway_runtime_start(const struct headway_runtime_options *options,
                          struct headway_runtime **runtime);

// Runs `body(argument)` in a thread of the runtime, and returns once it has. Threads that it spawned may go on.
//
// # Safety
// `runtime` came from headway_runtime_start() and was not stopped. No exception leaves `body`.
int headway_runtime_run(const struct headway_runtime *runtime, void (*body)(void *argument), void *argument);

// Ends a runtime and frees its handle. Threads that have not ended never go on: whoever joins one gets HEADWAY_E_NONE. The caller is no thread of
// the runtime.
//
// # Safety
// `runtime` is null or came from headway_runtime_start(), and is not used afterwards.
int headway_runtime_stop(struct headway_runtime *runtime);

// Whether the caller is a thread of a runtime.
bool headway_in_thread(void);

// Starts a thread that runs `body(argument)`, at the end of the run queue. Called by a thread of a runtime. Writes its handle to `*thread`, for
// headway_join() or headway_detach() to take; if `thread` is null it is detached.
//
// # Safety
// `thread` is null or can be written. No exception leaves `body`.
int headway_spawn(struct headway_thread **thread,
                  void *(*body)(void *argument),
                  void *argument);

// Waits until the thread has ended, and frees its handle. What its function returned goes to `*result`, unless `result` is null. Any thread may wait,
// also one of the operating system. HEADWAY_E_NONE: its runtime was stopped before.
//
// # Safety
// `thread` came from headway_spawn(), and is not used afterwards; `result` is null or can be written.
int headway_join(struct headway_thread *thread,
                 void **result);

// Frees a thread's handle; the thread goes on by itself.
//
// # Safety
// `thread` came from headway_spawn(), and is not used afterwards.
int headway_detach(struct headway_thread *thread);

// Lets the other threads that are ready run first.
void headway_thread_yield(void);

// Suspends the thread for at least `ns`.
void headway_thread_sleep(uint64_t ns);

// Makes a free lock. It stays where it is.
//
// # Safety
// `mutex` can be written, and nobody uses it yet.
void headway_mutex_init(struct headway_mutex *mutex);

// Takes the lock, and waits for it without limit. A holder that takes it again waits for ever.
//
// # Safety
// headway_mutex_init() was called.
void headway_mutex_lock(struct headway_mutex *mutex);

// Takes the lock if it is free; whether it was.
//
// # Safety
// As headway_mutex_lock().
bool headway_mutex_try_lock(struct headway_mutex *mutex);

// Releases the lock.
//
// # Safety
// The calling thread holds it.
void headway_mutex_unlock(struct headway_mutex *mutex);

// Makes a condition for which nobody waits. It stays where it is.
//
// # Safety
// `condvar` can be written, and nobody uses it yet.
void headway_condvar_init(struct headway_condvar *condvar);

// Releases the lock, waits until somebody notifies, and takes the lock again. Look at the condition again afterwards. Called by a thread of a runtime.
//
// # Safety
// headway_condvar_init() was called, and the calling thread holds the lock.
int headway_condvar_wait(struct headway_condvar *condvar,
                         struct headway_mutex *mutex);

// As headway_condvar_wait(), for `ns` at most. `*timed_out` says whether that time is over, unless it is null.
//
// # Safety
// As headway_condvar_wait(); `timed_out` is null or can be written.
int headway_condvar_wait_for(struct headway_condvar *condvar,
                             struct headway_mutex *mutex,
                             uint64_t ns,
                             bool *timed_out);

// Wakes the thread that has waited longest. Anybody may notify.
//
// # Safety
// headway_condvar_init() was called.
void headway_condvar_notify_one(struct headway_condvar *condvar);

// Wakes every thread that waits.
//
// # Safety
// As headway_condvar_notify_one().
void headway_condvar_notify_all(struct headway_condvar *condvar);

// Makes a semaphore with this many permits. It stays where it is.
//
// # Safety
// `semaphore` can be written, and nobody uses it yet.
void headway_semaphore_init(struct headway_semaphore *semaphore, size_t permits);

// Takes a permit, and waits until there is one. Called by a thread of a runtime.
//
// # Safety
// headway_semaphore_init() was called.
int headway_semaphore_acquire(struct headway_semaphore *semaphore);

// Takes a permit if there is one; whether there was.
//
// # Safety
// As headway_semaphore_acquire().
bool headway_semaphore_try_acquire(struct headway_semaphore *semaphore);

// Gives a permit back, or adds one.
//
// # Safety
// As headway_semaphore_acquire().
void headway_semaphore_release(struct headway_semaphore *semaphore);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HEADWAY_THREADS_H */
