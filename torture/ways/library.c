/* What the C library keeps for a thread or locks for a moment, and callbacks of it. In C, so that a program without the C++ library has these ways too. */
#include "torture.h"

#include <errno.h>
#include <fenv.h>
#include <iconv.h>
#include <mmintrin.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <search.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

extern char **environ;

WAY(float_exceptions) {
    feclearexcept(FE_ALL_EXCEPT);
    const int raised = seed % 2 ? FE_DIVBYZERO : FE_OVERFLOW;
    feraiseexcept(raised);
    work(seed);
    EXPECT((fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID)) == raised);
    feclearexcept(FE_ALL_EXCEPT);
}

WAY(float_rounding) {
    const int rounding = seed % 3 ? FE_UPWARD : FE_DOWNWARD;
    fesetround(rounding);
    work(seed);
    EXPECT(fegetround() == rounding);
    fesetround(FE_TONEAREST);
}

WAY(float_environment) {
    fenv_t before;
    feholdexcept(&before);
    volatile double one = 1, three = 3;
    volatile double third = one / three;
    work(seed);
    EXPECT(third > 0.3 && fetestexcept(FE_INEXACT));
    fesetenv(&before);
}

WAY(x87_stack) {
    volatile long double sum = (long double)seed;
    for (int i = 0; i < 4; i++) {
        sum = sum + 0.5L;
        work(seed);
    }
    EXPECT(sum == (long double)seed + 2);
}

/* MMX registers are the x87's: every other request holds one, and those between them compute with the x87. */
WAY(mmx_registers) {
    if (seed % 2) {
        __asm__ volatile("movq %0, %%mm3" : : "r"(seed) : "mm3");
        work(seed);
        _mm_empty();
        return;
    }
    volatile long double sum = (long double)seed;
    for (int i = 0; i < 4; i++) {
        sum = sum * 3 - sum - sum;
        work(seed);
        EXPECT(sum == (long double)seed);
    }
}

WAY(string_tokens) {
    char tokens[64], *place;
    snprintf(tokens, sizeof tokens, "%lu %lu %lu", seed, seed, seed);
    char *token = strtok_r(tokens, " ", &place);
    work(seed);
    token = strtok_r(NULL, " ", &place);
    EXPECT(token && strtoul(token, NULL, 10) == seed);
}

WAY(allocations) {
    unsigned char *pieces[40];
    for (int i = 1; i < 40; i++) {
        pieces[i] = malloc((size_t)i * 97);
        memset(pieces[i], (int)(seed & 0xff), (size_t)i * 97);
        if (i % 8 == 0) work(seed);
    }
    for (int i = 1; i < 40; i++) {
        EXPECT(pieces[i][0] == (seed & 0xff) && pieces[i][i * 97 - 1] == (seed & 0xff));
        free(pieces[i]);
        if (i % 8 == 0) work(seed);
    }
}

/* One request frees what another allocated. */
WAY(freed_by_another_request) {
    static unsigned long *slots[16];
    unsigned long *mine = malloc(64 + seed % 512);
    mine[0] = mine[1] = seed;
    work(seed);
    unsigned long *found = __atomic_exchange_n(&slots[seed % 16], mine, __ATOMIC_ACQ_REL);
    if (!found) return;
    EXPECT(found[0] == found[1]);
    work(seed);
    free(found);
}

WAY(large_allocations) {
    for (int i = 0; i < 3; i++) {
        unsigned long *piece = malloc(300 << 10);
        piece[0] = piece[30 << 10] = seed;
        work(seed);
        piece = realloc(piece, 600 << 10);
        work(seed);
        EXPECT(piece[0] == seed && piece[30 << 10] == seed);
        free(piece);
    }
}

static int by_number(const void *one, const void *other) {
    work(1);
    const unsigned long a = *(const unsigned long *)one, b = *(const unsigned long *)other;
    return a < b ? -1 : a > b;
}

/* A library without probes calls back code with probes. */
WAY(sort_callback) {
    unsigned long numbers[8];
    for (unsigned long i = 0; i < 8; i++) numbers[i] = seed ^ (i * 5 % 8);
    qsort(numbers, 8, sizeof *numbers, by_number);
    for (int i = 1; i < 8; i++) EXPECT(numbers[i - 1] < numbers[i]);
}

