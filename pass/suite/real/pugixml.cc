// Reads a document of orders, asks it questions by XPath, changes it and writes it.
#include "orders.h"

#include <pugixml.hpp>

const unsigned kernel_passes = 4;

namespace {

uint64_t items, quantity, sent;

struct Text : pugi::xml_writer {
    uint64_t digest = 0, size = 0;
    void write(const void *data, size_t bytes) override {
        digest = suite_mix(digest, static_cast<const unsigned char *>(data)[bytes / 2]);
        size += bytes;
    }
} written;

} // namespace

void kernel_setup(bool full) { make_document(full ? 1600 : 200); }

void kernel_run(void) {
    items = quantity = 0;
    written = Text();
    pugi::xml_document read;
    if (!read.load_buffer(document, document_size)) real_fail("reading");
    for (pugi::xml_node order : read.child("orders").children("order"))
        for (pugi::xml_node item : order.children("item")) {
            items++;
            quantity += item.attribute("quantity").as_uint();
        }
    sent = read.select_nodes("/orders/order[@status='sent']/item[@quantity > 45]").size();
    for (pugi::xml_node order : read.child("orders").children("order")) order.append_attribute("seen") = "yes";
    read.save(written, " ");
}

uint64_t kernel_digest(void) { return suite_mix(suite_mix(suite_mix(items, quantity), sent), suite_mix(written.digest, written.size)); }

bool kernel_valid(void) { return items == items_written && quantity == quantity_written && sent > 0 && written.size > document_size / 2; }
