// Tests the promises of threads in user space to C and C++. The program prints a broken promise and returns 1.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway_threads.hpp>
#include <malloc.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static int failures = 0;
#define EXPECT(condition) \
    if (!(condition)) failures++, std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition)

static void *doubled(void *number) {
    headway_thread_sleep(1000);
    return static_cast<char *>(number) + reinterpret_cast<std::uintptr_t>(number);
}

static void c_functions(void *place) {
    *static_cast<headway_thread **>(place) = nullptr;
    headway_thread *thread;
    void *result = nullptr;
    EXPECT(headway_in_thread());
    EXPECT(headway_spawn(&thread, doubled, reinterpret_cast<void *>(21)) == HEADWAY_OK);
    EXPECT(headway_join(thread, &result) == HEADWAY_OK && result == reinterpret_cast<void *>(42));
    EXPECT(headway_spawn(&thread, doubled, nullptr) == HEADWAY_OK && headway_detach(thread) == HEADWAY_OK);
    EXPECT(headway_spawn(&thread, nullptr, nullptr) == HEADWAY_E_ARGUMENT);
    EXPECT(headway_join(nullptr, nullptr) == HEADWAY_E_ARGUMENT);
    headway_spawn(static_cast<headway_thread **>(place), [](void *) -> void * {
        headway_thread_sleep(3'600'000'000'000);
        return nullptr;
    }, nullptr);
}

// How many kernel threads a runtime may have, and which one the system refuses.
static void kernel_threads() {
    headway_runtime *none = nullptr;
    headway_runtime_options options{};
    options.size = sizeof options;
    for (std::size_t kthreads : {std::size_t{257}, std::size_t{1'000'000'000'000}, SIZE_MAX}) {
        options.kthreads = kthreads;
        EXPECT(headway_runtime_start(&options, &none) == HEADWAY_E_ARGUMENT);
        EXPECT(std::strstr(headway_last_error(), "1 to 256"));
    }
    // Their stacks need more memory than the child may have.
    pid_t child = fork();
    if (child == 0) {
        // Threads that begin find some there before the limit: without, the C library ends the process.
        mallopt(M_ARENA_MAX, 1);
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        mallopt(M_TRIM_THRESHOLD, 32 << 20);
        void *volatile room = std::malloc(16 << 20);
        std::free(room);
        unsigned long pages = 0;
        std::FILE *memory = std::fopen("/proc/self/statm", "r");
        if (memory == nullptr || std::fscanf(memory, "%lu", &pages) != 1) _exit(2);
        rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{128} << 20);
        rlimit limit{bytes, bytes};
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
        options.kthreads = 256;
        if (headway_runtime_start(&options, &none) != HEADWAY_E_START) _exit(4);
        if (std::strstr(headway_last_error(), "thread kthread-")) _exit(0);
        std::fprintf(stderr, "%s\n", headway_last_error());
        _exit(5);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

// A thread does not end its own runtime, which goes on.
static void stops_from_inside(void *runtime) {
    EXPECT(headway_runtime_stop(*static_cast<headway_runtime **>(runtime)) == HEADWAY_E_INSIDE);
    EXPECT(std::strstr(headway_last_error(), "headway_runtime_run()"));
    headway_thread *thread;
    void *result = nullptr;
    EXPECT(headway_spawn(&thread, doubled, reinterpret_cast<void *>(4)) == HEADWAY_OK);
    EXPECT(headway_join(thread, &result) == HEADWAY_OK && result == reinterpret_cast<void *>(8));
}

static void locks() {
    headway::mutex mutex;
    headway::condition_variable changed;
    headway::semaphore permits(2);
    int count = 0;
    std::atomic<int> inside{0};
    std::vector<headway::thread> threads;
    for (int number = 0; number < 20; number++) {
        threads.emplace_back([&](std::string word) {
            permits.acquire();
            EXPECT(++inside <= 2);
            headway::this_thread::yield();
            inside--;
            permits.release();
            std::lock_guard lock(mutex);
            EXPECT(word == "moved here" && !mutex.try_lock());
            count++;
            changed.notify_all();
        }, std::string("moved here"));
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return count == 20; });
    EXPECT(changed.wait_for(lock, std::chrono::milliseconds(1)) == std::cv_status::timeout);
    EXPECT(!changed.wait_for(lock, std::chrono::milliseconds(1), [] { return false; }));
    EXPECT(changed.wait_for(lock, std::chrono::hours(1), [] { return true; }));
    lock.unlock();
    for (auto &thread : threads) thread.join();
    EXPECT(!threads[0].joinable());
}

