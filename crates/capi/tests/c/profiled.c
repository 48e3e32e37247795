/* A sampling profiler beside a server that switches all the time: at any instruction a signal's handler walks the stack. Each walk arrives where its thread began.
 *   profiled POLICY */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <headway.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>
#include "client.h"

enum { REQUESTS = 1000, IN_FLIGHT = 8, ENDLESS = 200, INTERVAL_US = 1000, INNERMOST = 5 };
/* The handler's own frame and that of the signal are within it. */
enum { INTERRUPTED = 2 };

static unsigned long walks, cut, mixed;
static uintptr_t libc_low, libc_high;
extern char _start[];

struct walk {
    int frames, requests;
    uintptr_t outermost, innermost[INNERMOST];
};

static struct walk first_cut;

static void handle_request(void *context, struct headway_request *request);

static _Unwind_Reason_Code step(struct _Unwind_Context *frame, void *data) {
    struct walk *walk = data;
    uintptr_t ip = _Unwind_GetIP(frame);
    if (ip != 0) walk->outermost = ip;
    if (walk->frames < INNERMOST) walk->innermost[walk->frames] = ip;
    walk->requests += _Unwind_FindEnclosingFunction((void *)(ip - 1)) == (void *)handle_request;
    return ++walk->frames < ENDLESS ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* The jump of a library's procedure linkage table (`jmp *offset(%rip)`), for which lld, Rust's linker, writes no unwinding information: no walk goes on from there, in any program. */
static int is_linkers_jump(const struct walk *walk) {
    const unsigned char *const interrupted = (const unsigned char *)walk->innermost[INTERRUPTED];
    return walk->frames == INTERRUPTED + 1 && interrupted[0] == 0xff && interrupted[1] == 0x25;
}

static void sample(int signal) {
    (void)signal;
    struct walk walk = {0};
    _Unwind_Backtrace(step, &walk);
    int in_libc = walk.outermost >= libc_low && walk.outermost < libc_high;
    int at_start = _Unwind_FindEnclosingFunction((void *)walk.outermost) == (void *)_start ||
                   walk.outermost - (uintptr_t)_start < 64;
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
    const int is_cut = walk.frames >= ENDLESS || !(in_libc || at_start || is_linkers_jump(&walk));
    if (is_cut && __atomic_fetch_add(&cut, 1, __ATOMIC_RELAXED) == 0) first_cut = walk;
    __atomic_fetch_add(&mixed, walk.requests > 1, __ATOMIC_RELAXED);
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    if (!strstr(info->dlpi_name, "libc.so")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            libc_low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            libc_high = libc_low + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

__attribute__((noinline)) static unsigned long churn(unsigned long seed, int depth) {
    if (depth > 0) return churn(seed * 6364136223846793005u + 1, depth - 1) + seed;
    for (int i = 0; i < 400; i++) {
        seed = seed * 6364136223846793005u + (unsigned long)i;
        headway_checkpoint();
    }
    return seed;
}

static void handle_request(void *context, struct headway_request *request) {
    (void)context;
    volatile unsigned long kept = 0;
    for (int i = 0; i < 40; i++) kept += churn((unsigned long)i, 10);
    headway_reply(request, "done", 4);
}

static int setup_worker(void *context, unsigned int worker, int core) {
    (void)context, (void)worker, (void)core;
    return signal_every_us(SIGPROF, INTERVAL_US);
}

static void tell_where(const struct walk *walk) {
    fprintf(stderr, "cut after %d frames at", walk->frames);
    for (int i = 0; i < INNERMOST && i < walk->frames; i++) {
        const uintptr_t ip = walk->innermost[i];
        Dl_info info = {0};
        dladdr((void *)ip, &info);
        fprintf(stderr, " %s+%#lx(%s)", info.dli_fname ? info.dli_fname : "?", (unsigned long)(ip - (uintptr_t)info.dli_fbase), info.dli_sname ? info.dli_sname : "?");
    }
    fprintf(stderr, "\n");
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    alarm(100);
    dl_iterate_phdr(find_libc, NULL);
    struct walk first = {0};
    _Unwind_Backtrace(step, &first); /* The first walk may allocate. */
    CHECK(handle(SIGPROF, sample) == 0);
    struct headway_service service = {.size = sizeof service, .handle_request = handle_request, .setup_worker = setup_worker};
    struct headway_stats stats = {.size = sizeof stats};
    CHECK(serve_itself(argv[1], &service, REQUESTS, IN_FLIGHT, &stats) == 0);
    fprintf(stderr, "%lu walks, %lu cut, %lu mixed\n", walks, cut, mixed);
    if (cut != 0) tell_where(&first_cut);
    CHECK(walks > 0 && cut == 0 && mixed == 0);
    printf("preemptions %llu\n", (unsigned long long)stats.preemptions);
    return 0;
}
