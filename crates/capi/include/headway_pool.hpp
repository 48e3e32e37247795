/* A pool in process for C++17: submit a callable, get its future. Over headway_pool.h; see docs/pool.md. */
#ifndef HEADWAY_POOL_HPP
#define HEADWAY_POOL_HPP

#include "headway_error.hpp"
#include "headway_pool.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace headway {

namespace detail {

/* What runs as a job, and owns itself until that has ended. */
template <class Job> struct owned_job {
    static void run_owned(void *data) noexcept { static_cast<Job *>(data)->run(); }
    static void end_owned(void *data, int code) noexcept {
        std::unique_ptr<Job> job(static_cast<Job *>(data));
        if (code != HEADWAY_OK) job->unrun(code);
    }
};

/* A callable, and the promise of its result. */
template <class Body> struct promised_job : owned_job<promised_job<Body>> {
    using Result = std::invoke_result_t<Body &>;
    explicit promised_job(Body body) : body(std::move(body)) {}
    void run() {
        try {
            if constexpr (std::is_void_v<Result>) {
                std::invoke(body);
                promise.set_value();
            } else {
                promise.set_value(std::invoke(body));
            }
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    }
    void unrun(int code) { promise.set_exception(std::make_exception_ptr(error(code))); }
    Body body;
    std::promise<Result> promise;
};

/* A callable that nobody awaits. */
template <class Body> struct posted_job : owned_job<posted_job<Body>> {
    explicit posted_job(Body body) : body(std::move(body)) {}
    void run() { std::invoke(body); }
    void unrun(int) {}
    Body body;
};

} // namespace detail

/* The result of a job, as a std::future has it; it becomes one by std::move. A job of the same pool that waits for it runs the other one itself if that
 * still waits, so any number may wait for each other's. Dropping it lets the job go on. */
template <class Result> class job_future {
  public:
    job_future() noexcept = default;
    job_future(job_future &&other) noexcept
        : future_(std::move(other.future_)), job_(std::exchange(other.job_, nullptr)) {}
    job_future &operator=(job_future &&other) noexcept {
        std::swap(future_, other.future_);
        std::swap(job_, other.job_);
        return *this;
    }
    ~job_future() { detach(); }
    operator std::future<Result>() && {
        detach();
        return std::move(future_);
    }

    /* What the body returned, or throws what it threw, or an error if the job was shed, cancelled or abandoned. */
    Result get() {
        wait();
        return future_.get();
    }
    void wait() {
        if (job_ == nullptr) return future_.wait();
        int code = headway_job_wait(std::exchange(job_, nullptr));
        // In a forked child nobody runs the job.
        if (future_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) throw error(code);
    }
    template <class Rep, class Period>
    std::future_status wait_for(const std::chrono::duration<Rep, Period> &most) const {
        return future_.wait_for(most);
    }
    template <class Clock, class Duration>
    std::future_status wait_until(const std::chrono::time_point<Clock, Duration> &at) const {
        return future_.wait_until(at);
    }
    bool valid() const noexcept { return future_.valid(); }

  private:
    friend class pool;
    job_future(std::future<Result> future, headway_job *job) noexcept : future_(std::move(future)), job_(job) {}
    void detach() noexcept {
        if (job_ != nullptr) headway_job_detach(std::exchange(job_, nullptr));
    }

    std::future<Result> future_;
    headway_job *job_ = nullptr;
};

/* Threads that run callables in the order that a policy says. Classes are numbers, in the order of their declaration. */
class pool {
  public:
    /* With all options; their size is set here. */
    explicit pool(headway_pool_options options = {}) {
        options.size = sizeof options;
        detail::check(headway_pool_start(&options, &handle_));
    }
    /* pool({{.name = "point"}, {.name = "report"}}, "srpt"), as far as the compiler knows designated initializers. */
    explicit pool(std::initializer_list<headway_pool_class> classes, const char *policy = nullptr, std::uint32_t workers = 0)
        : pool([&] {
              headway_pool_options options{};
              options.policy = policy;
              options.classes = classes.begin();
              options.class_count = classes.size();
              options.workers = workers;
              return options;
          }()) {}
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;
    /* Waits for all jobs. stop() ends sooner. */
    ~pool() {
        if (!is_stopped_) headway_pool_stop(handle_, UINT64_MAX, nullptr);
    }

