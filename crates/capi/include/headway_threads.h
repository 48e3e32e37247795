/* Threads in user space for C and C++. See docs/threads.md.
 *
 * Generated from crates/capi/src; `make header` writes it anew. */

#ifndef HEADWAY_THREADS_H
#define HEADWAY_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "headway.h"

// headway_tcp_wait(): the stream has data, or has ended.
#define HEADWAY_READABLE 1

// headway_tcp_wait(): the stream has room for data, or has ended.
#define HEADWAY_WRITABLE 2

// A bounded queue of pointers between threads.
struct headway_channel;

// A port at which connections are accepted.
struct headway_listener;

// A pointer that is read often and replaced seldom. Reads write to no cache line that other kernel threads read.
struct headway_read_cell;

// Kernel threads that run threads of the program.
struct headway_runtime;

// A connection. Any thread may use it.
struct headway_stream;

// A thread that has not been joined or detached yet.
struct headway_thread;

// A variable with one value per thread of a runtime, null at first. The program declares it static, since its address identifies it.
struct headway_local {
    // Called with a thread's value when the thread ends, unless the value is null; may be null.
    void (*end)(void *value);
};

// A stream, and what is awaited of it.
struct headway_awaited {
    // The stream.
    const struct headway_stream *stream;
    // HEADWAY_READABLE, HEADWAY_WRITABLE, or both.
    uint32_t events;
    // Which of them hold; written by headway_tcp_wait().
    uint32_t ready;
};

// A runtime's options. 0 is every field's default.
struct headway_runtime_options {
    // sizeof(struct headway_runtime_options).
    size_t size;
    // Kernel threads, at most 256, each of which has a run queue and steals from the others; 1 by default. With more than one, a thread may resume on another
    // kernel thread after a function of this interface and after a probe (docs/threads.md, "C and C++").
    size_t kthreads;
    // Usable bytes of each thread's stack; 64 KiB by default.
    size_t stack_bytes;
    // The slice after which a probe interrupts a computing thread while others wait; 10 us by default.
    uint64_t slice_ns;
    // The name under which the program registers with a host's daemon, which grants its kernel threads their cores (docs/host-daemon.md); null for none.
    // Then `kthreads` is the most cores that it uses at once, and SIGUSR1 is the daemon's.
    const char *application;
    // The daemon's socket; null for /run/headway/host.sock.
    const char *host_socket;
    // Not 0: the program has probes in all its loops (headway-cc), and leaves a core that is taken at the next one. Otherwise the daemon sends SIGUSR1,
    // whose handler stops the kernel thread where it is until it has a core again.
    size_t probes;
    // Not 0: the program has the packets of the daemon's device, and TCP over them; the most bytes of each of a socket's two buffers. It needs an
    // `application`.
    size_t network_buffer_bytes;
};

// A lock. Threads of a runtime that wait for it let others run; threads of the operating system may use it too.
struct headway_mutex {
    uint64_t words[6];
};

// A condition variable for threads of a runtime.
struct headway_condvar {
    uint64_t words[4];
};

