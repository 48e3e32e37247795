// Exceptions in flight while the caller is interrupted, in destructors that unwinding calls and in catch blocks, nested too.
#include <atomic>
#include <exception>

namespace {

constexpr unsigned kDepth = 4;

std::atomic<unsigned long> rounds{0}, wrong{0};

// About a microsecond, with probes in it.
unsigned long work(unsigned long seed) {
    for (int i = 0; i < 1000; i++) seed = seed * 6364136223846793005u + static_cast<unsigned long>(i);
    return seed;
}

void expect(bool holds) {
    if (!holds) wrong++;
}

struct First {
    unsigned long id, worked;
};

struct Second {
    unsigned long id, worked;
};

// Takes its time while an exception passes.
struct Guard {
    unsigned long id;
    ~Guard() {
        expect(std::uncaught_exceptions() == 1);
        expect(work(id) != 1);
        expect(std::uncaught_exceptions() == 1);
    }
};

[[noreturn]] void fail(unsigned long id, unsigned depth) {
    if (depth == 0) throw First{id, work(id)};
    Guard guard{id};
    fail(id, depth - 1);
}

void one_round(unsigned long id) {
    try {
        fail(id, kDepth);
    } catch (const First &first) {
        expect(first.worked == work(id) && first.id == id && std::uncaught_exceptions() == 0);
        try {
            throw Second{id, work(~id)};
        } catch (const Second &second) {
            const std::exception_ptr held = std::current_exception();
            expect(second.worked == work(~id) && second.id == id);
            try {
                std::rethrow_exception(held);
            } catch (const Second &again) {
                expect(work(again.id) == work(id));
            }
        }
        try {
            throw;
        } catch (const First &again) {
            expect(again.worked == work(id) && &again == &first);
        }
    }
    expect(std::uncaught_exceptions() == 0 && !std::current_exception());
    rounds++;
}

}  // namespace
