/* Protobuf's arenas keep a thread's last one in a thread-local variable, and an arena a list of who allocated in it. */
#include "torture.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/struct.pb.h>
#include <string>

namespace {

using google::protobuf::Arena;
using google::protobuf::Struct;

void fill(Arena *arena, unsigned long seed) {
    auto *message = Arena::CreateMessage<Struct>(arena);
    for (unsigned long i = 0; i < 8; i++) {
        (*message->mutable_fields())["field " + std::to_string(i)].set_string_value(std::to_string(seed + i) + " and some more text");
        work(seed);
    }
    std::string bytes;
    EXPECT(message->SerializeToString(&bytes));
    work(seed);
    auto *again = Arena::CreateMessage<Struct>(arena);
    EXPECT(again->ParseFromString(bytes));
    for (unsigned long i = 0; i < 8; i++)
        EXPECT(std::stoul(again->fields().at("field " + std::to_string(i)).string_value()) == seed + i);
}

WAY(protobuf_arena) {
    Arena arena;
    fill(&arena, seed);
}

/* Two arenas in turn, so that the thread's last one changes. */
WAY(protobuf_arenas) {
    Arena one, other;
    fill(&one, seed);
    fill(&other, seed + 1);
    fill(&one, seed + 2);
}

}  // namespace
