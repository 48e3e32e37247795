/* Code that believes in threads, in requests that are interrupted at every probe: thread-locals of all kinds, locks of all kinds, what the C and C++
 * libraries keep for a thread. Each request does all of it, and counts what was not as a thread would find it. */
#include <clocale>
#include <cerrno>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <headway.h>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <condition_variable>
#include <future>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
#include "client.h"

namespace {

enum { REQUESTS = 160, ROUNDS = 8, IN_FLIGHT = 12 };
unsigned long wrong[64];
std::string last_wrong;

/* A microsecond or two, with probes in it. */
unsigned long work(unsigned long seed) {
  for (int i = 0; i < 800; i++) seed = seed * 6364136223846793005u + (unsigned long)i;
  return seed;
}

void expect(int way, bool holds) {
  if (!holds) __atomic_fetch_add(&wrong[way], 1, __ATOMIC_RELAXED);
}

struct Built {
  std::vector<unsigned long> filled;
  Built() {
    for (int i = 0; i < 64; i++) filled.push_back(work(7) | 1);
  }
  ~Built() { filled.clear(); }
};

struct Exclusive {
  int inside = 0;
  void visit(int way) {
    expect(way, __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) == 1);
    work(1);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
  }
};

std::mutex plain_mutex;
std::recursive_mutex recursive;
std::timed_mutex timed;
std::shared_mutex shared;
std::once_flag globally;
pthread_mutex_t checking;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_spinlock_t spin;
pthread_key_t key;
sem_t binary;
FILE *lines;
Exclusive by_mutex, by_recursive, by_timed, by_shared, by_checking, by_rwlock, by_sem, by_file, by_static;
int once_made;
thread_local std::vector<unsigned long> numbers;
thread_local std::string text;
thread_local unsigned long plain_number;

struct Unwinds {
  int way;
  ~Unwinds() {
    expect(way, std::uncaught_exceptions() == 1);
    work(3);
    expect(way, std::uncaught_exceptions() == 1);
  }
};

void thread_locals(unsigned long seed) {
  plain_number = seed;
  work(seed);
  expect(0, plain_number == seed);
  numbers.assign(8, seed);
  work(seed);
  for (unsigned long number : numbers) expect(1, number == seed);
  text = std::to_string(seed) + " which is too long for the object itself";
  work(seed);
  expect(2, strtoul(text.c_str(), nullptr, 10) == seed);
  static thread_local Built built;
  expect(3, built.filled.size() == 64 && (built.filled[63] & 1));
  pthread_setspecific(key, (void *)(seed + 1));
  work(seed);
  expect(4, pthread_getspecific(key) == (void *)(seed + 1));
  errno = (int)(seed % 1000);
  work(seed);
  expect(5, errno == (int)(seed % 1000));
  char *unknown = strerror(10000 + (int)(seed % 1000));
  work(seed);
  expect(6, atoi(unknown + strlen(unknown) - 5) == 10000 + (int)(seed % 1000));
  dlopen(("no-such-" + std::to_string(seed) + ".so").c_str(), RTLD_NOW);
  work(seed);
  const char *error = dlerror();
  expect(7, error && strstr(error, ("no-such-" + std::to_string(seed) + ".so").c_str()));
  pthread_t self = pthread_self();
  std::thread::id id = std::this_thread::get_id();
  work(seed);
  expect(8, pthread_equal(self, pthread_self()) && id == std::this_thread::get_id());
  pthread_attr_t attributes;
  void *low;
  size_t bytes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  expect(9, (char *)low < (char *)&bytes && (char *)&bytes < (char *)low + bytes);
  static locale_t utf = newlocale(LC_ALL_MASK, "C.UTF-8", 0), c = newlocale(LC_ALL_MASK, "C", 0);
  uselocale(seed % 2 ? utf : c);
  work(seed);
  expect(10, MB_CUR_MAX == (size_t)(seed % 2 ? 6 : 1));
  uselocale(LC_GLOBAL_LOCALE);
}

void locks(unsigned long) {
  { std::lock_guard<std::mutex> lock(plain_mutex); by_mutex.visit(11); }
  { std::lock_guard<std::recursive_mutex> one(recursive), two(recursive); by_recursive.visit(12); }
  if (timed.try_lock_for(std::chrono::seconds(60))) { by_timed.visit(13); timed.unlock(); } else expect(13, false);
  { std::unique_lock<std::shared_mutex> lock(shared); by_shared.visit(14); }
  { std::shared_lock<std::shared_mutex> lock(shared); work(2); }
  expect(15, pthread_mutex_lock(&checking) == 0);
  by_checking.visit(15);
  expect(16, pthread_mutex_lock(&checking) == EDEADLK);
  expect(17, pthread_mutex_unlock(&checking) == 0);
  pthread_rwlock_wrlock(&rwlock);
  by_rwlock.visit(18);
  pthread_rwlock_unlock(&rwlock);
  while (sem_wait(&binary)) {}
  by_sem.visit(19);
  sem_post(&binary);
  flockfile(lines);
  by_file.visit(20);
  fprintf(lines, "a line");
  work(4);
  fprintf(lines, " of one request\n");
  funlockfile(lines);
}

