// The step of pallas for bmv2's simple_switch. Never compiled: see docs/p4.md.
#include <core.p4>
#include <v1model.p4>
#include "sizes.p4"
#include "headers.p4"

#define CLONE_SESSION 1
#define INGRESS_CLONE 1

// As PacketCount in docs/racks.md, of those that a pipeline can tell.
const bit<32> COUNT_REQUESTS = 0;
const bit<32> COUNT_ANSWERED = 1;
const bit<32> COUNT_CLONED = 2;
const bit<32> COUNT_FILTERED = 3;
const bit<32> COUNT_SHED = 4;
const bit<32> COUNT_SPOOFED = 5;

struct metadata_t {
    bit<1> copy;
    bit<8> class;
    bit<8> group;
    bit<16> round;
    bit<32> threshold;
    bit<8> next_group;
    bit<16> turn;
    // What a clone takes to its second pass.
    @field_list(1)
    bit<1> is_clone;
    @field_list(1)
    bit<8> clone_group;
}

parser RackParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) rack_ports;
    value_set<bit<16>>(MAX_SERVERS) server_ports;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            TYPE_VLAN: parse_vlan;
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.ether_type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    // Options and fragments pass as other traffic does.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            rack_ports: parse_rack;
            default: look_at_source;
        }
    }
    state look_at_source {
        transition select(hdr.udp.src_port) {
            server_ports: parse_rack;
            default: accept;
        }
    }
    state parse_rack {
        packet.extract(hdr.rack);
        transition accept;
    }
}

control RackIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(1) generation;
    register<bit<16>>(MAX_GROUPS) next_turn;
    register<bit<48>>(MAX_GROUPS) window;
    register<bit<32>>(MAX_GROUPS) arrivals;
    register<bit<64>>(MAX_TYPES) count;
    register<bit<32>>(MAX_TYPES) execution_ns;
    register<bit<33>>(DUPLICATE_SLOTS) answered;
    counter(6, CounterType.packets) counts;

    action drop() {
        mark_to_drop(standard);
    }

    // Whose packets these are: requests to the switch, responses of its servers.
    action to_rack() {}
    table services {
        key = { hdr.ipv4.dst: exact; hdr.udp.dst_port: exact; }
        actions = { to_rack; NoAction; }
        default_action = NoAction();
        size = 16;
    }
    action from_server(bit<32> own_ip, bit<16> own_port) {
        hdr.ipv4.src = own_ip;
        hdr.udp.src_port = own_port;
        hdr.udp.checksum = 0;
    }
    table returning {
        key = { hdr.ipv4.src: exact; hdr.udp.src_port: exact; }
        actions = { from_server; NoAction; }
        default_action = NoAction();
        size = MAX_SERVERS;
    }

    // Type to class, class to group, group to its limits, turn to server. All but the first have two copies.
    action set_class(bit<8> class) {
        meta.class = class;
    }
    table types {
        key = { hdr.rack.type: exact; }
        actions = { set_class; }
        size = MAX_TYPES;
    }
    action set_group(bit<8> group) {
        meta.group = group;
    }
    table groups {
        key = { meta.copy: exact; meta.class: exact; }
        actions = { set_group; NoAction; }
        default_action = NoAction();
        size = 2 * MAX_TYPES;
    }
    action set_limits(bit<16> round, bit<32> threshold, bit<8> next_group) {
        meta.round = round;
        meta.threshold = threshold;
        meta.next_group = next_group;
    }
    table limits {
        key = { meta.copy: exact; meta.group: exact; }
        actions = { set_limits; NoAction; }
        default_action = NoAction();
        size = 2 * MAX_GROUPS;
    }
    action to_server(bit<32> ip, bit<16> port) {
        hdr.ipv4.dst = ip;
        hdr.udp.dst_port = port;
        hdr.udp.checksum = 0;
    }
    table turns {
        key = { meta.copy: exact; meta.group: exact; meta.turn: exact; }
        actions = { to_server; NoAction; }
        default_action = NoAction();
        size = 2 * MAX_TURNS;
    }

    action route_to(bit<48> mac, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        standard.egress_spec = port;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { route_to; drop; }
        default_action = drop();
        size = 1024;
    }

    // The client hears at once that nobody serves its type. What follows the header is beyond the packet's own length.
    action shed() {
        bit<32> client = hdr.ipv4.src;
        bit<16> client_port = hdr.udp.src_port;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = client;
        hdr.ipv4.total_len = 38;
        hdr.udp.src_port = hdr.udp.dst_port;
        hdr.udp.dst_port = client_port;
        hdr.udp.len = 18;
        hdr.udp.checksum = 0;
        hdr.rack.is_response = 1;
        hdr.rack.status = STATUS_SHED;
        hdr.rack.role = ROLE_PLAIN;
        hdr.rack.time_ns = 0;
    }

    action take_turn() {
        bit<16> next;
        next_turn.read(next, (bit<32>)meta.group);
        meta.turn = next >= meta.round ? 0 : next;
        next_turn.write((bit<32>)meta.group, meta.turn + 1 >= meta.round ? 16w0 : meta.turn + 1);
    }

    action request_counted() {
        bit<64> requests;
        count.read(requests, (bit<32>)meta.class);
        count.write((bit<32>)meta.class, requests + 1);
    }

    action average() {
        bit<32> before;
        execution_ns.read(before, (bit<32>)meta.class);
        bit<32> after = before == 0 ? hdr.rack.time_ns : before - (before >> 3) + (hdr.rack.time_ns >> 3);
        execution_ns.write((bit<32>)meta.class, after);
    }

    apply {
        bit<8> now_generation;
        generation.read(now_generation, 0);
        meta.copy = now_generation[0:0];
        if (!hdr.rack.isValid()) {
            routes.apply();
            return;
        }
        types.apply();
        if (meta.is_clone == 1) {
            meta.group = meta.clone_group;
            limits.apply();
            take_turn();
            hdr.rack.role = ROLE_CLONE;
            if (!turns.apply().hit) {
                drop();
                return;
            }
        } else if (hdr.rack.is_response == 0 && services.apply().hit) {
            groups.apply();
            limits.apply();
            take_turn();
            hdr.rack.role = ROLE_PLAIN;
            if (!turns.apply().hit) {
                counts.count(COUNT_SHED);
                shed();
            } else if (hdr.rack.handed_back == 0) {
                counts.count(COUNT_REQUESTS);
                request_counted();
                bit<48> seen;
                bit<32> arrived;
                // The clock of simple_switch ticks in microseconds.
                bit<48> present = standard.ingress_global_timestamp >> (WINDOW_SHIFT - 10);
                window.read(seen, (bit<32>)meta.group);
                arrivals.read(arrived, (bit<32>)meta.group);
                arrived = seen == present ? arrived + 1 : 1;
                window.write((bit<32>)meta.group, present);
                arrivals.write((bit<32>)meta.group, arrived);
                if (arrived > meta.threshold && meta.next_group != meta.group) {
                    counts.count(COUNT_CLONED);
                    hdr.rack.role = ROLE_ORIGINAL;
                    meta.is_clone = 1;
                    meta.clone_group = meta.next_group;
                    clone_preserving_field_list(CloneType.I2E, CLONE_SESSION, 1);
                    meta.is_clone = 0;
                }
            }
        } else if (hdr.rack.is_response == 1) {
            if (!returning.apply().hit) {
                counts.count(COUNT_SPOOFED);
                drop();
                return;
            }
            if (hdr.rack.time_ns != 0) {
                average();
            }
            if (hdr.rack.role != ROLE_PLAIN) {
                bit<33> entry = (bit<33>)hdr.rack.index + 1;
                bit<32> slot = hdr.rack.index & (DUPLICATE_SLOTS - 1);
                bit<33> before;
                answered.read(before, slot);
                answered.write(slot, before == entry ? 33w0 : entry);
                if (before == entry) {
                    counts.count(COUNT_FILTERED);
                    drop();
                    return;
                }
                hdr.rack.role = ROLE_PLAIN;
            }
            counts.count(COUNT_ANSWERED);
        }
        routes.apply();
    }
}

control RackEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        // A clone is the packet as it came in: it takes its turn in a second pass.
        if (standard.instance_type == INGRESS_CLONE && meta.is_clone == 1) {
            recirculate_preserving_field_list(1);
        }
    }
}

control RackVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control RackChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,
              hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RackDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(RackParser(), RackVerify(), RackIngress(), RackEgress(), RackChecksum(), RackDeparser()) main;
