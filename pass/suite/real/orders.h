// An XML document of orders, and what is known of it.
#ifndef HEADWAY_SUITE_ORDERS_H
#define HEADWAY_SUITE_ORDERS_H

#include "real.h"

enum { LARGEST_DOCUMENT = 1 << 20 };

static char document[LARGEST_DOCUMENT];
static size_t document_size;
static uint64_t items_written, quantity_written;

static inline size_t write_words(char *at, unsigned words, uint64_t *seed) {
    size_t size = 0;
    while (words-- > 0) {
        size += real_word(at + size, seed);
        if (words > 0) at[size++] = ' ';
    }
    return size;
}

static inline void make_document(unsigned orders) {
    uint64_t seed = 5;
    char *at = document + sprintf(document, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<orders>\n");
    for (unsigned order = 0; order < orders; order++) {
        at += sprintf(at, "  <order id=\"%u\" status=\"%s\">\n    <customer>", order, suite_below(&seed, 3) ? "open" : "sent");
        at += write_words(at, 2, &seed);
        at += sprintf(at, "</customer>\n    <!-- ");
        at += write_words(at, 3, &seed);
        at += sprintf(at, " -->\n");
        for (unsigned item = 1 + suite_below(&seed, 5); item > 0; item--) {
            unsigned quantity = 1 + suite_below(&seed, 90);
            items_written++;
            quantity_written += quantity;
            at += sprintf(at, "    <item sku=\"%08x\" quantity=\"%u\">", (unsigned)suite_random(&seed), quantity);
            at += write_words(at, 6, &seed);
            at += sprintf(at, " &amp; &lt;");
            at += write_words(at, 2, &seed);
            at += sprintf(at, "&gt;</item>\n");
        }
        at += sprintf(at, "  </order>\n");
        if (at - document > LARGEST_DOCUMENT - 4096) real_fail("the document's size");
    }
    document_size = (size_t)(at - document) + (size_t)sprintf(at, "</orders>\n");
}

#endif
