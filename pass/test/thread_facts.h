// What is true of the thread that asks, found out where no probe can lie between the question and the answer.
#ifndef HEADWAY_TEST_THREAD_FACTS_H
#define HEADWAY_TEST_THREAD_FACTS_H

#include <stdbool.h>
#include <stdint.h>

bool is_errno(const int *address);
bool is_work_done(const uint64_t *address);
bool is_in_table(uint64_t value);

#endif
