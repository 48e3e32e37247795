// The main() of every program of the suite.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "modes.h"
#include "recorder.h"
#include "suite.h"

static const char USAGE[] =
    "usage: PROGRAM [--size full|test] [--core K] MODE\n"
    "  --repeat N         N repetitions: nanoseconds of each, and the digest of the result\n"
    "  --on-request       a repetition for each line on standard input: nanoseconds of each\n"
    "  --slices 5us       lengths of slices under a flag raised this long after a slice began\n"
    "      --seconds S        for so long (default 1)\n"
    "      --timer-core K     the core of the thread that raises the flag (default: the first other)\n"
    "  --stretches N      every probe taken, N repetitions: probes, and the longest way between two\n"
    "  --probe flag|tsc|self   who ends a slice: a flag that another core raises (default), probes built to count down,\n"
    "                     or flag probes whose flag is up always, so that what they call looks at the clock\n"
    "  --expected HEX     the digest of the result, for programs that do not know it\n"
    "  --tick-budget N    what the countdown of TSC probes begins with (default 2000)\n";

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void pin_to(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("cannot run on core %d: %s (--core and --timer-core choose others)", core, strerror(errno));
}

// The lowest or the highest core that this process may run on, `avoided` excepted; -1 if there is none.
static int choose_core(bool highest, int avoided) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) fail("cannot ask for the cores: %s", strerror(errno));
    int chosen = -1;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &set) || core == avoided) continue;
        chosen = core;
        if (!highest) break;
    }
    return chosen;
}

void check_digest(const struct options *options) {
    uint64_t digest = kernel_digest(), expected = kernel_expected[options->full];
    if (expected == 0) expected = options->expected;
    if (expected != 0 && digest != expected) fail("the result's digest is %016lx, expected %016lx", digest, expected);
}

void check_result(const struct options *options) {
    if (!kernel_valid()) fail("the result is not valid (digest %016lx)", kernel_digest());
    check_digest(options);
}

void run_repetition(const struct options *options) {
    for (unsigned pass = options->full ? kernel_passes : 1; pass > 0; pass--) kernel_run();
}

// Time on the processor, so that what others take from this core does not count.
static uint64_t timed_repetition(const struct options *options) {
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    run_repetition(options);
    return clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void measure_repetitions(const struct options *options) {
    for (uint64_t i = 0; i < options->repetitions; i++) printf("%lu\n", timed_repetition(options));
    check_result(options);
    printf("digest %016lx\n", kernel_digest());
}

// Probes that look at the clock look more often as a slice nears its end, so what they cost is measured in slices of this length.
#define SELF_TIMED_SLICE_NS 20000

static void begin_self_timed_slices(void) {
    static struct slice_log nothing; // has no room: no slice is noted
    recorder.log = &nothing;
    recorder.quantum_ticks = (uint64_t)(SELF_TIMED_SLICE_NS * clock_ticks_per_ns());
    recorder.mode = RECORDER_SLICES;
    recorder.begin = clock_ticks();
    __headway_self.deadline = recorder.begin + recorder.quantum_ticks;
}

static void serve_requests(const struct options *options) {
    if (options->probe == PROBE_SELF) begin_self_timed_slices();
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        printf("%lu\n", timed_repetition(options));
        fflush(stdout);
    }
    check_digest(options);
}

static uint64_t number(const char *flag, const char *text, const char *unit) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || text[0] == '-' || strcmp(end, unit) != 0 || value == 0)
        fail("%s %s: expected a positive whole number%s%s", flag, text, *unit ? " followed by " : "", unit);
    return value;
}

static bool either(const char *flag, const char *text, const char *no, const char *yes) {
    if (strcmp(text, yes) == 0) return true;
    if (strcmp(text, no) != 0) fail("%s %s: expected %s or %s", flag, text, no, yes);
    return false;
}

