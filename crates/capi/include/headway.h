/* Headway for C and C++: a server that keeps short requests from waiting behind long ones. See docs/c-api.md.
 *
 * Generated from crates/capi/src; `make header` writes it anew. */

#ifndef HEADWAY_H
#define HEADWAY_H

#include <stddef.h>
#include <stdint.h>
#include "headway_preempt.h"


// Anywhere for handle_request at probes; at the worker that began it for serve, and for signals.
#define HEADWAY_RESUME_DEFAULT 0

// An interrupted request resumes at any worker with time for it, as in the papers, with what a thread has: its thread-local variables, errno, the locks
// that it holds. See docs/c-api.md, "Threads".
#define HEADWAY_RESUME_ANYWHERE 1

// An interrupted request resumes at the worker that began it.
#define HEADWAY_RESUME_OWN_WORKER 2

// A request that may be interrupted has what a thread has.
#define HEADWAY_FIBERS_OF_THREADS 0

// It has a stack alone, which is faster: its code, and all that it calls, keeps nothing of its thread over a probe. See docs/c-api.md, "Threads".
#define HEADWAY_FIBERS_PLAIN 1

// Requests are interrupted at probes: those of the compiler pass, and headway_checkpoint().
#define HEADWAY_PREEMPT_PROBES 0

// The dispatcher interrupts by SIGURG, at any instruction, for code without probes. That costs microseconds at both ends, and needs
// HEADWAY_RESUME_OWN_WORKER; docs/c-api.md, "Interrupting by signal", says which code may be interrupted this way.
#define HEADWAY_PREEMPT_SIGNAL 1

// As HEADWAY_PREEMPT_PROBES, but each probe reads the clock, and looks whether the dispatcher wants the request to yield once its quantum is over. Nothing
// crosses from core to core while a quantum lasts. Not under policies that interrupt for a more urgent request (srpt, on-blocked) with HEADWAY_LAYOUT_DEDICATED.
#define HEADWAY_PREEMPT_CLOCK 2

// Requests are interrupted wherever they can be.
#define HEADWAY_FEEDBACK_OFF 0

// Requests are interrupted only between headway_feedback_start() and headway_feedback_finished(). Requests without these calls count as short and run
// to their end.
#define HEADWAY_FEEDBACK_HEEDED 1

// The dispatcher has a thread of its own if there is a core for it beside the workers', unless workers that take turns carry a quarter more by
// headway_options.layout_costs; and if it interrupts by signals. Else as HEADWAY_LAYOUT_INLINE.
#define HEADWAY_LAYOUT_AUTO 0

// The dispatcher has a thread of its own.
#define HEADWAY_LAYOUT_DEDICATED 1

// The workers take turns as the dispatcher, and each interrupts its own requests. Not with HEADWAY_PREEMPT_SIGNAL where the policy interrupts.
#define HEADWAY_LAYOUT_INLINE 2

// One core per thread if there are enough, else none.
#define HEADWAY_PIN_AUTO 0

// Threads are not bound to cores.
#define HEADWAY_PIN_OFF 1

// Threads without work spin for as long as waking them would take, then sleep.
#define HEADWAY_IDLE_AUTO 0

// They never sleep: the shortest reaction, and cores that are always busy.
#define HEADWAY_IDLE_SPIN 1

// They sleep at once.
#define HEADWAY_IDLE_PARK 2

// The most classes a server may have.
#define HEADWAY_MAX_CLASSES 255

// The class is long if its service time is at least ten times the shortest one's.
#define HEADWAY_CLASS_AUTO 0

// The class is not long.
#define HEADWAY_CLASS_SHORT 1

// The class is long.
#define HEADWAY_CLASS_LONG 2

// The most bytes a response may have, wire header not included; also what headway_buffer() has room for.
#define HEADWAY_MAX_REPLY_BYTES 1990

// Version of this interface. A program keeps working with any library of the same version.
#define HEADWAY_ABI_VERSION 1

// Bytes of the wire header that every datagram begins with: docs/wire.md.
#define HEADWAY_HEADER_BYTES 10

// Success.
#define HEADWAY_OK 0

// An argument is null, out of range, or of a later version than the library.
#define HEADWAY_E_ARGUMENT -1