// A time that no number of nanoseconds holds is for ever, not over at once.
static void waits_for_ever() {
    using namespace std::chrono;
    EXPECT(headway::detail::ns(hours::max()) == UINT64_MAX);
    EXPECT(headway::detail::ns(nanoseconds::max()) == UINT64_MAX);
    EXPECT(headway::detail::ns(nanoseconds::max() - nanoseconds(1)) == UINT64_MAX / 2 - 1);
    EXPECT(headway::detail::ns(hours::min()) == 0 && headway::detail::ns(duration<double>(0.5)) == 500000000);
    static std::atomic<bool> sleeps{false}, woke{false};
    headway::thread sleeper([] {
        sleeps = true;
        headway::this_thread::sleep_for(hours::max());
        woke = true;
    });
    sleeper.detach(); // It is abandoned with the runtime.
    headway::mutex mutex;
    headway::condition_variable changed;
    bool is_told = false;
    headway::thread waiter([&] {
        std::unique_lock lock(mutex);
        EXPECT(changed.wait_for(lock, hours::max(), [&] { return is_told; }));
        EXPECT(is_told);
    });
    for (int round = 0; round < 20 || !sleeps; round++) headway::this_thread::sleep_for(milliseconds(1));
    EXPECT(!woke);
    {
        std::lock_guard lock(mutex);
        is_told = true;
    }
    changed.notify_all();
    waiter.join();
    EXPECT(!woke);
}

// A thread that computes gives way at its probes, so that the other one can stop it.
static void computes() {
    std::atomic<bool> done{false};
    headway::thread spins([&] {
        while (!done) headway_checkpoint();
    });
    headway::this_thread::yield();
    headway::thread stops([&] { done = true; });
    spins.join();
    stops.join();
}

struct Counted {
    static inline std::atomic<int> alive{0};
    int number;
    explicit Counted(int number = 0) : number(number) { alive++; }
    Counted(const Counted &other) : number(other.number) { alive++; }
    ~Counted() { alive--; }
};

static void channels() {
    {
        headway::channel<Counted> channel(3);
        std::vector<headway::thread> senders;
        std::atomic<int> left{4};
        for (int sender = 0; sender < 4; sender++) {
            senders.emplace_back([&] {
                for (int number = 1; number <= 100; number++) EXPECT(channel.send(Counted(number)));
                if (--left == 0) channel.close();
            });
        }
        long sum = 0, count = 0;
        while (auto value = channel.receive()) sum += value->number, count++;
        EXPECT(count == 400 && sum == 4 * 5050);
        for (auto &sender : senders) sender.join();
        EXPECT(!channel.send(Counted(1)));
        headway::channel<Counted> rest(2);
        EXPECT(rest.send(Counted(7)) && rest.send(Counted(8)));
    }
    EXPECT(Counted::alive == 0);
}

static void cells() {
    {
        headway::read_cell<Counted> cell(Counted(1));
        std::atomic<bool> done{false};
        headway::thread reader([&] {
            int last = 0;
            while (!done) {
                int now = cell.read([](const Counted &value) { return value.number; });
                EXPECT(now >= last);
                last = now;
                headway::this_thread::yield();
            }
        });
        for (int number = 2; number <= 200; number++) {
            cell.replace(Counted(number));
            EXPECT(Counted::alive == 1);
            headway::this_thread::yield();
        }
        done = true;
        reader.join();
        EXPECT(cell.read([](const Counted &value) { return value.number; }) == 200);
    }
    EXPECT(Counted::alive == 0);
}

