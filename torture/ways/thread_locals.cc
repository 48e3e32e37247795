/* Thread-local variables of all kinds, and who a thread is. */
#include "torture.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <clocale>
#include <mutex>
#include <memory>
#include <memory_resource>
#include <pthread.h>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

thread_local unsigned long number;
thread_local std::vector<unsigned long> numbers;
thread_local std::string text;

WAY(thread_local_number) {
    number = seed;
    work(seed);
    EXPECT(number == seed);
}

WAY(thread_local_address) {
    unsigned long *kept = &number;
    *kept = seed;
    work(seed);
    number += 1;
    EXPECT(*kept == seed + 1);
}

WAY(thread_local_vector) {
    numbers.assign(8, seed);
    work(seed);
    for (unsigned long one : numbers) EXPECT(one == seed);
}

WAY(thread_local_string) {
    text = std::to_string(seed) + " which is too long for the object itself";
    work(seed);
    EXPECT(strtoul(text.c_str(), nullptr, 10) == seed);
}

struct Built {
    std::vector<unsigned long> filled;
    explicit Built(unsigned long seed) {
        for (int i = 0; i < 64; i++) filled.push_back(work(seed) | 1);
    }
    ~Built() { filled.clear(); }
};

/* A variable that is interrupted while it is constructed. */
WAY(thread_local_in_construction) {
    static thread_local Built built(7);
    EXPECT(built.filled.size() == 64 && (built.filled[63] & 1));
}

std::vector<unsigned long> made() {
    std::vector<unsigned long> table(512);
    for (int round = 0; round < 20; round++) {
        unsigned long state = 1;
        for (auto &cell : table) cell = (state = state * 6364136223846793005u + 1);
        work(state);
    }
    return table;
}

/* One that a long function makes and that is read while others make theirs; its thread's destructor runs once. */
WAY(thread_local_made_by_a_long_function) {
    static thread_local std::vector<unsigned long> table = made();
    static const unsigned long last = made().back();
    std::vector<unsigned long> &read = table;
    work(seed);
    EXPECT(read.size() == 512 && read.back() == last);
}

/* Anew in each round: one that is made, used and freed. */
WAY(thread_local_freed) {
    static thread_local std::unique_ptr<std::vector<unsigned long>> own;
    own = std::make_unique<std::vector<unsigned long>>(100, seed);
    unsigned long &cell = (*own)[50];
    work(seed);
    EXPECT(cell == seed);
    own.reset();
    work(seed);
    EXPECT(!own);
}

/* A thread's generator gives a token to one request alone. */
WAY(thread_local_engine) {
    static unsigned long generators;
    static std::mutex guard;
    static std::set<unsigned long> *given = new std::set<unsigned long>;
    static thread_local std::mt19937_64 engine(__atomic_add_fetch(&generators, 1, __ATOMIC_RELAXED));
    unsigned long tokens[8];
    for (auto &token : tokens) token = engine(), work(seed);
    std::lock_guard<std::mutex> lock(guard);
    if (given->size() > 1000000) return;
    for (auto token : tokens) EXPECT(given->insert(token).second);
}

WAY(thread_local_memory_pool) {
    static thread_local std::pmr::unsynchronized_pool_resource pool;
    std::pmr::vector<std::pmr::string> strings(&pool);
    for (int i = 0; i < 8; i++) {
        strings.emplace_back(std::to_string(seed + (unsigned long)i) + " is longer than what fits inside");
        work(seed);
    }
    for (unsigned long i = 0; i < 8; i++) EXPECT(strtoul(strings[i].c_str(), nullptr, 10) == seed + i);
}

struct Cell {
    Cell *next;
    unsigned long owner;
};

/* Of a thread, which frees them when it ends. */
struct FreeList {
    Cell *first = nullptr;
    ~FreeList() {
        while (Cell *cell = first) first = cell->next, free(cell);
    }
};

WAY(thread_local_free_list) {
    static thread_local FreeList list;
    Cell *&free_cells = list.first;
    Cell *mine[4];
    for (auto &cell : mine) {
        cell = free_cells ? free_cells : static_cast<Cell *>(malloc(sizeof(Cell)));
        work(seed);
        if (cell == free_cells) free_cells = cell->next;
        cell->owner = seed;
    }
    work(seed);
    for (auto cell : mine) EXPECT(cell->owner == seed);
    for (auto cell : mine) {
        cell->next = free_cells;
        work(seed);
        free_cells = cell;
    }
}

pthread_key_t key_of_all() {
    static const pthread_key_t key = [] { pthread_key_t made; pthread_key_create(&made, nullptr); return made; }();
    return key;
}

