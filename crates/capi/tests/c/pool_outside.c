/* Tests what a pool tells those outside, and the limits of its classes: control socket, metrics, histograms, shares, deadlines, learnt classes. Arguments: a path for the
 * socket, and a policy that has a dispatcher. */
#include "check.h"
#include <arpa/inet.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { POINT, SHARED, SOON, DECLARED, LEARNT = 2 };

static struct headway_pool *pool;
static atomic_int gate_open, at_gate, at_once, most_at_once, shed;

static void waits(void *data) {
    (void)data;
    atomic_fetch_add(&at_gate, 1);
    while (!atomic_load(&gate_open)) usleep(100);
}

static void nothing(void *data) { (void)data; }

/* Counts how many of its kind run at once. */
static void shares(void *data) {
    (void)data;
    int now = atomic_fetch_add(&at_once, 1) + 1, most = atomic_load(&most_at_once);
    while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now)) {}
    usleep(1000);
    atomic_fetch_sub(&at_once, 1);
}

static void ended(void *data, int code) {
    (void)data;
    if (code == HEADWAY_E_SHED) atomic_fetch_add(&shed, 1);
}

/* What the other side says until it closes, or to the end of a line. */
static char *answer(int fd, const char *question, int to_line) {
    static char said[1 << 20];
    size_t length = 0;
    CHECK(write(fd, question, strlen(question)) == (ssize_t)strlen(question));
    for (;;) {
        ssize_t more = read(fd, said + length, sizeof said - 1 - length);
        if (more <= 0) break;
        length += (size_t)more;
        if (to_line && said[length - 1] == '\n') break;
    }
    said[length] = 0;
    close(fd);
    return said;
}

static void answers_outside(const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    char *status = answer(fd, "{\"command\":\"status\"}\n", 1);
    CHECK(strstr(status, "\"layout\":\"dedicated\"") && strstr(status, "\"class\":\"shared\""));

    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(headway_pool_metrics_port(pool))};
    CHECK(port.sin_port != 0);
    port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&port, sizeof port) == 0);
    char *scraped = answer(fd, "GET /metrics HTTP/1.0\r\n\r\n", 0);
    CHECK(strstr(scraped, "headway_pool_submitted_jobs_total{pool=\"c\",class=\"point\"} 1\n"));

    size_t length = 0;
    CHECK(headway_pool_metrics(pool, NULL, 0, &length) == HEADWAY_E_TOO_LARGE && length > 1000);
    char *text = malloc(length + 1);
    CHECK(headway_pool_metrics(pool, text, length, NULL) == HEADWAY_E_TOO_LARGE);
    CHECK(headway_pool_metrics(pool, text, length + 1, &length) == HEADWAY_OK);
    CHECK(strlen(text) == length && strcmp(text + length - 6, "# EOF\n") == 0);
    CHECK(strstr(text, "headway_pool_wait_seconds_count{pool=\"c\",class=\"point\"} 1\n"));
    free(text);
    struct headway_pool_class_stats points = {.size = sizeof points};
    CHECK(headway_pool_read_class_stats(pool, POINT, &points) == HEADWAY_OK);
    CHECK(points.slices == 1 && points.wait.count == 1 && points.service.count == 1);
    CHECK(points.service.max_ns >= points.service.p50_ns / 17 * 16 && points.service.sum_ns >= points.service.max_ns);
}

static void limits_hold(void) {
    /* Two workers, and a class that may have one. */
    for (int at = 0; at < 20; at++) CHECK(headway_pool_submit(pool, SHARED, shares, NULL, NULL) == HEADWAY_OK);
    CHECK(headway_pool_wait_idle(pool) == HEADWAY_OK);
    CHECK(atomic_load(&most_at_once) == 1);

    /* Both workers are kept past a deadline to begin. */
    for (int at = 0; at < 2; at++) CHECK(headway_pool_submit(pool, POINT, waits, NULL, NULL) == HEADWAY_OK);
    while (atomic_load(&at_gate) < 2) usleep(100);
    struct headway_job_options soon = {.size = sizeof soon, .function = nothing, .ended = ended, .class_index = SOON};
    CHECK(headway_pool_try_submit(pool, &soon, NULL, NULL) == HEADWAY_OK);
    usleep(5000);
    atomic_store(&gate_open, 1);
    CHECK(headway_pool_wait_idle(pool) == HEADWAY_OK);
    struct headway_pool_class_stats stats = {.size = sizeof stats};
    CHECK(headway_pool_read_class_stats(pool, SOON, &stats) == HEADWAY_OK);
    CHECK(stats.shed == 1 && stats.shed_too_late == 1);
    while (!atomic_load(&shed)) usleep(100); /* Of jobs that did not run, the pool is idle before their owners are told. */
}