void once(unsigned long seed) {
  std::call_once(globally, [] { work(5); work(6); once_made++; });
  expect(21, once_made == 1);
  for (int i = 0; i < 4; i++) {
    std::once_flag own;
    unsigned long made = 0, hashed = work(seed + i);
    std::call_once(own, [&] { work(1); made = hashed; });
    expect(22, made == hashed);
  }
  std::once_flag throws;
  int tries = 0;
  for (int i = 0; i < 3; i++) try {
      std::call_once(throws, [&] { work(1); if (++tries < 3) throw std::runtime_error("again"); });
    } catch (std::runtime_error &) {
    }
  expect(23, tries == 3);
  static int made = [] { work(8); by_static.visit(24); return 24; }();
  expect(24, made == 24);
}

void exceptions(unsigned long seed) {
  try {
    try {
      Unwinds unwinds{25};
      throw std::runtime_error(std::to_string(seed));
    } catch (std::exception &error) {
      work(seed);
      expect(26, strtoul(error.what(), nullptr, 10) == seed);
      std::exception_ptr kept = std::current_exception();
      try {
        work(seed);
        throw 7;
      } catch (int seven) {
        work(seed);
        expect(27, seven == 7);
      }
      std::rethrow_exception(kept);
    }
  } catch (std::runtime_error &error) {
    work(seed);
    expect(28, strtoul(error.what(), nullptr, 10) == seed && std::uncaught_exceptions() == 0);
  }
  jmp_buf back;
  volatile int jumps = 0;
  if (setjmp(back) < 3) {
    jumps = jumps + 1;
    work(seed);
    longjmp(back, jumps);
  }
  expect(29, jumps == 3);
}

void library(unsigned long seed) {
  feclearexcept(FE_ALL_EXCEPT);
  int raised = seed % 2 ? FE_DIVBYZERO : FE_OVERFLOW;
  feraiseexcept(raised);
  int rounding = seed % 3 ? FE_UPWARD : FE_DOWNWARD;
  fesetround(rounding);
  work(seed);
  expect(30, (fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID) & ~0) == (raised & ~0));
  expect(31, fegetround() == rounding);
  fesetround(FE_TONEAREST);
  feclearexcept(FE_ALL_EXCEPT);
  std::ostringstream out;
  out << seed;
  work(seed);
  out << "/" << seed;
  expect(32, out.str() == std::to_string(seed) + "/" + std::to_string(seed));
  char tokens[64];
  snprintf(tokens, sizeof tokens, "%lu %lu %lu", seed, seed, seed);
  char *place, *token = strtok_r(tokens, " ", &place);
  work(seed);
  token = strtok_r(nullptr, " ", &place);
  expect(33, token && strtoul(token, nullptr, 10) == seed);
  std::vector<void *> pieces;
  for (int i = 1; i < 40; i++) {
    unsigned char *piece = (unsigned char *)malloc((size_t)i * 97);
    memset(piece, (int)(seed & 0xff), (size_t)i * 97);
    pieces.push_back(piece);
    if (i % 8 == 0) work(seed);
  }
  for (int i = 1; i < 40; i++) {
    unsigned char *piece = (unsigned char *)pieces[(size_t)i - 1];
    expect(34, piece[0] == (seed & 0xff) && piece[i * 97 - 1] == (seed & 0xff));
    free(piece);
  }
  int joined = 0;
  std::thread other([&] { work(seed); joined = 1; });
  work(seed);
  other.join();
  expect(35, joined == 1);
}

void handle_request(void *, struct headway_request *request) {
  static unsigned long next;
  unsigned long seed = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
  for (int round = 0; round < ROUNDS; round++) {
    thread_locals(seed);
    locks(seed);
    once(seed);
    exceptions(seed);
    library(seed);
  }
  headway_reply(request, "done", 4);
}

}  // namespace

/* torture POLICY WORKERS LAYOUT [plain]: prints the interruptions, and the worst that was not so. */
int main(int argc, char **argv) {
  CHECK(argc >= 4);
  alarm(110); /* A deadlock is a failure. */
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checking, &attributes);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  pthread_key_create(&key, nullptr);
  sem_init(&binary, 0, 1);
  lines = tmpfile();
  CHECK(lines);

  headway_class classes[] = {{"all", 0}};
  headway_options options{};
  options.size = sizeof options;
  options.classes = classes;
  options.class_count = 1;
  options.policy = argv[1];
  options.workers = (uint32_t)atoi(argv[2]);
  options.layout = (uint32_t)atoi(argv[3]);
  options.pin = HEADWAY_PIN_OFF;
  options.fibers = argc > 4 ? HEADWAY_FIBERS_PLAIN : HEADWAY_FIBERS_OF_THREADS;
  headway_service service{};
  service.size = sizeof service;
  service.handle_request = handle_request;
  headway_server *server;
  if (headway_start(&options, &service, &server) != HEADWAY_OK) return fprintf(stderr, "%s\n", headway_last_error()), 1;
  const int fd = connected((uint16_t)headway_port(server));
  CHECK(fd >= 0);
  CHECK(answer_all(fd, REQUESTS, IN_FLIGHT) == 0);
  headway_stats stats{};
  stats.size = sizeof stats;
  CHECK(headway_stop(server, 10000000000u, &stats) == HEADWAY_OK);
  CHECK(stats.answered == REQUESTS);

  rewind(lines);
  char line[128];
  unsigned count = 0;
  while (fgets(line, sizeof line, lines)) {
    expect(36, strcmp(line, "a line of one request\n") == 0);
    count++;
  }
  expect(36, count == REQUESTS * ROUNDS);
  int failed = 0;
  for (int way = 0; way < 37; way++)
    if (wrong[way]) fprintf(stderr, "way %d: wrong %lu times\n", way, wrong[way]), failed = 1;
  printf("preemptions %llu\n", (unsigned long long)stats.preemptions);
  return failed;
}
