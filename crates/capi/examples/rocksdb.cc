// RocksDB behind a pool: Gets and scans are classes, and a scan has a checkpoint between two steps of its iterator.
//   c++ -std=c++17 -O2 rocksdb.cc $(pkg-config --cflags --libs headway) -lrocksdb -o rocksdb && ./rocksdb srpt /tmp/db
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <headway_pool.hpp>
#include <memory>
#include <rocksdb/db.h>
#include <string>
#include <vector>

enum { GET, SCAN };
constexpr int KEYS = 200'000, GETS = 20;

static std::string key(int number) {
    char text[16];
    std::snprintf(text, sizeof text, "key%08d", number);
    return text;
}

static void check(const rocksdb::Status &status) {
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str()), std::exit(1);
}

static std::unique_ptr<rocksdb::DB> filled(const char *path) {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB *db;
    check(rocksdb::DB::Open(options, path, &db));
    rocksdb::WriteBatch batch;
    for (int number = 0; number < KEYS; number++) batch.Put(key(number), std::to_string(number));
    check(db->Write({}, &batch));
    return std::unique_ptr<rocksdb::DB>(db);
}

int main(int argc, char **argv) {
    const char *policy = argc > 1 ? argv[1] : "srpt", *path = argc > 2 ? argv[2] : "/tmp/headway-rocksdb";
    auto db = filled(path);
    headway_pool_class get{}, scan{};
    get.name = "get";
    get.mean_ns = 5'000;
    scan.name = "scan";
    scan.mean_ns = 50'000'000;
    headway::pool pool({get, scan}, policy, 1);

    std::atomic<bool> scanning{false}, scanned{false};
    auto sum = pool.submit(SCAN, [&] {
        long sum = 0;
        std::unique_ptr<rocksdb::Iterator> it(db->NewIterator({}));
        for (it->SeekToFirst(); it->Valid() && !headway::cancelled(); it->Next()) {
            sum += std::stol(it->value().ToString());
            scanning = true;
            headway_checkpoint();
        }
        check(it->status());
        scanned = true;
        return sum;
    });
    while (!scanning) {}
    std::vector<std::future<bool>> gets; // each says whether it was before the scan's end
    for (int at = 0; at < GETS; at++)
        gets.push_back(pool.submit(GET, [&, at] {
            std::string value;
            check(db->Get({}, key(at * 1000), &value));
            if (value != std::to_string(at * 1000)) std::exit(1);
            return !scanned;
        }));
    int before = 0;
    for (auto &get : gets) before += get.get();
    std::printf("scan %ld, gets before its end %d of %d, interruptions %llu\n", sum.get(), before, GETS,
                static_cast<unsigned long long>(pool.stats().interruptions));
}