/* The class of a key that was never seen is `unknown`, which comes last; then one of the learnt. */
static void classes_are_learnt(void) {
    struct headway_job_options job = {
        .size = sizeof job, .function = nothing, .class_index = HEADWAY_CLASS_LEARNT, .key = 7};
    for (int at = 0; at < 10; at++) {
        CHECK(headway_pool_try_submit(pool, &job, NULL, NULL) == HEADWAY_OK);
        CHECK(headway_pool_wait_idle(pool) == HEADWAY_OK);
    }
    unsigned long long learnt = 0;
    struct headway_pool_class_stats stats = {.size = sizeof stats};
    for (int at = 0; at < LEARNT; at++) {
        CHECK(headway_pool_read_class_stats(pool, DECLARED + at, &stats) == HEADWAY_OK);
        learnt += stats.done;
    }
    CHECK(headway_pool_read_class_stats(pool, DECLARED + LEARNT, &stats) == HEADWAY_OK);
    CHECK(stats.done == 1 && learnt == 9);
    CHECK(headway_pool_read_class_stats(pool, DECLARED + LEARNT + 1, &stats) == HEADWAY_E_ARGUMENT);
}

static void mistakes(const struct headway_pool_options *good) {
    struct headway_pool *none;
    struct headway_pool_options options = *good;
    options.control = NULL;
    options.metrics = "localhost";
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ADDRESS && strstr(headway_last_error(), "127.0.0.1:9100"));
    options.metrics = NULL;
    options.control = "/nowhere/at/all.sock";
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT && strstr(headway_last_error(), "control socket"));
    options.control = NULL;
    options.layout = 9;
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
    options.layout = HEADWAY_LAYOUT_DEDICATED;
    options.policy = "d-fcfs";
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_POLICY && strstr(headway_last_error(), "no dispatcher"));
    options = *good;
    options.control = NULL;
    options.core_count = 1;
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
    options.cores = &(uint32_t){4095};
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_START);
    options.core_count = 0;
    options.learn_classes = 13;
    CHECK(headway_pool_start(&options, &none) == HEADWAY_E_ARGUMENT);
    CHECK(headway_pool_metrics(NULL, NULL, 0, NULL) == HEADWAY_E_ARGUMENT);
    CHECK(headway_pool_metrics_port(NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    struct headway_pool_class classes[] = {{.name = "point", .share = 0.5, .mean_ns = 1000},
                                           {.name = "shared", .workers_at_most = 1},
                                           {.name = "soon", .begin_within_ns = 1000000}};
    struct headway_pool_options options = {.size = sizeof options,
                                           .policy = argv[2],
                                           .name = "c",
                                           .classes = classes,
                                           .class_count = DECLARED,
                                           .workers = 2,
                                           .layout = HEADWAY_LAYOUT_DEDICATED,
                                           .learn_classes = LEARNT,
                                           .stall_after_ns = 1000000,
                                           .control = argv[1],
                                           .metrics = "127.0.0.1:0"};
    mistakes(&options);
    CHECK(headway_pool_start(&options, &pool) == HEADWAY_OK);
    CHECK(headway_pool_run(pool, POINT, nothing, NULL) == HEADWAY_OK);
    CHECK(headway_pool_wait_idle(pool) == HEADWAY_OK);
    answers_outside(argv[1]);
    limits_hold();
    classes_are_learnt();
    CHECK(headway_pool_stop(pool, UINT64_MAX, NULL) == HEADWAY_OK);
    CHECK(access(argv[1], F_OK) != 0);
    return 0;
}
