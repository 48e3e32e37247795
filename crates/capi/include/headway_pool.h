/* A pool in process for C and C++: submit a function, wait for its end. See docs/pool.md.
 *
 * Generated from crates/capi/src; `make header` writes it anew. */

#ifndef HEADWAY_POOL_H
#define HEADWAY_POOL_H

#include <stddef.h>
#include <stdint.h>
#include "headway.h"

// In place of a class's number: the job's class is learnt from its key. Keys with similar service times share a class (headway_pool_options.learn_classes).
#define HEADWAY_CLASS_LEARNT UINT32_MAX

// The most classes that a pool may have.
#define HEADWAY_POOL_MAX_CLASSES 15

// A job whose end somebody will ask for.
struct headway_job;

// A pool whose threads run.
struct headway_pool;

// A class of a pool's jobs. 0 is each field's default, but the name's.
struct headway_pool_class {
    // Its name in reports.
    const char *name;
    // Its mean service time as far as known, ns; means are learnt.
    uint64_t mean_ns;
    // Its share of all jobs as far as known, 0 to 1.
    double share;
    // How long a job may take from its submission to its end, ns: one that would miss it by waiting is refused. 0 for no limit.
    uint64_t slo_ns;
    // A job that did not begin within this time of its submission is shed, ns. 0 for no limit.
    uint64_t begin_within_ns;
    // At most so many of its jobs wait; 0 for no limit but the pool's.
    size_t queue_limit;
    // Its jobs run on at most so many workers; 0 for no limit.
    uint32_t workers_at_most;
    // Not 0: its jobs run to their end, where others are interrupted.
    uint32_t uninterrupted;
};

// A pool's options. Begin with `struct headway_pool_options options = {.size = sizeof options};`: 0 is each field's default.
struct headway_pool_options {
    // sizeof(struct headway_pool_options).
    size_t size;
    // The policy, as in "srpt"; null for the one that docs/pool.md names.
    const char *policy;
    // The beginning of the threads' names; null for "pool".
    const char *name;
    // The classes, in the order of their numbers; null for one, number 0.
    const struct headway_pool_class *classes;
    // The number of classes, at most HEADWAY_POOL_MAX_CLASSES.
    size_t class_count;
    // The number of jobs that run at a time; 0 for one a processor that the process may use.
    uint32_t workers;
    // The nice value of the threads, 0 to 19.
    uint32_t nice;
    // The most jobs that wait, of all classes; 0 for 16384.
    size_t capacity;
    // The most jobs beside the workers, which left theirs to block; 0 for 64.
    size_t blocking_threads;
    // The stack of a job that can be interrupted; 0 for 2 MiB. Only touched pages take memory.
    size_t stack_bytes;
    // Not 0: long jobs have checkpoints, so where no policy is named the pool takes one that interrupts.
    uint32_t checkpoints;
    // Who is the dispatcher: HEADWAY_LAYOUT_DEDICATED gives it a thread of its own; else the threads that submit and the workers take turns.
    uint32_t layout;
    // The number of classes that are learnt from the keys of jobs (HEADWAY_CLASS_LEARNT), beside the declared ones.
    uint32_t learn_classes;
    // The number of `cores`, at most 8192; 0 leaves the threads to the kernel.
    uint32_t core_count;
    // The cores to which the threads are pinned, the first to the first and so on, and round again; null for none.
    const uint32_t *cores;
    // Past its slice's end a job that goes on for longer without a probe counts as a stall, ns; 0 for 50 µs.
    uint64_t stall_after_ns;
    // Where a thread of its own answers `headway ctl` and `headway top` while the pool runs (docs/ctl.md): the path of a socket, or "auto" for the path where they look; null for nowhere.
    const char *control;
    // Where threads of their own answer Prometheus and browsers, as in "127.0.0.1:9100"; port 0 lets the system choose. Null for nowhere. See headway_pool_metrics() too.
    const char *metrics;
    // HEADWAY_FIBERS_PLAIN: jobs, and all that they call, keep nothing of their thread over a probe, and are switched faster. One that is interrupted goes on in its
    // thread: policies under which it goes on at any worker are refused. It shares its thread-local variables and its locks with the jobs that run meanwhile.
    uint64_t fibers;
    // The most jobs that can be interrupted which have begun and not ended; 0 for 64 a worker. The others wait in their classes' queues. Nothing to plain fibers.
    size_t begun_at_most;
    // Called by the workers between slices, and all the time while they have no job, in place of sleep: the program takes its events in and submits what came. It returns
    // at once; several workers call it at once; it calls from the start until headway_pool_stop() has returned. Null: workers without a job sleep.
    void (*poll)(void*);
    // What `poll` is called with.
    void *poll_data;
};

