/* Locks whose owner is a thread, held where a request is interrupted; and what is made once. */
#include "torture.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <dlfcn.h>
#include <latch>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <semaphore>
#include <semaphore.h>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr std::chrono::seconds PATIENCE(60);

WAY(mutex) {
    static std::mutex lock;
    static inside section;
    std::lock_guard<std::mutex> held(lock);
    VISIT(section, 1);
}

WAY(mutex_with_another_inside) {
    static std::mutex outer, inner;
    static inside section;
    std::lock_guard<std::mutex> one(outer);
    work(seed);
    std::lock_guard<std::mutex> two(inner);
    VISIT(section, 1);
}

WAY(recursive_mutex) {
    static std::recursive_mutex lock;
    static inside section;
    std::lock_guard<std::recursive_mutex> one(lock);
    work(seed);
    std::lock_guard<std::recursive_mutex> two(lock);
    VISIT(section, 1);
}

WAY(timed_mutex) {
    static std::timed_mutex lock;
    static inside section;
    const bool locked = lock.try_lock_for(PATIENCE);
    EXPECT(locked);
    if (!locked) return;
    VISIT(section, 1);
    lock.unlock();
}

WAY(shared_mutex) {
    static std::shared_mutex lock;
    static inside section;
    {
        std::unique_lock<std::shared_mutex> held(lock);
        VISIT(section, 1);
    }
    std::shared_lock<std::shared_mutex> held(lock);
    work(seed);
}

pthread_mutex_t *made(int type, int robust) {
    auto *lock = new pthread_mutex_t;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutex_init(lock, &attributes);
    return lock;
}