static enum probe probe_named(const char *flag, const char *text) {
    static const char *const NAMES[] = {[PROBE_FLAG] = "flag", [PROBE_TSC] = "tsc", [PROBE_SELF] = "self"};
    for (unsigned probe = 0; probe < sizeof NAMES / sizeof NAMES[0]; probe++)
        if (strcmp(text, NAMES[probe]) == 0) return (enum probe)probe;
    fail("%s %s: expected flag, tsc or self", flag, text);
}

// Large pages for the program's arrays, where the machine has them to give: which small pages a process gets
// is luck, and worth some percents. (The driver asks the allocator for the same.)
static void ask_for_large_pages(void) {
    extern char __bss_start[], _end[];
    uintptr_t page = 4096, from = ((uintptr_t)__bss_start + page - 1) & -page, to = (uintptr_t)_end & -page;
    if (to > from) madvise((void *)from, to - from, MADV_HUGEPAGE);
}

// What is freed stays with the process: giving memory back to the system takes tens of microseconds in which
// no code of the program runs, probes or not.
static void keep_freed_memory(void) {
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
}

typedef void (*mode_fn)(const struct options *);

static mode_fn parse(int argc, char **argv, struct options *options) {
    mode_fn mode = NULL;
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i];
        if (strcmp(flag, "--help") == 0) {
            fputs(USAGE, stdout);
            exit(0);
        }
        if (strcmp(flag, "--on-request") == 0) {
            mode = serve_requests;
            continue;
        }
        if (i + 1 == argc) fail("%s: unknown, or its value is missing\n%s", flag, USAGE);
        const char *value = argv[++i];
        if (strcmp(flag, "--repeat") == 0) {
            mode = measure_repetitions;
            options->repetitions = number(flag, value, "");
        } else if (strcmp(flag, "--stretches") == 0) {
            mode = measure_stretches;
            options->repetitions = number(flag, value, "");
        } else if (strcmp(flag, "--slices") == 0) {
            mode = measure_slices;
            options->quantum_ns = number(flag, value, "us") * 1000;
        } else if (strcmp(flag, "--seconds") == 0) {
            options->seconds = strtod(value, NULL);
            if (!(options->seconds > 0 && options->seconds <= 600))
                fail("--seconds %s: expected up to 600", value);
        } else if (strcmp(flag, "--size") == 0) {
            options->full = either(flag, value, "test", "full");
        } else if (strcmp(flag, "--probe") == 0) {
            options->probe = probe_named(flag, value);
        } else if (strcmp(flag, "--tick-budget") == 0) {
            options->tick_budget = (int64_t)number(flag, value, "");
        } else if (strcmp(flag, "--expected") == 0) {
            options->expected = strtoull(value, NULL, 16);
            if (options->expected == 0) fail("--expected %s: expected a digest as --repeat prints it", value);
        } else if (strcmp(flag, "--core") == 0) {
            options->core = atoi(value);
        } else if (strcmp(flag, "--timer-core") == 0) {
            options->timer_core = atoi(value);
        } else {
            fail("%s: unknown\n%s", flag, USAGE);
        }
    }
    return mode;
}

int main(int argc, char **argv) {
    struct options options = {
        .full = true, .core = -1, .timer_core = -1, .seconds = 1, .tick_budget = 2000, .repetitions = 1};
    mode_fn mode = parse(argc, argv, &options);
    if (mode == NULL) fail("what shall it do?\n%s", USAGE);
    if (options.core < 0) options.core = choose_core(true, options.timer_core);
    if (options.timer_core < 0) options.timer_core = choose_core(false, options.core);
    recorder.tick_budget = __headway_self.countdown = options.tick_budget;
    if (options.probe == PROBE_SELF) recorder.resting = HEADWAY_SELF_TIMED;
    put_flag_down();

    ask_for_large_pages();
    keep_freed_memory();
    pin_to(options.core);
    kernel_setup(options.full);
    run_repetition(&options); // the first touches memory for the first time
    mode(&options);
    return 0;
}
