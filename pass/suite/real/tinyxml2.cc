// Reads a document of orders, walks through it and prints it.
#include "orders.h"

#include <tinyxml2.h>

const unsigned kernel_passes = 1;

namespace {
uint64_t items, quantity, printed_size, printed_digest;
}

void kernel_setup(bool full) { make_document(full ? 1300 : 200); }

void kernel_run(void) {
    items = quantity = 0;
    tinyxml2::XMLDocument read;
    if (read.Parse(document, document_size) != tinyxml2::XML_SUCCESS) real_fail("reading");
    for (auto *order = read.RootElement()->FirstChildElement("order"); order; order = order->NextSiblingElement("order"))
        for (auto *item = order->FirstChildElement("item"); item; item = item->NextSiblingElement("item")) {
            items++;
            quantity += item->UnsignedAttribute("quantity");
        }
    tinyxml2::XMLPrinter printer;
    read.Print(&printer);
    printed_size = static_cast<uint64_t>(printer.CStrSize());
    printed_digest = suite_mix_bytes(0, printer.CStr(), 4096);
}

uint64_t kernel_digest(void) { return suite_mix(suite_mix(suite_mix(items, quantity), printed_size), printed_digest); }

bool kernel_valid(void) { return items == items_written && quantity == quantity_written && printed_size > document_size / 2; }