// The policy's name or one of its parameters is wrong.
#define HEADWAY_E_POLICY -2

// The address is malformed, or cannot be listened on.
#define HEADWAY_E_ADDRESS -3

// setup or setup_worker did not return 0.
#define HEADWAY_E_SETUP -4

// The server could not start for another reason.
#define HEADWAY_E_START -5

// A handler, or a job of a pool, did not return in time; its thread was left behind.
#define HEADWAY_E_STUCK -6

// The response is larger than HEADWAY_MAX_REPLY_BYTES; the client gets an error. Or a text does not fit the room for it.
#define HEADWAY_E_TOO_LARGE -7

// A bug in Headway itself: a thread of the server, or this call, panicked.
#define HEADWAY_E_INTERNAL -8

// headway_recv() has no request: the server has ended, or no other may begin beside the requests that the loop holds. Or a joined thread never
// ends, since its runtime was stopped.
#define HEADWAY_E_NONE -9

// A pool did not accept the job: a queue is full, or the SLO of its class would be missed by waiting.
#define HEADWAY_E_OVERLOADED -10

// A pool accepted the job and shed it before it began: it made room for a shorter class, or did not begin in time.
#define HEADWAY_E_SHED -11

// The job was cancelled before it began.
#define HEADWAY_E_CANCELLED -12

// The pool ended before the job began.
#define HEADWAY_E_ABANDONED -13

// The pool is shut down, or the process was forked and its pool is the parent's.
#define HEADWAY_E_SHUT_DOWN -14

// A job of the pool would wait for the pool itself, or a thread of a runtime would end that.
#define HEADWAY_E_INSIDE -15

// A connection was refused, reset, or is closed.
#define HEADWAY_E_CONNECTION -16

// It did not happen in time, or the peer was silent for too long.
#define HEADWAY_E_TIMEOUT -17

// A request that is being handled: valid until handle_request returns, or until headway_send() or headway_finish().
struct headway_request;

// The source of a loop's requests (headway_service.serve): valid until the loop returns, for that loop alone.
struct headway_requests;

// A running server.
struct headway_server;

// A class of requests.
struct headway_class {
    // Its name in reports: no other class's, and not "unknown". Null for "class-0" and so on.
    const char *name;
    // Its expected service time in ns, by which policies that do not measure order the classes; 0 if unknown.
    uint64_t mean_ns;
};

// Further hints about a class for policies. All fields may stay 0.
struct headway_class_hint {
    // The class's latency target in the server, ns, by which edf and shinjuku-mq rank requests; 0 for several of its service times.
    uint64_t slo_ns;
    // Whether policies that treat long requests apart count the class among them: HEADWAY_CLASS_...
    uint32_t length;
    // 0.
    uint32_t reserved;
};

// What the layouts of a server cost on a machine, ns, by which HEADWAY_LAYOUT_AUTO chooses (docs/scaling.md). `headway calibrate` prints the five figures. Begin
// with those of the machine: 0 is no default here, but no cost at all.
struct headway_layout_costs {
    // A dispatcher's work per request, on a thread of its own.
    uint64_t dispatch_ns;
    // A worker's work per request beside such a dispatcher, besides the service.
    uint64_t worker_ns;
    // A worker's work per request where workers take turns, the dispatcher's included.
    uint64_t inline_ns;
    // The part of it that one worker at a time does.
    uint64_t turn_ns;
    // A worker's work for a quantum that it renews itself.
    uint64_t renew_ns;
};