// A pool's counts. Begin with `struct headway_pool_stats stats = {.size = sizeof stats};`.
struct headway_pool_stats {
    // sizeof(struct headway_pool_stats).
    size_t size;
    // Jobs accepted, of all classes. The next seven are sums over the classes too.
    uint64_t submitted;
    // Jobs that ran to their end.
    uint64_t done;
    // Jobs that were cancelled before they began.
    uint64_t cancelled;
    // Jobs shed after they were accepted.
    uint64_t shed;
    // Jobs that waited when the pool ended.
    uint64_t abandoned;
    // Jobs not accepted, in no other count.
    uint64_t refused;
    // Jobs that wait for a worker.
    uint64_t waiting;
    // Jobs that run, or were interrupted.
    uint64_t running;
    // The pool's threads, those that block included.
    uint64_t threads;
    // Slices that ended with the job interrupted.
    uint64_t interruptions;
    // Interrupted jobs that went on in threads of their own, since a worker waited for one of them.
    uint64_t rescued;
    // Jobs that ran to their end since no fiber was to be had for them: at a limit of threads.
    uint64_t without_fiber;
};

// Times of a class's jobs, ns, rounded up by one part in 16 at most; 0 before the first.
struct headway_pool_times {
    // How many.
    uint64_t count;
    // Their sum.
    uint64_t sum_ns;
    // Half of them take at most this.
    uint64_t p50_ns;
    // 99 of 100 take at most this.
    uint64_t p99_ns;
    // 999 of 1000 take at most this.
    uint64_t p999_ns;
    // The longest.
    uint64_t max_ns;
};

// The jobs of one class. At any moment `submitted` is the sum of `done`, `cancelled`, `shed`, `abandoned`, `waiting` and `running`. Begin with
// `struct headway_pool_class_stats stats = {.size = sizeof stats};`.
struct headway_pool_class_stats {
    // sizeof(struct headway_pool_class_stats).
    size_t size;
    // Jobs accepted.
    uint64_t submitted;
    // Jobs that ran to their end.
    uint64_t done;
    // Jobs that were cancelled before they began.
    uint64_t cancelled;
    // Jobs shed after they were accepted: they made room for a shorter class, or did not begin in time.
    uint64_t shed;
    // Jobs that waited when the pool ended.
    uint64_t abandoned;
    // Jobs not accepted, in no other count.
    uint64_t refused;
    // Jobs that wait for a worker.
    uint64_t waiting;
    // Jobs that run, or were interrupted.
    uint64_t running;
    // The mean service time learnt, ns.
    uint64_t mean_ns;
    // Those of `shed` that did not begin in time; the others made room.
    uint64_t shed_too_late;
    // Slices begun.
    uint64_t slices;
    // Times a job was to make way.
    uint64_t interruptions_asked;
    // Times a job made way.
    uint64_t interruptions;
    // Slices that ran on past their end and met no probe for longer than headway_pool_options.stall_after_ns.
    uint64_t stalls;
    // The longest of them past its slice's end, ns.
    uint64_t longest_gap_ns;
    // Times from submission to the first slice. Read some microseconds after the counts.
    struct headway_pool_times wait;
    // Service times.
    struct headway_pool_times service;
};

// A job to be submitted. Begin with `struct headway_job_options job = {.size = sizeof job};`.
struct headway_job_options {
    // sizeof(struct headway_job_options).
    size_t size;
    // Runs in a thread of the pool. It is interrupted at its probes where the policy interrupts: those of headway-cc, and headway_checkpoint(). No C++ exception may leave it.
    // It ends by returning: pthread_exit() in it aborts the process.
    void (*function)(void *data);
    // Handed to both functions. In use until the job has ended.
    void *data;
    // Called once for each job that was accepted, at its end; may be null. `code` is HEADWAY_OK once the function has returned. Else that was not called: HEADWAY_E_SHED,
    // HEADWAY_E_CANCELLED or HEADWAY_E_ABANDONED, and headway_last_error() has the words. By whichever thread ends the job: one of the pool's, one that
    // submits, cancels or stops. headway_job_wait() returns after it, and so does headway_pool_wait_idle() for jobs that ran. It is brief, and no C++ exception may leave it.
    void (*ended)(void *data, int code);
    // The number of its class, or HEADWAY_CLASS_LEARNT.
    uint32_t class_index;
    // 0.
    uint32_t reserved;
    // What its class is learnt from, where it is: a number for its endpoint, its statement's digest.
    uint64_t key;
};

