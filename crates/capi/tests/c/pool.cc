// Tests the promises of headway::pool: futures have results and exceptions, also of what was not begun; jobs wait for jobs; nothing leaks.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <headway_pool.hpp>
#include <headway_threads.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                            \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

enum { POINT, REPORT };

static std::atomic<int> alive{0};

struct Counted {
    Counted() { alive++; }
    Counted(const Counted &) { alive++; }
    Counted(Counted &&) noexcept { alive++; }
    ~Counted() { alive--; }
};

template <class Body> static int code_of(Body body) {
    try {
        body();
    } catch (const headway::error &error) {
        CHECK(std::string(error.what()).size() > 10);
        return error.code;
    }
    return HEADWAY_OK;
}

int main(int argc, char **argv) {
    const char *policy = argc > 1 ? argv[1] : nullptr;
    headway_pool_class point{}, report{};
    point.name = "point";
    point.queue_limit = 2;
    report.name = "report";
    CHECK(code_of([&] { headway::pool({point, point}); }) == HEADWAY_E_ARGUMENT);
    {
        headway::pool pool({point, report}, policy, 2);
        CHECK(pool.submit(POINT, [] { return std::string("row"); }).get() == "row");
        pool.submit(POINT, [] {}).get();
        auto thrown = pool.submit(POINT, []() -> int { throw std::runtime_error("no rows"); });
        try {
            thrown.get();
            CHECK(!"it throws");
        } catch (const std::runtime_error &error) {
            CHECK(std::string(error.what()) == "no rows");
        }
        CHECK(code_of([&] { pool.submit(9, [] {}); }) == HEADWAY_E_ARGUMENT);

        // As many jobs as there are workers wait for children; each is interrupted now and then where the policy does so.
        std::vector<std::future<long>> sums;
        for (long part = 0; part < 4; part++)
            sums.push_back(pool.submit(REPORT, [&pool, part, counted = Counted()] {
                auto child = pool.submit(REPORT, [part] {
                    long sum = 0;
                    for (long number = 0; number < 20000; number++) {
                        sum += number * part;
                        headway_checkpoint();
                    }
                    return sum;
                });
                return headway::pool::get(std::move(child));
            }));
        long sum = 0;
        for (auto &part : sums) sum += part.get();
        CHECK(sum == 6 * (19999L * 20000 / 2));

        // Two jobs keep the workers, two wait, the fifth is refused. A policy with a queue for each worker places a job as it is submitted: beside a parent that has not been
        // counted as done yet, it may put both behind each other, and the second would wait for the first.
        pool.wait_idle();
        std::atomic<bool> open{false};
        std::atomic<int> running{0};
        std::vector<std::future<void>> waits;
        auto blocks = [&, counted = Counted()] {
            running++;
            while (!open) std::this_thread::yield();
        };
        for (int at = 0; at < 2; at++) waits.push_back(pool.submit(REPORT, blocks));
        while (running < 2) std::this_thread::yield();
        for (int at = 0; at < 2; at++) waits.push_back(pool.submit(POINT, [counted = Counted()] {}));
        CHECK(code_of([&] { pool.submit(POINT, [counted = Counted()] {}); }) == HEADWAY_E_OVERLOADED);
        CHECK(pool.stats().refused == 1);
        // What waits is abandoned, and says so to who awaits it.
        CHECK(code_of([&] { pool.stop(std::chrono::nanoseconds(0)); }) == HEADWAY_E_STUCK);
        CHECK(code_of([&] { waits[2].get(); }) == HEADWAY_E_ABANDONED);
        CHECK(code_of([&] { waits[3].get(); }) == HEADWAY_E_ABANDONED);
        open = true;
        waits[0].get();
        waits[1].get();
    }
    {
        // More jobs wait for children than there are threads for it, and the children are behind them all.
        headway_pool_options options{};
        options.policy = policy;
        options.workers = 1;
        options.blocking_threads = 1;
        headway::pool pool(options);
        std::atomic<bool> open{false};
        pool.post(0, [&open] {
            while (!open) std::this_thread::yield();
        });
        std::vector<headway::job_future<int>> parents;
        for (int at = 0; at < 16; at++)
            parents.push_back(pool.submit(0, [&pool, at] {
                return headway::pool::get(pool.submit(0, [at, counted = Counted()] { return at; }));
            }));
        open = true;
        for (int at = 0; at < 16; at++) CHECK(parents[at].get() == at);
        CHECK(!parents[0].valid());
        std::future<int> plain = pool.submit(0, [] { return 7; });
        CHECK(plain.get() == 7);
    }
    {
        // Classes are learnt from keys, and what a pool counts is a text.
        headway_pool_options options{};
        options.workers = 1;
        options.policy = policy;
        options.learn_classes = 2;
        headway::pool pool(options);
        for (int at = 0; at < 10; at++) CHECK(pool.submit_by_key(7, [at] { return at; }).get() == at);
        pool.wait_idle();
        auto metrics = pool.metrics();
        CHECK(metrics.find("class=\"unknown\",end=\"done\"} 1\n") != std::string::npos);
        CHECK(metrics.substr(metrics.size() - 6) == "# EOF\n");
        CHECK(pool.metrics_port() == 0);
    }
    {
        // The destructor waits for all.
        std::atomic<int> done{0};
        {
            headway::pool pool({point, report}, policy, 1);
            for (int at = 0; at < 100; at++) pool.post(REPORT, [&done, counted = Counted()] { done++; });
        }
        CHECK(done == 100);
    }
    // A job is destroyed by the thread that ran it, just after its future is ready.
    while (alive > 0) std::this_thread::yield();
}