WAY(search_callback) {
    unsigned long numbers[16];
    for (unsigned long i = 0; i < 16; i++) numbers[i] = seed + i;
    const unsigned long key = seed + 11;
    unsigned long *found = bsearch(&key, numbers, 16, sizeof *numbers, by_number);
    EXPECT(found == &numbers[11]);
}

WAY(tree_callback) {
    void *root = NULL;
    unsigned long numbers[6];
    for (unsigned long i = 0; i < 6; i++) {
        numbers[i] = seed * 7 + i * 5 % 6;
        EXPECT(tsearch(&numbers[i], &root, by_number));
    }
    for (int i = 0; i < 6; i++) {
        EXPECT(tfind(&numbers[i], &root, by_number));
        tdelete(&numbers[i], &root, by_number);
    }
    EXPECT(root == NULL);
}

WAY(memory_stream) {
    char *text;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    fprintf(stream, "%lu", seed);
    work(seed);
    fprintf(stream, "/%g", 0.5);
    fclose(stream);
    char expected[64];
    snprintf(expected, sizeof expected, "%lu/0.5", seed);
    EXPECT(strcmp(text, expected) == 0);
    free(text);
}

static tss_t key;
static once_flag key_made = ONCE_FLAG_INIT;
static void make_key(void) {
    work(1);
    tss_create(&key, NULL);
}

WAY(c11_storage) {
    call_once(&key_made, make_key);
    tss_set(key, (void *)(seed + 1));
    work(seed);
    EXPECT(tss_get(key) == (void *)(seed + 1));
}

static mtx_t c11_lock;
static once_flag c11_lock_made = ONCE_FLAG_INIT;
static void make_lock(void) { mtx_init(&c11_lock, mtx_recursive); }

WAY(c11_mutex) {
    static struct inside section;
    call_once(&c11_lock_made, make_lock);
    EXPECT(mtx_lock(&c11_lock) == thrd_success && mtx_lock(&c11_lock) == thrd_success);
    VISIT(section, 1);
    EXPECT(mtx_unlock(&c11_lock) == thrd_success && mtx_unlock(&c11_lock) == thrd_success);
}

static pthread_once_t once_control = PTHREAD_ONCE_INIT;
static int once_times;
static void once_long(void) {
    for (int i = 0; i < 20; i++) work(1);
    once_times++;
}

WAY(posix_once) {
    EXPECT(pthread_once(&once_control, once_long) == 0);
    EXPECT(once_times == 1);
}

static __thread int cleaned;
static void clean(void *seed) { cleaned = *(int *)seed; }

WAY(cleanup_handlers) {
    int number = (int)(seed % 1000) + 1;
    pthread_cleanup_push(clean, &number);
    work(seed);
    pthread_cleanup_pop(1);
    work(seed);
    EXPECT(cleaned == number);
}

static void *until_cancelled(void *unused) {
    (void)unused;
    for (;;) usleep(1000);
}

WAY(cancelled_thread) {
    pthread_t thread;
    void *result = NULL;
    if (seed % 8) return; /* It takes long. */
    EXPECT(pthread_create(&thread, NULL, until_cancelled, NULL) == 0);
    work(seed);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    EXPECT(result == PTHREAD_CANCELED);
}

/* Asks files alone, no network. */
WAY(name_of_a_host) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found = NULL;
    EXPECT(getaddrinfo("127.0.0.1", "80", &hints, &found) == 0);
    work(seed);
    freeaddrinfo(found);
    h_errno = (int)(seed % 5);
    work(seed);
    EXPECT(h_errno == (int)(seed % 5));
}

WAY(name_of_a_user) {
    struct passwd record, *found = NULL;
    char room[4096];
    EXPECT(getpwuid_r(0, &record, room, sizeof room, &found) == 0 && found);
    work(seed);
    EXPECT(found && strcmp(record.pw_name, "root") == 0);
}

WAY(local_time) {
    const time_t then = (time_t)(seed * 86400);
    struct tm parts;
    EXPECT(localtime_r(&then, &parts));
    work(seed);
    EXPECT(mktime(&parts) == then);
}

