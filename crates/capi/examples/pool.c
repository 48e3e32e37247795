/* A pool in process: short points pass long reports, whose loop has a checkpoint.
 *   cc -O2 pool.c $(pkg-config --cflags --libs headway) -o pool && ./pool srpt */
#include <headway_pool.h>
#include <stdio.h>

enum { POINT, REPORT };

struct sum {
    unsigned long from, to, sum;
};

static void add(void *data) {
    struct sum *sum = data;
    for (unsigned long number = sum->from; number < sum->to && !headway_pool_cancelled(); number++) {
        sum->sum += number;
        headway_checkpoint();
    }
}

int main(int argc, char **argv) {
    struct headway_pool_class classes[] = {{.name = "point", .mean_ns = 2000}, {.name = "report", .mean_ns = 20000000}};
    struct headway_pool_options options = {
        .size = sizeof options, .policy = argc > 1 ? argv[1] : NULL, .classes = classes, .class_count = 2, .workers = 2};
    struct headway_pool *pool;
    struct headway_job *job;
    if (headway_pool_start(&options, &pool) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    struct sum report = {0, 3000000, 0};
    if (headway_pool_submit(pool, REPORT, add, &report, &job) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
    for (unsigned long at = 1; at <= 3; at++) {
        struct sum point = {0, 100 * at, 0};
        if (headway_pool_run(pool, POINT, add, &point) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
        printf("point %lu\n", point.sum);
    }
    headway_job_wait(job);
    printf("report %lu\n", report.sum);
    return headway_pool_stop(pool, 1000000000, NULL) != HEADWAY_OK;
}