// Why a job was refused for overload. Begin with `struct headway_overload overload = {.size = sizeof overload};`.
struct headway_overload {
    // sizeof(struct headway_overload).
    size_t size;
    // Jobs of the class that wait.
    uint64_t queued;
    // When those are worked off, by the means learnt, ns.
    uint64_t retry_after_ns;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Starts a pool. Writes its handle to `*pool`, for headway_pool_stop() to take. `options` may be null.
//
// # Safety
// `options` is null or has as many bytes as its size says; its strings end with a NUL, and there are as many classes as it says. `pool` can be written.
// Where `fibers` is HEADWAY_FIBERS_PLAIN, the pool's jobs keep what it promises.
int headway_pool_start(const struct headway_pool_options *options,
                       struct headway_pool **pool);

// Waits until every accepted job has ended, those submitted meanwhile included.
//
// # Safety
// `pool` is null, or came from headway_pool_start() and was not stopped.
int headway_pool_wait_idle(const struct headway_pool *pool);

// The pool's counts, all read at one moment.
//
// # Safety
// As headway_pool_wait_idle(); `stats` is null or has as many bytes as its size says.
int headway_pool_read_stats(const struct headway_pool *pool, struct headway_pool_stats *stats);

// The counts of one class, all read at one moment, and how its jobs ran. After the declared classes come the learnt ones, then that of keys which are not known yet.
//
// # Safety
// As headway_pool_read_stats().
int headway_pool_read_class_stats(const struct headway_pool *pool,
                                  uint32_t class_index,
                                  struct headway_pool_class_stats *stats);

// Writes the pool's metrics in the text format of OpenMetrics, with a NUL at the end, for a program that answers Prometheus itself; docs/ctl.md names them. `*length` gets the length of the
// text without the NUL, whether it fits or not: HEADWAY_E_TOO_LARGE where `room` bytes are too few, and nothing is written. `text` may be null where `room` is 0.
//
// # Safety
// As headway_pool_wait_idle(); `room` bytes at `text` can be written, and so can `length`, which may be null.
int headway_pool_metrics(const struct headway_pool *pool,
                         char *text,
                         size_t room,
                         size_t *length);

// The port at which the pool answers Prometheus and browsers; 0 where it does not (headway_pool_options.metrics). `pool` may be null.
//
// # Safety
// As headway_pool_wait_idle().
uint16_t headway_pool_metrics_port(const struct headway_pool *pool);

// Ends the pool and takes its handle, whatever the return value. It accepts no job any more but those that its own jobs submit, and waits for all to end, `deadline_ns` at
// most. Then what waits is abandoned (HEADWAY_E_ABANDONED), and what runs sees headway_pool_cancelled() and goes on to its end on its thread (HEADWAY_E_STUCK):
// its data stays in use until its `ended` is called, and so does the handle, whose few bytes are not freed then. What such a job submits is HEADWAY_E_SHUT_DOWN. By a job
// of the pool, so by an exit() in one, nothing is waited for: it would be for itself, and the result is HEADWAY_E_STUCK. Unless
// `stats` is null it gets the last counts. Jobs' handles are to be freed all the same.
//
// # Safety
// As headway_pool_read_stats(), and the handle is used afterwards by jobs only that run still.
int headway_pool_stop(struct headway_pool *pool,
                      uint64_t deadline_ns,
                      struct headway_pool_stats *stats);

// Submits `function(data)` as a job of class `class_index`; it is interrupted at its probes where the policy interrupts. Writes its handle to `*job`, for headway_job_wait(),
// headway_job_cancel() or headway_job_detach() to take; if `job` is null nobody waits for it. A full queue is HEADWAY_E_OVERLOADED, at once.
//
// # Safety
// `pool` is null, or came from headway_pool_start() and was not stopped. `function` may be called with `data` from any thread until the job has ended. `job` is null
// or can be written.
int headway_pool_submit(const struct headway_pool *pool,
                        uint32_t class_index,
                        void (*function)(void *data),
                        void *data,
                        struct headway_job **job);

// As headway_pool_submit(), with all that can be said of a job. If the class is overloaded (HEADWAY_E_OVERLOADED), `*overload` gets how many wait and when to try again, unless it is null.
// Of a job that is not accepted no function is called.
//
// # Safety
// As headway_pool_submit(); `options` is null or has as many bytes as its size says, and so has `overload`.
int headway_pool_try_submit(const struct headway_pool *pool,
                            const struct headway_job_options *options,
                            struct headway_job **job,
                            struct headway_overload *overload);

// Submits `function(data)` and waits until it has returned. For threads outside of the pool; HEADWAY_E_INSIDE for its jobs.
//
// # Safety
// As headway_pool_submit().
int headway_pool_run(const struct headway_pool *pool,
                     uint32_t class_index,
                     void (*function)(void *data),
                     void *data);

// Waits until the job has ended, and frees its handle. HEADWAY_OK if its function has returned, else HEADWAY_E_SHED or HEADWAY_E_ABANDONED. A job of the same pool that calls it runs the other
// one itself if that still waits.
//
// # Safety
// `job` is null, or came from headway_pool_submit() or headway_pool_try_submit(), and is not used afterwards.
int headway_job_wait(struct headway_job *job);

// Cancels the job and frees its handle. One that waits has ended when this returns; one that runs sees headway_pool_cancelled() and goes on.
//
// # Safety
// As headway_job_wait().
int headway_job_cancel(struct headway_job *job);

// Lets the job go on without anybody who waits for it, and frees its handle.
//
// # Safety
// As headway_job_wait().
int headway_job_detach(struct headway_job *job);

// Not 0 if the calling job was cancelled, or its pool has ended: a long job asks now and then, and returns early. 0 outside of jobs.
int headway_pool_cancelled(void);

// Calls `function(data)`, which blocks (a file, a lock, another service), without keeping the job's worker: another thread takes the worker's place meanwhile. Outside of jobs
// it calls the function only. No C++ exception may leave it.
//
// # Safety
// `function` may be called with `data`.
void headway_pool_blocking(void (*function)(void *data),
                           void *data);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HEADWAY_POOL_H */
