// Reads a YAML document's events and writes each again.
#include "real.h"

#include <yaml.h>

const unsigned kernel_passes = 1;

enum { LARGEST = 1 << 19 };

static char document[LARGEST];
static unsigned char written[2 * LARGEST];
static size_t document_size, written_size, scalars, scalars_written;

void kernel_setup(bool full) {
    uint64_t seed = 9;
    char *at = document;
    for (unsigned service = 0; service < (full ? 500u : 60u); service++) {
        at += sprintf(at, "- name: service%u\n  description: \"", service);
        for (int word = 0; word < 5; word++) {
            at += real_word(at, &seed);
            *at++ = ' ';
        }
        at += sprintf(at, "\"\n  ports: [%u, %u]\n  labels: {tier: ", suite_below(&seed, 60000), suite_below(&seed, 60000));
        at += real_word(at, &seed);
        at += sprintf(at, ", zone: z%u}\n  text: |\n    ", suite_below(&seed, 9));
        at += real_word(at, &seed);
        at += sprintf(at, "\n    more\n");
        scalars_written += 7 + 7; // keys and values, two of them ports
    }
    document_size = (size_t)(at - document);
}

void kernel_run(void) {
    yaml_parser_t parser;
    yaml_emitter_t emitter;
    yaml_event_t event;
    scalars = 0;
    if (!yaml_parser_initialize(&parser) || !yaml_emitter_initialize(&emitter)) real_fail("beginning");
    yaml_parser_set_input_string(&parser, (const unsigned char *)document, document_size);
    yaml_emitter_set_output_string(&emitter, written, sizeof written, &written_size);
    for (bool more = true; more;) {
        if (!yaml_parser_parse(&parser, &event)) real_fail("reading");
        more = event.type != YAML_STREAM_END_EVENT;
        scalars += event.type == YAML_SCALAR_EVENT;
        if (!yaml_emitter_emit(&emitter, &event)) real_fail("writing");
    }
    yaml_emitter_delete(&emitter);
    yaml_parser_delete(&parser);
}

uint64_t kernel_digest(void) { return suite_mix_bytes(scalars, written, written_size); }

bool kernel_valid(void) { return scalars == scalars_written && written_size > document_size / 2; }