WAY(error_checking_mutex) {
    static pthread_mutex_t *lock = made(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
    static inside section;
    EXPECT(pthread_mutex_lock(lock) == 0);
    VISIT(section, 1);
    EXPECT(pthread_mutex_lock(lock) == EDEADLK);
    work(seed);
    EXPECT(pthread_mutex_unlock(lock) == 0);
    work(seed);
    EXPECT(pthread_mutex_unlock(lock) == EPERM);
}

WAY(robust_mutex) {
    static pthread_mutex_t *lock = made(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
    static inside section;
    EXPECT(pthread_mutex_lock(lock) == 0);
    VISIT(section, 1);
    EXPECT(pthread_mutex_unlock(lock) == 0);
}

WAY(readers_and_writer) {
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    static inside section;
    EXPECT(pthread_rwlock_wrlock(&lock) == 0);
    VISIT(section, 1);
    EXPECT(pthread_rwlock_wrlock(&lock) == EDEADLK);
    EXPECT(pthread_rwlock_unlock(&lock) == 0);
    EXPECT(pthread_rwlock_rdlock(&lock) == 0);
    work(seed);
    EXPECT(pthread_rwlock_unlock(&lock) == 0);
}

sem_t *of(unsigned count) {
    auto *semaphore = new sem_t;
    sem_init(semaphore, 0, count);
    return semaphore;
}

WAY(posix_semaphore) {
    static sem_t *semaphore = of(1);
    static inside section;
    while (sem_wait(semaphore)) {}
    VISIT(section, 1);
    sem_post(semaphore);
}

WAY(posix_semaphore_of_three) {
    static sem_t *semaphore = of(3);
    static inside section;
    while (sem_wait(semaphore)) {}
    VISIT(section, 3);
    sem_post(semaphore);
}

/* By `acquire` a thread may sleep for ever beside a free permit, in any program: `release` wakes nobody unless the count was 0 (GCC's bug 104928, and Clang's). */
WAY(counting_semaphore) {
    static std::counting_semaphore<3> semaphore(3);
    static inside section;
    while (!semaphore.try_acquire_for(std::chrono::milliseconds(20))) {}
    VISIT(section, 3);
    semaphore.release();
}

/* The lock of a stream, which its own thread may take again. */
WAY(stream_lock) {
    static FILE *lines = tmpfile();
    static inside section;
    flockfile(lines);
    fprintf(lines, "a line");
    VISIT(section, 1);
    fprintf(lines, " of one request\n");
    if (seed % 64 == 0) {
        fflush(lines);
        rewind(lines);
        char line[64];
        while (fgets(line, sizeof line, lines)) EXPECT(strcmp(line, "a line of one request\n") == 0);
    }
    funlockfile(lines);
}

WAY(condition_with_a_timeout) {
    static std::mutex lock;
    static std::condition_variable changed;
    static inside section;
    std::unique_lock<std::mutex> held(lock);
    changed.wait_for(held, std::chrono::microseconds(50));
    VISIT(section, 1);
    changed.notify_all();
}

/* Each request needs what another gives: nobody waits who did not give before. */
WAY(condition) {
    static std::mutex lock;
    static std::condition_variable given;
    static unsigned long tokens;
    {
        std::lock_guard<std::mutex> held(lock);
        tokens++;
        work(seed);
    }
    given.notify_one();
    work(seed);
    std::unique_lock<std::mutex> held(lock);
    given.wait(held, [] { return tokens > 0; });
    work(seed);
    tokens--;
}

WAY(atomic_wait) {
    static std::atomic<int> taken;
    static inside section;
    for (int free = 0; !taken.compare_exchange_strong(free, 1); free = 0) taken.wait(1);
    VISIT(section, 1);
    taken.store(0);
    taken.notify_one();
}

WAY(atomic_shared_pointer) {
    static std::shared_ptr<std::string> shared = std::make_shared<std::string>("0");
    auto mine = std::make_shared<std::string>(std::to_string(seed));
    std::atomic_store(&shared, mine);
    work(seed);
    auto read = std::atomic_load(&shared);
    EXPECT(!read->empty() && strtoul(read->c_str(), nullptr, 10) > 0);
}

WAY(latch) {
    std::latch both(2);
    std::thread other([&] { work(seed); both.count_down(); });
    work(seed);
    both.arrive_and_wait();
    other.join();
}

WAY(once) {
    static std::once_flag globally;
    static int made;
    std::call_once(globally, [] { work(5); made++; });
    EXPECT(made == 1);
}

/* The callable is in thread-local variables of the C++ library: each request makes something of its own, right after it computed a key. */
WAY(once_of_its_own) {
    for (unsigned long i = 0; i < 4; i++) {
        std::once_flag own;
        unsigned long made = 0, hashed = work(seed + i);
        std::call_once(own, [&] { work(1); made = hashed; });
        EXPECT(made == hashed);
    }
}

WAY(once_that_throws) {
    std::once_flag throws;
    int tries = 0;
    for (int i = 0; i < 3; i++) try {
            std::call_once(throws, [&] { work(1); if (++tries < 3) throw std::runtime_error("again"); });
        } catch (std::runtime_error &) {
        }
    EXPECT(tries == 3);
}

WAY(once_with_another_inside) {
    std::once_flag outer, inner;
    unsigned long sum = 0;
    std::call_once(outer, [&] { work(seed); std::call_once(inner, [&] { work(seed); sum += seed; }); work(seed); sum += seed; });
    EXPECT(sum == 2 * seed);
}

WAY(static_variable) {
    static inside section;
    static int made = [] { VISIT(section, 1); return 24; }();
    EXPECT(made == 24);
}

/* Those that are made late: each number is made once, by whoever comes first. */
template <int> int static_of(unsigned long seed) {
    static int times = 0;
    static int made = [&] { work(seed); return ++times; }();
    return made;
}

WAY(many_static_variables) {
    EXPECT(static_of<1>(seed) == 1 && static_of<2>(seed) == 1 && static_of<3>(seed) == 1 && static_of<4>(seed) == 1);
    EXPECT(static_of<5>(seed) == 1 && static_of<6>(seed) == 1 && static_of<7>(seed) == 1 && static_of<8>(seed) == 1);
}

int third_object(dl_phdr_info *, size_t, void *count) {
    work(1);
    return ++*static_cast<int *>(count) == 3;
}

/* The loader holds its locks while it calls this, and its owner may take them again. */
WAY(loader_lock) {
    int objects = 0;
    dl_iterate_phdr(third_object, &objects);
    EXPECT(objects == 3);
    void *self = dlopen(nullptr, RTLD_NOW);
    EXPECT(self && dlsym(self, "malloc"));
    dlclose(self);
}

/* Constructors of a library, called by the loader under its lock. */
WAY(library_with_constructors) {
    void *handle = dlopen("libtorture_probed.so", RTLD_NOW);
    EXPECT(handle);
    if (!handle) return;
    work(seed);
    auto constructed = reinterpret_cast<int *>(dlsym(handle, "library_constructed"));
    EXPECT(constructed && *constructed == 1);
    dlclose(handle);
}

}  // namespace