WAY(wide_text) {
    wchar_t wide[32];
    char narrow[32];
    const char *from = narrow;
    mbstate_t state = {0};
    snprintf(narrow, sizeof narrow, "%lu", seed);
    EXPECT(mbsrtowcs(wide, &from, 32, &state) > 0);
    work(seed);
    EXPECT(wcstoul(wide, NULL, 10) == seed);
}

WAY(converted_text) {
    iconv_t converter = iconv_open("UTF-16LE", "UTF-8");
    char text[32], wide[64], *in = text, *out = wide;
    EXPECT(converter != (iconv_t)-1);
    if (converter == (iconv_t)-1) return;
    size_t left = (size_t)snprintf(text, sizeof text, "%lu", seed), room = sizeof wide;
    work(seed);
    EXPECT(iconv(converter, &in, &left, &out, &room) == 0);
    EXPECT(wide[0] == text[0] && wide[1] == 0);
    iconv_close(converter);
}

static const char *const variables[] = {"TORTURE_0", "TORTURE_1", "TORTURE_2", "TORTURE_3"};
enum { VARIABLES = sizeof variables / sizeof *variables };

/* A variable that is added moves the environment, which other threads may be reading: POSIX allows that before there are threads. */
__attribute__((constructor)) static void add_variables(void) {
    for (unsigned long i = 0; i < VARIABLES; i++) setenv(variables[i], "-", 1);
}

WAY(environment) {
    char value[32];
    const char *name = variables[seed % VARIABLES];
    snprintf(value, sizeof value, "%lu", seed);
    setenv(name, value, 1);
    work(seed);
    const char *read = getenv(name);
    EXPECT(read && strtoul(read, NULL, 10) % VARIABLES == seed % VARIABLES);
}

WAY(random_numbers) {
    struct random_data own;
    char state[64];
    memset(&own, 0, sizeof own);
    initstate_r((unsigned)seed, state, sizeof state, &own);
    int first[4], again[4];
    for (int i = 0; i < 4; i++) random_r(&own, &first[i]), work(seed);
    srandom_r((unsigned)seed, &own);
    for (int i = 0; i < 4; i++) random_r(&own, &again[i]);
    EXPECT(memcmp(first, again, sizeof first) == 0);
    rand();
}

static __thread volatile unsigned long signalled;
static void on_signal(int number) { signalled += (unsigned long)number; }

/* A signal that a request sends itself is handled on the spot, and its handler sees what is the request's. */
WAY(signal_to_itself) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR2, &action, NULL);
    const unsigned long before = signalled;
    work(seed);
    raise(SIGUSR2);
    EXPECT(signalled == before + SIGUSR2);
    work(seed);
    EXPECT(signalled == before + SIGUSR2);
}

/* 0 where the child ended as it should. */
static int waited(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A child, as a store makes it for a snapshot: nothing of the server goes on there. */
WAY(forked_child) {
    if (seed % 8) return; /* It takes long. */
    const pid_t parent = getpid();
    work(seed);
    const pid_t child = fork();
    if (child == 0) {
        work(seed);
        _exit(getpid() != parent && getppid() == parent ? 7 : 1);
    }
    work(seed);
    EXPECT(child > 0 && waited(child) == 7 && getpid() == parent);
}

WAY(spawned_child) {
    if (seed % 8) return;
    pid_t child;
    char *const command[] = {"true", NULL};
    EXPECT(posix_spawnp(&child, "true", NULL, NULL, command, environ) == 0);
    work(seed);
    EXPECT(waited(child) == 0);
}

WAY(pipe_from_a_command) {
    if (seed % 8) return;
    char line[64] = "";
    FILE *pipe = popen("echo torture", "r");
    work(seed);
    EXPECT(pipe && fgets(line, sizeof line, pipe) && strcmp(line, "torture\n") == 0);
    if (pipe) pclose(pipe);
}

static void note_thread(void *where) { *(pthread_t *)where = pthread_self(), work(1); }

WAY(own_thread) {
    pthread_t there = 0;
    work(seed);
    headway_on_own_thread(note_thread, &there);
    work(seed);
    EXPECT(pthread_equal(there, pthread_self()));
}
