/* C++ exceptions in flight, jumps, and stacks within a stack. */
#include "torture.h"

#include <coroutine>
#include <csetjmp>
#include <cstdlib>
#include <exception>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unwind.h>
#include <vector>

namespace {

struct CountsUnwinding {
    int expected;
    ~CountsUnwinding() {
        EXPECT(std::uncaught_exceptions() == expected);
        work(3);
        EXPECT(std::uncaught_exceptions() == expected);
    }
};

[[noreturn]] void fail(unsigned long seed) {
    work(seed);
    throw std::runtime_error(std::to_string(seed));
}

unsigned long number_of(const std::exception &error) { return strtoul(error.what(), nullptr, 10); }

WAY(exception) {
    try {
        fail(seed);
    } catch (std::exception &error) {
        work(seed);
        EXPECT(number_of(error) == seed);
    }
    EXPECT(std::uncaught_exceptions() == 0);
}

WAY(exception_while_it_unwinds) {
    try {
        CountsUnwinding counts{1};
        fail(seed);
    } catch (std::exception &error) {
        EXPECT(number_of(error) == seed);
    }
}

struct ThrowsInside {
    unsigned long seed;
    ~ThrowsInside() {
        try {
            CountsUnwinding counts{2};
            fail(seed + 1);
        } catch (std::exception &error) {
            EXPECT(number_of(error) == seed + 1);
        }
    }
};

WAY(exception_within_an_exception) {
    try {
        ThrowsInside throws{seed};
        fail(seed);
    } catch (std::exception &error) {
        work(seed);
        EXPECT(number_of(error) == seed);
        try {
            work(seed);
            throw 7;
        } catch (int seven) {
            work(seed);
            EXPECT(seven == 7);
        }
        EXPECT(number_of(error) == seed);
    }
}

WAY(exception_thrown_again) {
    try {
        try {
            fail(seed);
        } catch (std::runtime_error &) {
            work(seed);
            throw;
        }
    } catch (std::exception &error) {
        work(seed);
        EXPECT(number_of(error) == seed);
    }
}

WAY(exception_pointer) {
    std::exception_ptr kept;
    try {
        fail(seed);
    } catch (...) {
        work(seed);
        kept = std::current_exception();
    }
    work(seed);
    try {
        std::rethrow_exception(kept);
    } catch (std::exception &error) {
        EXPECT(number_of(error) == seed);
    }
}

/* One request throws what another caught. */
WAY(exception_of_another_request) {
    static std::mutex guard;
    static std::exception_ptr left;
    try {
        fail(seed);
    } catch (...) {
        std::lock_guard<std::mutex> held(guard);
        left = std::current_exception();
    }
    work(seed);
    std::exception_ptr found;
    {
        std::lock_guard<std::mutex> held(guard);
        found = left;
    }
    try {
        std::rethrow_exception(found);
    } catch (std::exception &error) {
        work(seed);
        EXPECT(number_of(error) > 0);
    }
}

WAY(nested_exception) {
    try {
        try {
            fail(seed);
        } catch (...) {
            work(seed);
            std::throw_with_nested(std::logic_error("outer"));
        }
    } catch (std::exception &outer) {
        work(seed);
        try {
            std::rethrow_if_nested(outer);
        } catch (std::exception &inner) {
            EXPECT(number_of(inner) == seed);
        }
    }
}

WAY(exception_through_a_library) {
    int numbers[] = {3, 1, 2};
    bool caught = false;
    try {
        qsort(numbers, 3, sizeof *numbers, [](const void *, const void *) -> int { fail(5); });
    } catch (std::exception &error) {
        work(seed);
        caught = number_of(error) == 5;
    }
    EXPECT(caught);
}

/* Thrown by the C++ library: of allocators that stand before it, mimalloc's C build ends the process where it should throw. */
WAY(length_error) {
    bool caught = false;
    std::vector<unsigned long> numbers;
    try {
        work(seed);
        numbers.reserve(~static_cast<size_t>(0));
    } catch (std::length_error &) {
        work(seed);
        caught = true;
    }
    EXPECT(caught);
}

WAY(future) {
    std::promise<unsigned long> promise;
    std::future<unsigned long> future = promise.get_future();
    std::thread other([&] { work(seed); promise.set_value(seed); });
    work(seed);
    EXPECT(future.get() == seed);
    other.join();
}

WAY(future_that_throws) {
    std::future<void> future = std::async(std::launch::async, [seed] { fail(seed); });
    work(seed);
    try {
        future.get();
        EXPECT(false);
    } catch (std::exception &error) {
        EXPECT(number_of(error) == seed);
    }
}

WAY(deferred_call) {
    std::future<unsigned long> future = std::async(std::launch::deferred, [seed] { work(seed); return seed; });
    work(seed);
    EXPECT(future.get() == seed);
}

WAY(stoppable_thread) {
    bool stopped = false;
    {
        std::jthread thread([&](std::stop_token token) { while (!token.stop_requested()) std::this_thread::yield(); stopped = true; });
        work(seed);
    }
    EXPECT(stopped);
}

WAY(long_jump) {
    jmp_buf back;
    volatile int jumps = 0;
    if (setjmp(back) < 3) {
        jumps = jumps + 1;
        work(seed);
        longjmp(back, jumps);
    }
    EXPECT(jumps == 3);
}

WAY(long_jump_with_signals) {
    sigjmp_buf back;
    volatile int jumps = 0;
    if (sigsetjmp(back, 1) < 3) {
        jumps = jumps + 1;
        work(seed);
        siglongjmp(back, jumps);
    }
    EXPECT(jumps == 3);
}

struct Sequence {
    struct promise_type {
        unsigned long value = 0;
        std::exception_ptr failed;
        Sequence get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(unsigned long next) { value = next; return {}; }
        void return_void() {}
        void unhandled_exception() { failed = std::current_exception(); }
    };
    std::coroutine_handle<promise_type> handle;
};

Sequence counts(unsigned long seed) {
    for (unsigned long i = 0; i < 3; i++) {
        work(seed);
        co_yield seed + i;
    }
    fail(seed);
}

WAY(coroutine) {
    Sequence sequence = counts(seed);
    for (unsigned long i = 0; i < 3; i++) {
        sequence.handle.resume();
        work(seed);
        EXPECT(sequence.handle.promise().value == seed + i);
    }
    sequence.handle.resume();
    try {
        EXPECT(sequence.handle.done() && sequence.handle.promise().failed);
        std::rethrow_exception(sequence.handle.promise().failed);
    } catch (std::exception &error) {
        EXPECT(number_of(error) == seed);
    }
    sequence.handle.destroy();
}

/* A stack of the program's own within that of the request. */
struct Context {
    ucontext_t inside, outside;
    unsigned long seed, sum = 0;
};
thread_local Context *contexts_of_this;

void within() {
    Context *own = contexts_of_this;
    for (int i = 0; i < 3; i++) {
        own->sum += work(own->seed) ? 1 : 0;
        swapcontext(&own->inside, &own->outside);
    }
}

WAY(context_within) {
    std::vector<char> stack(64 << 10);
    Context own;
    own.seed = seed;
    getcontext(&own.inside);
    own.inside.uc_stack.ss_sp = stack.data();
    own.inside.uc_stack.ss_size = stack.size();
    own.inside.uc_link = nullptr;
    contexts_of_this = &own;
    makecontext(&own.inside, within, 0);
    for (int i = 0; i < 3; i++) {
        swapcontext(&own.outside, &own.inside);
        work(seed);
    }
    EXPECT(own.sum == 3);
}

/* A walk up the stack from inside, as profilers and crash reporters do: it ends. */
WAY(backtrace) {
    int frames = 0;
    work(seed);
    _Unwind_Backtrace(
        [](_Unwind_Context *, void *count) {
            work(1);
            return ++*static_cast<int *>(count) > 200 ? _URC_END_OF_STACK : _URC_NO_REASON;
        },
        &frames);
    EXPECT(frames > 2 && frames < 200);
}

struct Base { virtual ~Base() = default; };
struct Derived : Base { unsigned long seed; };

WAY(types_at_run_time) {
    Derived derived;
    derived.seed = seed;
    Base *base = &derived;
    work(seed);
    auto *found = dynamic_cast<Derived *>(base);
    EXPECT(found && found->seed == seed);
}

}  // namespace
