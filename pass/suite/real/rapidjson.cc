// Reads a JSON document of orders, walks through it, and writes it indented.
#include "real.h"

#include <rapidjson/document.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <string>

const unsigned kernel_passes = 1;

namespace {
std::string json;
uint64_t items_written, quantity_written, items, quantity, written_size, written_digest;
double price;
} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 8;
    char word[16];
    json = "[";
    for (unsigned order = 0; order < (full ? 2500u : 250u); order++) {
        json += (order ? ",\n" : "") + std::string("{\"id\": ") + std::to_string(order) + ", \"open\": " + (suite_below(&seed, 2) ? "true" : "null") +
                ", \"customer\": \"";
        json.append(word, real_word(word, &seed));
        json += " \\u00e9\\n\", \"items\": [";
        for (unsigned item = 1 + suite_below(&seed, 5); item > 0; item--) {
            const unsigned count = 1 + suite_below(&seed, 90);
            items_written++;
            quantity_written += count;
            json += "{\"quantity\": " + std::to_string(count) + ", \"price\": " + std::to_string(suite_uniform(&seed) * 1000) + ", \"name\": \"";
            json.append(word, real_word(word, &seed));
            json += item > 1 ? "\"}, " : "\"}";
        }
        json += "]}";
    }
    json += "]";
}

void kernel_run(void) {
    items = quantity = 0;
    price = 0;
    rapidjson::Document read;
    if (read.Parse(json.data(), json.size()).HasParseError()) real_fail("reading");
    for (const auto &order : read.GetArray())
        for (const auto &item : order["items"].GetArray()) {
            items++;
            quantity += item["quantity"].GetUint();
            price += item["price"].GetDouble();
        }
    rapidjson::StringBuffer buffer;
    rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
    if (!read.Accept(writer)) real_fail("writing");
    written_size = buffer.GetSize();
    written_digest = suite_mix_bytes(0, buffer.GetString(), 4096);
}

uint64_t kernel_digest(void) { return suite_mix_real(suite_mix(suite_mix(suite_mix(items, quantity), written_size), written_digest), price); }

bool kernel_valid(void) { return items == items_written && quantity == quantity_written && written_size > json.size(); }
