// LevelDB behind Headway: GET, PUT, DELETE and SCAN over the wire header. See README.md for the format.
#include <headway.h>
#include <leveldb/db.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace {

enum Class : unsigned { kGet, kPut, kDelete, kScan, kClasses };
constexpr int kKeys = 15000;  // Concord, § 5.3
constexpr size_t kKeyBytes = 8;

using leveldb::Slice;

/// "key" and five digits.
std::string KeyOf(int number) {
  char key[kKeyBytes + 1];
  std::snprintf(key, sizeof key, "key%05d", number);
  return std::string(key, kKeyBytes);
}

void Reply(headway_request *request, const leveldb::Status &status, const Slice &value = Slice()) {
  if (status.IsNotFound() || status.ok())
    headway_reply(request, value.data(), value.size());
  else
    headway_fail(request);
}

/// How many keys there are, and a sum over the bytes of their values: 8 and 8 bytes, little-endian.
leveldb::Status Scan(leveldb::DB *db, headway_request *request) {
  uint64_t found[2] = {0, 0};
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(leveldb::ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    found[0]++;
    const Slice value = it->value();
    for (size_t i = 0; i < value.size(); i++) found[1] += static_cast<unsigned char>(value[i]);
  }
  if (it->status().ok()) headway_reply(request, found, sizeof found);
  return it->status();
}

void Handle(void *context, headway_request *request) {
  auto *db = static_cast<leveldb::DB *>(context);
  const auto *payload = reinterpret_cast<const char *>(headway_buffer(request));
  const size_t length = headway_length(request);
  const unsigned type = headway_class_of(request);
  if (type == kScan) {
    if (!Scan(db, request).ok()) headway_fail(request);
    return;
  }
  if (type >= kClasses || length < kKeyBytes) return headway_bad_request(request);
  const Slice key(payload, kKeyBytes);
  if (type == kGet) {
    std::string value;
    const leveldb::Status status = db->Get(leveldb::ReadOptions(), key, &value);
    Reply(request, status, value);
  } else if (type == kPut) {
    Reply(request, db->Put(leveldb::WriteOptions(), key, Slice(payload + kKeyBytes, length - kKeyBytes)));
  } else {
    Reply(request, db->Delete(leveldb::WriteOptions(), key));
  }
}

/// The key's own digits as its value.
leveldb::Status Fill(leveldb::DB *db) {
  leveldb::Status status;
  for (int number = 0; number < kKeys && status.ok(); number++)
    status = db->Put(leveldb::WriteOptions(), KeyOf(number), KeyOf(number).substr(3));
  return status;
}

/// How often requests yielded at the end of a section, most often a lock, that had kept them from yielding.
uint64_t LockYields(headway_server *server) {
  uint64_t yields = 0;
  for (unsigned type = 0; type < kClasses; type++) {
    headway_class_stats stats{};
    stats.size = sizeof stats;
    if (headway_read_class_stats(server, type, &stats) == HEADWAY_OK) yields += stats.lock_yields;
  }
  return yields;
}

int Fail(const char *words) {
  std::fprintf(stderr, "%s\n", words);
  return 1;
}

}  // namespace

// leveldb-server DIRECTORY [POLICY [WORKERS [ADDRESS [probes|signal [spin|auto [CONTROL]]]]]]; ends when its input does.
int main(int argc, char **argv) {
  if (argc < 2) return Fail("usage: leveldb-server DIRECTORY [POLICY [WORKERS [ADDRESS [probes|signal [spin|auto [CONTROL]]]]]]");
  const std::string preempt = argc > 5 ? argv[5] : "probes";
  if (preempt != "probes" && preempt != "signal") return Fail("requests are interrupted by probes or by signal");
  leveldb::Options db_options;
  db_options.create_if_missing = true;
  leveldb::DB *opened = nullptr;
  const leveldb::Status status = leveldb::DB::Open(db_options, argv[1], &opened);
  if (!status.ok()) return Fail(status.ToString().c_str());
  const std::unique_ptr<leveldb::DB> db(opened);
  if (!Fill(db.get()).ok()) return Fail("cannot fill the database");

  const headway_class classes[kClasses] = {{"get", 600}, {"put", 2300}, {"delete", 2300}, {"scan", 500000}};
  headway_options options{};
  options.size = sizeof options;
  options.classes = classes;
  options.class_count = kClasses;
  options.policy = argc > 2 ? argv[2] : "concord";
  options.workers = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 1;
  options.listen = argc > 4 ? argv[4] : nullptr;
  options.resume = HEADWAY_RESUME_ANYWHERE;  // As in the papers.
  options.fibers = HEADWAY_FIBERS_PLAIN;     // Compiled with probes, it holds nothing of its thread over one.
  if (preempt == "signal") {
    // Without probes LevelDB keeps state of its thread in registers; its locks and memory the shim sees to, and it prints nothing.
    options.preempt = HEADWAY_PREEMPT_SIGNAL;
    options.resume = HEADWAY_RESUME_OWN_WORKER;
  }
  if (argc > 6 && std::strcmp(argv[6], "spin") == 0) options.idle = HEADWAY_IDLE_SPIN;
  options.control = argc > 7 ? argv[7] : nullptr;
  headway_service service{};
  service.size = sizeof service;
  service.context = db.get();
  service.handle_request = Handle;
  headway_server *server = nullptr;
  if (headway_start(&options, &service, &server) != HEADWAY_OK) return Fail(headway_last_error());
  std::printf("listening udp://127.0.0.1:%u\n", headway_port(server));
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  const uint64_t lock_yields = LockYields(server);
  headway_stats stats{};
  stats.size = sizeof stats;
  if (headway_stop(server, 1000000000, &stats) != HEADWAY_OK) return Fail(headway_last_error());
  std::printf("lock yields %llu\n", static_cast<unsigned long long>(lock_yields));
  std::printf("answered %llu, preemptions %llu\n", static_cast<unsigned long long>(stats.answered),
              static_cast<unsigned long long>(stats.preemptions));
  return 0;
}