// A counting semaphore.
struct headway_semaphore {
    uint64_t words[11];
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a channel with room for this many values, at least one, and writes its handle to `*channel`. `end` is called with each value that is still there when
// the channel is freed; it may be null.
//
// # Safety
// `channel` can be written. No exception leaves `end`.
int headway_channel_create(size_t room,
                           void (*end)(void *value),
                           struct headway_channel **channel);

// Sends a value, and waits for room. HEADWAY_E_NONE if the channel is closed: the value stays the caller's. Called by a thread of a runtime.
//
// # Safety
// `channel` came from headway_channel_create() and was not freed.
int headway_channel_send(const struct headway_channel *channel,
                         void *value);

// Takes the oldest value, and waits for one. HEADWAY_E_NONE if the channel is empty and closed. Called by a thread of a runtime.
//
// # Safety
// As headway_channel_send(); `value` can be written.
int headway_channel_receive(const struct headway_channel *channel,
                            void **value);

// Closes the channel: no value can be sent from now on, and values in it can still be received. Any thread may call this, also repeatedly.
//
// # Safety
// As headway_channel_send().
int headway_channel_close(const struct headway_channel *channel);

// Frees an unused channel, and calls `end` for the values left in it.
//
// # Safety
// `channel` is null, or as for headway_channel_send() and not used afterwards.
void headway_channel_free(struct headway_channel *channel);

// Makes a cell with this value, and writes its handle to `*cell`.
//
// # Safety
// `cell` can be written.
int headway_read_cell_create(void *value, struct headway_read_cell **cell);

// Calls `body(value, argument)` with the cell's value, which stays valid until `body` returns. `body` must be short and call no function of this
// interface. Any thread may read.
//
// # Safety
// `cell` came from headway_read_cell_create() and was not freed. No exception leaves `body`.
int headway_read_cell_read(const struct headway_read_cell *cell,
                           void (*body)(void *value, void *argument),
                           void *argument);

// Replaces the value, waits until every read of the old one has ended, and writes the old one to `*old`. Any thread may replace, but not within a read.
//
// # Safety
// As headway_read_cell_read(); `old` can be written.
int headway_read_cell_replace(const struct headway_read_cell *cell,
                              void *value,
                              void **old);

// Frees an unused cell. Its value stays the program's.
//
// # Safety
// `cell` is null, or as for headway_read_cell_read() and not used afterwards.
void headway_read_cell_free(struct headway_read_cell *cell);

// The calling thread's value of the variable; null if it set none, or the caller is no thread of a runtime.
void *headway_local_get(const struct headway_local *local);

// Sets the calling thread's value of the variable. `end` is not called for the previous value. Called by a thread of a runtime.
//
// # Safety
// `local` stays readable while threads that set it run.
int headway_local_set(const struct headway_local *local,
                      void *value);

// Listens at a TCP port; 0 is one that the stack chooses. Up to `backlog` connections wait to be accepted. Writes the handle to `*listener`, for
// headway_tcp_close_listener() to take.
//
// # Safety
// `runtime` came from headway_runtime_start() and outlives the listener; `listener` can be written.
int headway_tcp_listen(const struct headway_runtime *runtime,
                       uint16_t port,
                       size_t backlog,
                       struct headway_listener **listener);

// Waits for a connection, at most for `timeout_ns` (UINT64_MAX: without end), and writes its handle to `*stream`, for headway_tcp_close() to take.
// HEADWAY_E_TIMEOUT: none came.
//
// # Safety
// `listener` came from headway_tcp_listen() and is open; `stream` can be written.
int headway_tcp_accept(const struct headway_listener *listener,
                       uint64_t timeout_ns,
                       struct headway_stream **stream);

// Connects to an IPv4 or IPv6 address, within `timeout_ns`, and writes the handle to `*stream`, for headway_tcp_close() to take.
//
// # Safety
// `runtime` came from headway_runtime_start() and outlives the stream; `address` ends with a NUL; `stream` can be written.
int headway_tcp_connect(const struct headway_runtime *runtime,
                        const char *address,
                        uint16_t port,
                        uint64_t timeout_ns,
                        struct headway_stream **stream);

// Reads the available bytes, waiting for at least one, and writes their number to `*bytes`: 0 after the peer's end.
//
// # Safety
// `stream` is an open stream; `to` has `room` writable bytes; `bytes` can be written.
int headway_tcp_receive(const struct headway_stream *stream, void *to, size_t room, size_t *bytes);

// Writes all bytes into the stream's buffer, waiting for room. They reach the peer later.
//
// # Safety
// `stream` is an open stream; `from` has `bytes` readable bytes.
int headway_tcp_send(const struct headway_stream *stream, const void *from, size_t bytes);

// Waits until an awaited event of one of `count` streams holds, at most for `timeout_ns` (UINT64_MAX: without end; 0: not at all), and writes
// which hold. HEADWAY_E_TIMEOUT: none.
//
// # Safety
// `awaited` has `count` elements, whose streams are open.
int headway_tcp_wait(const struct headway_runtime *runtime,
                     struct headway_awaited *awaited,
                     size_t count,
                     uint64_t timeout_ns);

// Ends writing: the peer sees the end after all that was sent.
//
// # Safety
// `stream` is an open stream.
int headway_tcp_shutdown(const struct headway_stream *stream);

// Closes a stream and frees its handle. What was sent still reaches the peer.
//
// # Safety
// `stream` is null or an open stream, and is not used afterwards.
int headway_tcp_close(struct headway_stream *stream);

// Closes a listener and frees its handle. Connections that nobody accepted are closed.
//
// # Safety
// `listener` is null or open, and is not used afterwards.
int headway_tcp_close_listener(struct headway_listener *listener);

// Waits until the peers of closed streams have all that was sent, at most for `timeout_ns`. Call it before the program ends. HEADWAY_E_TIMEOUT: they
// have not, or never will: a reset or a timeout ended a closed stream early since the last call.
//
// # Safety
// `runtime` came from headway_runtime_start().
int headway_tcp_flush(const struct headway_runtime *runtime,
                      uint64_t timeout_ns);

// Starts a runtime. Writes its handle to `*runtime`, for headway_runtime_stop() to take. `options` may be null.
//
// # Safety
// `options` is null or has as many bytes as its size says, and its strings end with a NUL; `runtime` can be written. With more than one kernel thread, the
// program's threads keep to docs/threads.md, "C and C++".
int headway_runtime_start(const struct headway_runtime_options *options,
                          struct headway_runtime **runtime);

// Runs `body(argument)` in a thread of the runtime, and returns when the thread has ended. Threads that it spawned may still run.
//
// # Safety
// `runtime` came from headway_runtime_start() and was not stopped. No exception leaves `body`.
int headway_runtime_run(const struct headway_runtime *runtime,
                        void (*body)(void *argument),
                        void *argument);

// Ends a runtime and frees its handle. Threads that have not ended never resume, and joining one returns HEADWAY_E_NONE. HEADWAY_E_INSIDE: the caller is a
// thread of the runtime; nothing has ended, and the handle stays valid.
//
// # Safety
// `runtime` is null or came from headway_runtime_start(), and is not used after HEADWAY_OK.
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

// Waits until the thread has ended, and frees its handle. Its function's return value goes to `*result`, unless `result` is null. Any thread may
// wait, also one of the operating system. HEADWAY_E_NONE: its runtime was stopped before.
//
// # Safety
// `thread` came from headway_spawn(), and is not used afterwards; `result` is null or can be written.
int headway_join(struct headway_thread *thread,
                 void **result);

// Frees a thread's handle; the thread continues by itself.
//
// # Safety
// `thread` came from headway_spawn(), and is not used afterwards.
int headway_detach(struct headway_thread *thread);

// Lets the other threads that are ready run first.
void headway_thread_yield(void);

// Suspends the thread for at least `ns`.
void headway_thread_sleep(uint64_t ns);

// Makes a free lock. It must not be moved.
//
// # Safety
// `mutex` can be written, and no thread uses it yet.
void headway_mutex_init(struct headway_mutex *mutex);

// Takes the lock, and waits for it without limit. A holder that takes it again waits for ever.
//
// # Safety
// headway_mutex_init() was called.
void headway_mutex_lock(struct headway_mutex *mutex);

// Takes the lock if it is free; returns whether it was.
//
// # Safety
// As headway_mutex_lock().
bool headway_mutex_try_lock(struct headway_mutex *mutex);

// Releases the lock.
//
// # Safety
// The calling thread holds it.
void headway_mutex_unlock(struct headway_mutex *mutex);

// Makes a condition variable without waiters. It must not be moved.
//
// # Safety
// `condvar` can be written, and no thread uses it yet.
void headway_condvar_init(struct headway_condvar *condvar);

// Releases the lock, waits for a notification, and takes the lock again. Check the condition again afterwards. Called by a thread of a runtime.
//
// # Safety
// headway_condvar_init() was called, and the calling thread holds the lock.
int headway_condvar_wait(struct headway_condvar *condvar,
                         struct headway_mutex *mutex);

// As headway_condvar_wait(), for `ns` at most. Writes whether the wait timed out to `*timed_out`, unless that is null.
//
// # Safety
// As headway_condvar_wait(); `timed_out` is null or can be written.
int headway_condvar_wait_for(struct headway_condvar *condvar,
                             struct headway_mutex *mutex,
                             uint64_t ns,
                             bool *timed_out);

// Wakes the thread that has waited longest. Any thread may notify.
//
// # Safety
// headway_condvar_init() was called.
void headway_condvar_notify_one(struct headway_condvar *condvar);

// Wakes every thread that waits.
//
// # Safety
// As headway_condvar_notify_one().
void headway_condvar_notify_all(struct headway_condvar *condvar);

// Makes a semaphore with this many permits. It must not be moved.
//
// # Safety
// `semaphore` can be written, and no thread uses it yet.
void headway_semaphore_init(struct headway_semaphore *semaphore, size_t permits);

// Takes a permit, and waits until there is one. Called by a thread of a runtime.
//
// # Safety
// headway_semaphore_init() was called.
int headway_semaphore_acquire(struct headway_semaphore *semaphore);

// Takes a permit if there is one; returns whether there was.
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
