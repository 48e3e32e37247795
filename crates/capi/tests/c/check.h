/* The report of a failed check in programs of a pool: it ends them, and says what Headway said last. */
#include <headway_pool.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s; last words: %s\n", __FILE__, __LINE__, #what, headway_last_error()); \
            exit(1); \
        } \
    } while (0)