// A server's options. Begin with `struct headway_options options = {.size = sizeof options};`: 0 is each field's default.
struct headway_options {
    // sizeof(struct headway_options).
    size_t size;
    // The policy, as in "concord,q=5us"; null for "darc". docs/policies.md lists them.
    const char *policy;
    // The address, as in "udp://127.0.0.1:9000"; port 0 lets the system choose. Null for "udp://127.0.0.1:0".
    const char *listen;
    // The classes, in the order of their numbers; requests of any other are of class class_count, "unknown".
    const struct headway_class *classes;
    // The number of classes, at most HEADWAY_MAX_CLASSES.
    size_t class_count;
    // The number of workers; 0 for 1.
    uint32_t workers;
    // Where interrupted requests resume: HEADWAY_RESUME_...
    uint32_t resume;
    // Which threads run the dispatcher: HEADWAY_LAYOUT_...
    uint32_t layout;
    // Whether threads are bound to cores: HEADWAY_PIN_...
    uint32_t pin;
    // The behaviour of threads without work: HEADWAY_IDLE_...
    uint32_t idle;
    // The mechanism that interrupts requests, if the policy does so: HEADWAY_PREEMPT_...
    uint32_t preempt;
    // The most requests that wait in one queue; further ones are refused. 0 for 1024.
    size_t queue_limit;
    // The size of a request's stack if the policy interrupts requests, and of each loop's (headway_service.serve); 0 for 256 KiB. Only touched pages take
    // memory.
    size_t stack_bytes;
    // The seed of the policy's own randomness.
    uint64_t seed;
    // Whether requests state where they may be interrupted: HEADWAY_FEEDBACK_...
    uint32_t feedback;
    // What a request has that may be interrupted: HEADWAY_FIBERS_...
    uint32_t fibers;
    // Hints about the classes: one element per class, in the same order; null for none.
    const struct headway_class_hint *class_hints;
    // The key by which the kernel chooses a request's worker under a policy without a dispatcher: "flow", "random", "class", or "byte=N" of
    // the header; null for "flow".
    const char *steer;
    // The name under which the server registers with a host's daemon, which grants its workers their cores (docs/host-daemon.md); null for none. Then
    // 0 workers are one for each core that it may have, and SIGUSR1 is the daemon's.
    const char *application;
    // The daemon's socket; null for /run/headway/host.sock.
    const char *host_socket;
    // Where a thread of its own answers `headway ctl` while the server runs (docs/ctl.md): the path of a socket, or "auto" for the path where `headway ctl`
    // looks for the server's port; null for nowhere.
    const char *control;
    // The most threads of the process that lend requests their state (HEADWAY_FIBERS_OF_THREADS); 0 for as many as requests are suspended at once. A request that could be
    // interrupted and finds none runs to its end.
    size_t most_lent_threads;
    // What the layouts cost on this machine, for HEADWAY_LAYOUT_AUTO; null for what `headway calibrate` measured elsewhere.
    const struct headway_layout_costs *layout_costs;
    // How often a busy worker looks for arrivals, ns; 0 for 25 000 where a look is a system call, else 5 000. Refused where no worker looks.
    uint64_t look_every_ns;
    // Where Prometheus and browsers ask while the server runs, as in "127.0.0.1:9090"; null for nowhere. Who reaches the address may read.
    const char *metrics;
};

// The functions that the server calls. Begin with `struct headway_service service = {.size = sizeof service};`. No C++ exception may leave
// one of the functions.
struct headway_service {
    // sizeof(struct headway_service).
    size_t size;
    // Handed to each of the functions. Used by all threads.
    void *context;
    // Called once by headway_start(), before any thread exists; may be null. The server starts only if it returns 0.
    int (*setup)(void *context);
    // Called once by each thread that will handle requests, before the first of them; may be null. `core` is the one the thread is pinned to,
    // or -1; `worker` counts from 0, and is the number of workers for a dispatcher that works too. The server starts only if it returns 0.
    int (*setup_worker)(void *context, unsigned int worker, int core);
    // Answers a request; called by all workers at once. Null if `serve` is not. It is interrupted at its probes, and resumes where
    // headway_options.resume says. A request that it leaves unanswered gets an answer without payload.
    void (*handle_request)(void *context, struct headway_request *request);
    // Tells a request's class from its datagram, wire header included; may be null: then the header's type is the class. Called by
    // one thread at a time with a dispatcher, by all workers without; never interrupted. Negative for unknown.
    int (*classify)(void *context, const uint8_t *datagram, size_t length);
    // In place of handle_request: a loop that takes requests by headway_recv() and answers them by headway_send() until headway_recv() has none while it holds
    // none. Called once by each worker's thread as the server starts, and again for each request that begins while all of the worker's loops are busy with
    // others. A loop that returns earlier fails the requests that it holds.
    void (*serve)(void *context, struct headway_requests *requests);
    // Called once in each thread that lends requests its state (headway_options.fibers), before the first of them; may be null. What setup_worker left in
    // thread-local variables is not there.
    void (*setup_fiber)(void *context);
};

