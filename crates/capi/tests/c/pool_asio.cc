// Asio over classes of a pool: handlers of timers, strands and futures run as jobs.
#include <asio.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <headway_asio.hpp>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                            \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

enum { POINT, REPORT };

int main() {
    headway_pool_class point{}, report{};
    point.name = "point";
    report.name = "report";
    headway::pool pool({point, report}, "srpt", 2);
    headway::asio_context context(pool);
    auto points = context.executor(POINT), reports = context.executor(REPORT);
    static_assert(asio::execution::is_executor<decltype(points)>::value, "");
    CHECK(points == context.executor(POINT) && points != reports);

    CHECK(asio::post(points, asio::use_future([] { return 6 * 7; })).get() == 42);
    // A type-erased executor, as Asio's own objects hold them.
    asio::any_io_executor erased = reports;
    CHECK(asio::post(erased, asio::use_future([] { return 7; })).get() == 7);
    CHECK(&asio::query(erased, asio::execution::context) == &context);

    // Handlers of a strand run one after the other, in their order, by whichever worker.
    auto strand = asio::make_strand(points);
    int next = 0;
    for (int at = 0; at < 1000; at++) asio::post(strand, [&next, at] { CHECK(next++ == at); });
    asio::post(strand, asio::use_future([] {})).get();
    CHECK(next == 1000);

    // A timer of an io_context whose handler is a job of the pool: the only one, since a future has its value before its job ends.
    pool.wait_idle();
    asio::io_context io;
    asio::steady_timer timer(io, std::chrono::milliseconds(1));
    std::atomic<bool> in_job{false};
    std::promise<void> fired;
    timer.async_wait(asio::bind_executor(points, [&](asio::error_code failure) {
        headway_pool_stats stats = pool.stats();
        in_job = !failure && stats.running == 1;
        fired.set_value();
    }));
    io.run();
    fired.get_future().get();
    CHECK(in_job);
    pool.wait_idle();
    headway_pool_stats stats = pool.stats();
    CHECK(stats.submitted == stats.done && stats.done >= 5);

    // A context whose jobs wait still, and post more by its executor, ends after them.
    std::atomic<int> handled{0};
    {
        headway::asio_context brief(pool);
        auto executor = brief.executor(POINT);
        for (int at = 0; at < 100; at++)
            asio::post(executor, [executor, &handled] {
                asio::post(executor, [&handled] { handled++; });
            });
    }
    CHECK(handled == 100);
}