    /* Submits body(). Its job_future has what it returns, or throws what it threw, or an error if it was shed, cancelled or abandoned. Throws an
     * error if it is not accepted: HEADWAY_E_OVERLOADED. Dropping the future lets the job go on. */
    template <class Body> auto submit(std::uint32_t class_index, Body &&body) {
        using Job = detail::promised_job<std::decay_t<Body>>;
        auto job = std::make_unique<Job>(std::forward<Body>(body));
        auto result = job->promise.get_future();
        headway_job *handle = nullptr;
        submit_owned(class_index, std::move(job), &handle);
        return job_future<typename Job::Result>(std::move(result), handle);
    }

    /* As submit(), in a class that is learnt from the key: keys with similar service times share one (headway_pool_options.learn_classes). */
    template <class Body> auto submit_by_key(std::uint64_t key, Body &&body) {
        using Job = detail::promised_job<std::decay_t<Body>>;
        auto job = std::make_unique<Job>(std::forward<Body>(body));
        auto result = job->promise.get_future();
        headway_job *handle = nullptr;
        submit_owned(HEADWAY_CLASS_LEARNT, std::move(job), &handle, key);
        return job_future<typename Job::Result>(std::move(result), handle);
    }

    /* Submits body() without a future. What it throws ends the program; where it is not begun, it is destroyed. */
    template <class Body> void post(std::uint32_t class_index, Body &&body) {
        using Job = detail::posted_job<std::decay_t<Body>>;
        submit_owned(class_index, std::make_unique<Job>(std::forward<Body>(body)), nullptr);
    }

    /* The result of another job, for a job. */
    template <class Result> static Result get(job_future<Result> future) { return future.get(); }
    /* The result of any future, without keeping the worker. It keeps one of the pool's blocking_threads: where so many wait for jobs that have not begun, none
     * begins any more. */
    template <class Result> static Result get(std::future<Result> future) {
        headway_pool_blocking([](void *data) noexcept { static_cast<std::future<Result> *>(data)->wait(); }, &future);
        return future.get();
    }

    void wait_idle() const { detail::check(headway_pool_wait_idle(handle_)); }

    headway_pool_stats stats() const {
        headway_pool_stats stats{};
        stats.size = sizeof stats;
        detail::check(headway_pool_read_stats(handle_, &stats));
        return stats;
    }

    /* For a program that answers Prometheus itself, in the text format of OpenMetrics. */
    std::string metrics() const {
        std::string text;
        std::size_t length = 0;
        int code;
        while ((code = headway_pool_metrics(handle_, text.data(), text.size(), &length)) == HEADWAY_E_TOO_LARGE)
            text.resize(length + 64); // Counts grow meanwhile, and their digits.
        detail::check(code);
        text.resize(length);
        return text;
    }
    /* The port at which it answers Prometheus, or 0. */
    std::uint16_t metrics_port() const noexcept { return headway_pool_metrics_port(handle_); }

    /* Ends the pool: as headway_pool_stop(). Nothing else may be called afterwards. */
    void stop(std::chrono::nanoseconds deadline) {
        auto deadline_ns = static_cast<std::uint64_t>(deadline.count() > 0 ? deadline.count() : 0);
        int code = headway_pool_stop(handle_, deadline_ns, nullptr);
        is_stopped_ = true;
        // Its jobs use the handle until they have ended.
        if (code != HEADWAY_E_STUCK) handle_ = nullptr;
        detail::check(code);
    }

  private:
    template <class Job>
    void submit_owned(std::uint32_t class_index, std::unique_ptr<Job> job, headway_job **handle, std::uint64_t key = 0) {
        headway_job_options options{};
        options.size = sizeof options;
        options.function = &Job::run_owned;
        options.ended = &Job::end_owned;
        options.data = job.get();
        options.class_index = class_index;
        options.key = key;
        detail::check(headway_pool_try_submit(handle_, &options, handle, nullptr));
        job.release();
    }

    headway_pool *handle_ = nullptr;
    bool is_stopped_ = false;
};

/* Whether the calling job was cancelled or its pool has ended: a long one asks now and then. */
inline bool cancelled() noexcept { return headway_pool_cancelled() != 0; }

} // namespace headway

#endif