WAY(pthread_key) {
    pthread_setspecific(key_of_all(), reinterpret_cast<void *>(seed + 1));
    work(seed);
    EXPECT(pthread_getspecific(key_of_all()) == reinterpret_cast<void *>(seed + 1));
}

unsigned long destroyed;

struct AtEnd {
    unsigned long seed = 0;
    ~AtEnd() { work(seed); __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED); }
};

thread_local AtEnd at_end;

/* A thread that a request makes runs its destructors before it is joined. */
WAY(destructors_of_a_thread) {
    const unsigned long before = __atomic_load_n(&destroyed, __ATOMIC_RELAXED);
    std::thread other([&] { at_end.seed = seed; work(seed); });
    work(seed);
    other.join();
    EXPECT(__atomic_load_n(&destroyed, __ATOMIC_RELAXED) > before);
}

WAY(error_number) {
    errno = static_cast<int>(seed % 1000);
    work(seed);
    EXPECT(errno == static_cast<int>(seed % 1000));
    EXPECT(strtoul("99999999999999999999999999", nullptr, 10) == ~0ul);
    work(seed);
    EXPECT(errno == ERANGE);
}

WAY(error_text) {
    const int unknown = 10000 + static_cast<int>(seed % 1000);
    const char *said = strerror(unknown);
    work(seed);
    EXPECT(atoi(said + strlen(said) - 5) == unknown);
}

WAY(signal_text) {
    const char *said = strsignal(static_cast<int>(70 + seed % 20));
    work(seed);
    EXPECT(atoi(said + strlen(said) - 2) == static_cast<int>(70 + seed % 20));
}

WAY(loader_error) {
    const std::string library = "no-such-" + std::to_string(seed) + ".so";
    EXPECT(!dlopen(library.c_str(), RTLD_NOW));
    work(seed);
    const char *said = dlerror();
    EXPECT(said && strstr(said, library.c_str()));
}

WAY(identity) {
    const pthread_t self = pthread_self();
    const std::thread::id id = std::this_thread::get_id();
    work(seed);
    EXPECT(pthread_equal(self, pthread_self()));
    EXPECT(id == std::this_thread::get_id());
}

WAY(stack_bounds) {
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    EXPECT(pthread_getattr_np(pthread_self(), &attributes) == 0);
    work(seed);
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    char *here = reinterpret_cast<char *>(&bytes);
    EXPECT(static_cast<char *>(low) < here && here < static_cast<char *>(low) + bytes);
}

/* Deep enough to need most of a stack, with canaries where the compiler puts some. */
unsigned long deep(unsigned long seed, int depth) {
    volatile unsigned char frame[1024];
    for (int i = 0; i < 1024; i += 64) frame[i] = static_cast<unsigned char>(seed + static_cast<unsigned long>(depth));
    work(seed);
    const unsigned long below = depth > 0 ? deep(seed, depth - 1) : 0;
    for (int i = 0; i < 1024; i += 64) EXPECT(frame[i] == static_cast<unsigned char>(seed + static_cast<unsigned long>(depth)));
    return below + 1;
}

WAY(deep_stack) { EXPECT(deep(seed, 100) == 101); }

WAY(locale_of_a_thread) {
    static const locale_t utf8 = newlocale(LC_ALL_MASK, "C.UTF-8", nullptr), c = newlocale(LC_ALL_MASK, "C", nullptr);
    uselocale(seed % 2 ? utf8 : c);
    work(seed);
    EXPECT(MB_CUR_MAX == static_cast<size_t>(seed % 2 ? 6 : 1));
    uselocale(LC_GLOBAL_LOCALE);
}

WAY(text_stream) {
    std::ostringstream out;
    out << seed;
    work(seed);
    out << '/' << seed << '/' << 0.5;
    EXPECT(out.str() == std::to_string(seed) + "/" + std::to_string(seed) + "/0.5");
}

/* A variable of a library that is loaded while requests are suspended, by either model. */
void of_a_library(const char *library, unsigned long seed) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    EXPECT(handle);
    if (!handle) return;
    auto cell = reinterpret_cast<unsigned long *(*)()>(dlsym(handle, "library_cell"));
    *cell() = seed;
    work(seed);
    EXPECT(*cell() == seed);
    dlclose(handle);
}

WAY(thread_local_of_a_library) { of_a_library("libtorture_dynamic.so", seed); }

WAY(thread_local_of_a_library_by_initial_exec) { of_a_library("libtorture_initial.so", seed); }

WAY(cancellation_state) {
    int before, now;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_setcanceltype(seed % 2 ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, &before);
    work(seed);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &now);
    EXPECT(now == (seed % 2 ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED));
}

}  // namespace