static headway::uthread_local<Counted> own;

static void locals() {
    EXPECT(own.get().number == 0);
    own.get().number = 5;
    std::vector<headway::thread> threads;
    for (int number = 1; number <= 10; number++) {
        threads.emplace_back([number] {
            EXPECT(own.get().number == 0);
            own.get().number = number;
            headway::this_thread::yield();
            EXPECT(own.get().number == number);
        });
    }
    for (auto &thread : threads) thread.join();
    EXPECT(own.get().number == 5 && Counted::alive == 1);
}

int main() {
    for (size_t kthreads : {1, 2}) {
        headway_runtime_options options{};
        options.size = sizeof options;
        options.kthreads = kthreads;
        options.slice_ns = 20'000;
        headway_runtime *runtime;
        headway_thread *sleeps;
        EXPECT(headway_runtime_start(&options, &runtime) == HEADWAY_OK);
        EXPECT(headway_runtime_run(runtime, c_functions, &sleeps) == HEADWAY_OK);
        EXPECT(headway_runtime_run(runtime, nullptr, nullptr) == HEADWAY_E_ARGUMENT);
        EXPECT(headway_runtime_run(runtime, stops_from_inside, &runtime) == HEADWAY_OK);
        EXPECT(headway_runtime_stop(runtime) == HEADWAY_OK);
        EXPECT(headway_join(sleeps, nullptr) == HEADWAY_E_NONE);

        headway::runtime cpp(kthreads);
        cpp.run(locks);
        cpp.run(waits_for_ever);
        cpp.run(computes);
        cpp.run(channels);
        cpp.run(cells);
        cpp.run(locals);
        EXPECT(Counted::alive == 0);
        EXPECT(cpp.run([] { return std::string("returned"); }) == "returned");
        int number = 7;
        std::string text = "moved";
        EXPECT(&cpp.run([&]() -> int & { return number; }) == &number);
        EXPECT(&cpp.run([&]() -> const int & { return number; }) == &number);
        EXPECT(std::string(cpp.run([&]() -> std::string && { return std::move(text); })) == "moved" && text.empty());
        try {
            cpp.run([] { throw std::string("thrown"); });
            EXPECT(!"it throws");
        } catch (const std::string &thrown) {
            EXPECT(thrown == "thrown");
        }
    }
    kernel_threads();
    headway_runtime_options options{};
    options.slice_ns = 20'000;
    EXPECT(headway::runtime(options).run([] { return 7; }) == 7);
    options.host_socket = "/run/headway/host.sock";
    try {
        headway::runtime refused(options);
        EXPECT(!"a daemon grants cores to an application");
    } catch (const headway::error &error) {
        EXPECT(error.code == HEADWAY_E_ARGUMENT);
    }
    // Outside of a runtime's threads.
    EXPECT(!headway_in_thread());
    static headway_local nobodys{nullptr};
    EXPECT(headway_local_get(&nobodys) == nullptr && headway_local_set(&nobodys, &nobodys) == HEADWAY_E_ARGUMENT);
    EXPECT(headway_channel_send(nullptr, nullptr) == HEADWAY_E_ARGUMENT);
    EXPECT(headway_read_cell_read(nullptr, nullptr, nullptr) == HEADWAY_E_ARGUMENT);
    EXPECT(headway_spawn(nullptr, doubled, nullptr) == HEADWAY_E_ARGUMENT);
    headway::mutex mutex;
    std::unique_lock lock(mutex);
    headway::condition_variable never;
    try {
        never.wait(lock);
        EXPECT(!"nobody can wait here");
    } catch (const headway::error &error) {
        EXPECT(error.code == HEADWAY_E_ARGUMENT && std::string(error.what()).find("runtime") != std::string::npos);
    }
    return failures > 0;
}