// A server's counts since its start. Begin with `struct headway_stats stats = {.size = sizeof stats};`. Counts of different kinds are
// read one after the other, so they agree exactly only when the server is at rest.
struct headway_stats {
    // sizeof(struct headway_stats).
    size_t size;
    // Datagrams taken from the network.
    uint64_t received;
    // Requests run to their end, with any answer.
    uint64_t answered;
    // Requests refused because the queue of their class was full.
    uint64_t shed;
    // Datagrams too short for the wire header, or marked as responses: dropped.
    uint64_t malformed;
    // Datagrams larger than a buffer: refused.
    uint64_t too_large;
    // Requests refused because the server was shutting down.
    uint64_t refused_draining;
    // Requests accepted but given up when the deadline of a shutdown was over.
    uint64_t abandoned;
    // Interruptions of requests.
    uint64_t preemptions;
    // Responses that the system refused to send.
    uint64_t unsent;
    // Datagrams that the kernel dropped because the server did not take them in time.
    uint64_t kernel_drops;
    // How often the policy asked a running request to yield; preemptions of them did, or yielded by themselves.
    uint64_t preemptions_asked;
};

// A server's counts for one class. Begin with `struct headway_class_stats stats = {.size = sizeof stats};`.
struct headway_class_stats {
    // sizeof(struct headway_class_stats).
    size_t size;
    // Requests run to their end.
    uint64_t answered;
    // Requests refused because the queue was full.
    uint64_t shed;
    // The handlers' total time, ns.
    uint64_t cpu_ns;
    // How often the policy asked a running request to yield.
    uint64_t preemptions_asked;
    // Interruptions of requests.
    uint64_t preemptions;
    // Requests that ran for more than 20 us after they were asked to yield, and ended without meeting a probe. The server names a class
    // once, on standard error, if all its requests do so.
    uint64_t overruns;
    // How often a request yielded at the end of a section in which it was asked to yield and could not. The following fields count, by kind
    // of section, how often a section kept a request from yielding, and for how long in all until it yielded or ended.
    uint64_t lock_yields;
    // In a section that the program opened by name.
    uint64_t held_no_preempt;
    // The same, ns.
    uint64_t held_no_preempt_ns;
    // While it held a mutex (behind the shim).
    uint64_t held_mutex;
    // The same, ns.
    uint64_t held_mutex_ns;
    // While it held a readers-writer lock (behind the shim).
    uint64_t held_rwlock;
    // The same, ns.
    uint64_t held_rwlock_ns;
    // In the allocator (behind the shim).
    uint64_t held_allocator;
    // The same, ns.
    uint64_t held_allocator_ns;
    // In another lock or initialisation (behind the shim).
    uint64_t held_other;
    // The same, ns.
    uint64_t held_other_ns;
    // Requests that called headway_feedback_start(). Nested parts are allowed. The next three count mistakes.
    uint64_t feedback_said_long;
    // The same, where the class is short by its mean_ns or its hint: a policy that goes by hints, such as synergy, does not interrupt them.
    uint64_t feedback_from_short;
    // Long parts that were never ended; the end of their request ended them.
    uint64_t feedback_unended;
    // Calls of headway_feedback_finished() without a part to end; they changed nothing.
    uint64_t feedback_unbegun;
};

// A server's counts for one worker. Begin with `struct headway_worker_stats stats = {.size = sizeof stats};`.
struct headway_worker_stats {
    // sizeof(struct headway_worker_stats).
    size_t size;
    // Requests that it ran to their end.
    uint64_t answered;
    // Requests that it began and that came by its own queue.
    uint64_t own;
    // Requests that it took from another worker's queue.
    uint64_t stolen;
    // Interrupted requests that it resumed.
    uint64_t resumed;
    // Interruptions of requests.
    uint64_t preemptions;
    // How often a slice ended and the request went on at once, since nothing waited that should run instead.
    uint64_t renewals;
    // The handlers' total time in requests that ended here, ns.
    uint64_t cpu_ns;
    // Requests that wait at the worker; 0 where a dispatcher places requests.
    uint64_t queued;
    // How often a request yielded at the end of a section in which it was asked to yield and could not.
    uint64_t lock_yields;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The buffer, HEADWAY_MAX_REPLY_BYTES large: it begins with the request's payload, and takes the response for
// headway_reply_in_place().
//
// # Safety
// `request` is the one that handle_request was called with, or one that headway_recv() gave, and used by one thread at a time.
uint8_t *headway_buffer(struct headway_request *request);

// Bytes of the payload, without wire header; after a reply, bytes of that.
//
// # Safety
// As headway_buffer().
size_t headway_length(struct headway_request *request);

// The class the request was scheduled as; the number of classes stands for unknown.
//
// # Safety
// As headway_buffer().
unsigned int headway_class_of(struct headway_request *request);

// The worker that began the request: an index for data kept per worker. It stays the same when the request resumes elsewhere, so another
// thread uses such data then.
//
// # Safety
// As headway_buffer().
unsigned int headway_worker(struct headway_request *request);

// The time field of the request's wire header, ns: a load generator puts a synthetic request's amount of work there.
//
// # Safety
// As headway_buffer().
uint32_t headway_time_ns(struct headway_request *request);

// Answers with these bytes, which may lie in headway_buffer(). Of several replies the last one counts. Returns HEADWAY_OK,
// HEADWAY_E_TOO_LARGE, or HEADWAY_E_ARGUMENT for a length without bytes.
//
// # Safety
// As headway_buffer(); `bytes` is null or has as many readable bytes as `length` says.
int headway_reply(struct headway_request *request,
                  const void *bytes,
                  size_t length);

// Answers with the first `length` bytes of headway_buffer(). Returns HEADWAY_OK or HEADWAY_E_TOO_LARGE.
//
// # Safety
// As headway_buffer().
int headway_reply_in_place(struct headway_request *request, size_t length);

// Answers that the service failed, without payload.
//
// # Safety
// As headway_buffer().
void headway_fail(struct headway_request *request);

// Answers that the request is malformed for this service, without payload.
//
// # Safety
// As headway_buffer().
void headway_bad_request(struct headway_request *request);

// The request is long from here to headway_feedback_finished(), or to its end: with HEADWAY_FEEDBACK_HEEDED it may be interrupted only in this
// part, and yields at once if it was asked to before. Such parts nest. Otherwise it is only counted (struct headway_class_stats).
//
// # Safety
// As headway_buffer().
void headway_feedback_start(struct headway_request *request);

// Ends what headway_feedback_start() began. Without it nothing changes, and headway_class_stats.feedback_unbegun counts the call.
//
// # Safety
// As headway_buffer().
void headway_feedback_finished(struct headway_request *request);

// Calls `function` with `argument` in the request's own thread: for what the kernel must know as the caller's (a change of credentials, a contended lock with priority inheritance,
// an attached virtual machine), and for calls that block for long. The worker serves others meanwhile. Outside of a request that may be interrupted, inside a section, and with
// HEADWAY_FIBERS_PLAIN it is called where the caller is. No C++ exception may leave it.
//
// # Safety
// `function` may be called with `argument`.
void headway_on_own_thread(void (*function)(void *argument),
                           void *argument);

// Suspends the calling request until the policy resumes it, for code that waits for another request. Does nothing under a policy that never
// interrupts; in a no-preempt section the request yields at its end, and with HEADWAY_FEEDBACK_HEEDED at its next headway_feedback_start(), if
// it is in no long part.
void headway_yield(void);

// Writes the next request to `*request`; answer it by headway_send() or headway_finish(). While the loop holds no request it waits for one, and HEADWAY_E_NONE
// says that the server has ended: return then. While it holds some, HEADWAY_E_NONE says that no other request may begin now, or that the loop is at its limit:
// answer one of them. A loop may hold up to 16 if the policy interrupts requests by probes, they stay at their worker, and headway_options.feedback is off.
// HEADWAY_E_NONE leaves headway_last_error() as it is.
//
// # Safety
// `requests` is null or what the loop was called with; `request` is null or can be written.
int headway_recv(struct headway_requests *requests,
                 struct headway_request **request);

// Answers the request with these bytes, as headway_reply(), and finishes it, whatever the return value. The answer leaves when the loop waits in
// headway_recv(), or when the policy resumes this request. HEADWAY_E_ARGUMENT if the loop does not have the request.
//
// # Safety
// As headway_recv(); `request` came from it; `bytes` is null or has as many readable bytes as `length` says.
int headway_send(struct headway_requests *requests,
                 struct headway_request *request,
                 const void *bytes,
                 size_t length);

// Finishes the request with the answer of headway_reply(), headway_reply_in_place(), headway_fail() or headway_bad_request(); an error without any of these.
// HEADWAY_E_ARGUMENT if the loop does not have the request.
//
// # Safety
// As headway_recv(); `request` came from it.
int headway_finish(struct headway_requests *requests,
                   struct headway_request *request);

// The version that the library has; HEADWAY_ABI_VERSION is the one a program was compiled with.
uint32_t headway_abi_version(void);

// Starts a server, once setup has run; returns when all its threads are ready. Writes its handle to `*server`, for headway_stop() to take.
// Signals may reach the server's threads too: block the signals that the program waits for before this call.
//
// # Safety
// `options` and `service` are valid as their fields say, and their targets are valid during this call. Any thread may call the service's functions with its
// context until headway_stop() has returned HEADWAY_OK. `server` can be written. If headway_options.fibers is HEADWAY_FIBERS_PLAIN, its code
// keeps nothing of its thread over a probe (docs/c-api.md, "Threads"). With HEADWAY_PREEMPT_SIGNAL it may be interrupted at any instruction (docs/c-api.md,
// "Interrupting by signal").
int headway_start(const struct headway_options *options,
                  const struct headway_service *service,
                  struct headway_server **server);

// The port the server listens on; 0 if `server` is null, with a message in headway_last_error().
//
// # Safety
// `server` is null, or came from headway_start() and was not stopped.
uint16_t headway_port(const struct headway_server *server);

// The port where Prometheus and browsers ask, as headway_options.metrics chose it; 0 if it chose none, or `server` is null, with a message in
// headway_last_error() then.
//
// # Safety
// As headway_port().
uint16_t headway_metrics_port(const struct headway_server *server);

// The server's counts so far.
//
// # Safety
// As headway_port(); `stats` is null or has as many bytes as its size says.
int headway_read_stats(const struct headway_server *server, struct headway_stats *stats);

// The server's counts so far for one class; the number of classes stands for unknown.
//
// # Safety
// As headway_port(); `stats` is null or has as many bytes as its size says.
int headway_read_class_stats(const struct headway_server *server, size_t index, struct headway_class_stats *stats);

// The server's counts so far for one worker. Behind the workers come the dispatchers, where the policy has any; one that only dispatches counts nothing.
//
// # Safety
// As headway_port(); `stats` is null or has as many bytes as its size says.
int headway_read_worker_stats(const struct headway_server *server,
                              size_t index,
                              struct headway_worker_stats *stats);

// Sets parameters of the server's policy while it serves, as in "q=5us,factor=3": those that docs/policies.md calls changeable. All of them change, or none.
// Requests keep their places, and a slice that has begun ends as it was given.
//
// # Safety
// As headway_port(); `parameters` is null or a string.
int headway_set_parameters(const struct headway_server *server,
                           const char *parameters);

// Asks the server to drain, and returns at once: it answers accepted requests and refuses later ones. It takes a lock, so do not call it in a
// signal handler.
//
// # Safety
// As headway_port().
int headway_request_stop(const struct headway_server *server);

// Waits until some thread calls headway_request_stop(), or a thread of the server fails. Call headway_stop() then: its deadline begins with its call.
//
// # Safety
// As headway_port().
int headway_wait(const struct headway_server *server);

// Stops the server and frees its handle, whatever the return value. The server takes the requests sent before, answers all that it
// accepted, and ends its threads. Requests not begun after `deadline_ns` are given up. Unless `stats` is null it gets the server's total
// counts, except when a handler did not return (HEADWAY_E_STUCK).
//
// # Safety
// As headway_port(), and the handle is not used afterwards; `stats` is null or has as many bytes as its size says.
int headway_stop(struct headway_server *server,
                 uint64_t deadline_ns,
                 struct headway_stats *stats);

// The message of this thread's last failed call, in English; empty before the first. Valid until the next call that fails.
const char *headway_last_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HEADWAY_H */
