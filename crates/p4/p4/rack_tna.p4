// The step of pallas for Tofino. Never compiled: see docs/p4.md.
#include <core.p4>
#include <tna.p4>
#include "sizes.p4"
#include "headers.p4"

// A clone is mirrored to the recirculation port, with its group before it.
#define RECIRCULATION_PORT 68
const bit<3> MIRROR_CLONE = 1;
const MirrorId_t CLONE_SESSION = 1;

const bit<3> COUNT_REQUESTS = 0;
const bit<3> COUNT_ANSWERED = 1;
const bit<3> COUNT_CLONED = 2;
const bit<3> COUNT_FILTERED = 3;
const bit<3> COUNT_SHED = 4;
const bit<3> COUNT_SPOOFED = 5;

header clone_t {
    bit<8> group;
}

struct metadata_t {
    bit<1> copy;
    bit<8> class;
    bit<8> group;
    bit<16> round;
    bit<32> threshold;
    bit<8> next_group;
    bit<16> turn;
    bit<32> window;
    bit<1> is_clone;
    bit<1> is_excess;
    clone_t clone;
    MirrorId_t session;
}

struct burst_t {
    bit<32> window;
    bit<32> arrivals;
}

// An index, and whether there is one: 0 is an index too.
struct answered_t {
    bit<32> index;
    bit<32> is_there;
}

parser RackParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    value_set<bit<16>>(4) rack_ports;
    value_set<bit<16>>(MAX_SERVERS) server_ports;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.is_clone = 0;
        meta.is_excess = 0;
        transition select(intrinsic.ingress_port) {
            RECIRCULATION_PORT: parse_clone;
            default: parse_ethernet;
        }
    }
    state parse_clone {
        packet.extract(meta.clone);
        meta.is_clone = 1;
        transition parse_ethernet;
    }
    state parse_ethernet {
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

control RackIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                    in ingress_intrinsic_metadata_from_parser_t from_parser,
                    inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                    inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Register<bit<8>, bit<1>>(1) generation;
    RegisterAction<bit<8>, bit<1>, bit<1>>(generation) read_generation = {
        void apply(inout bit<8> value, out bit<1> copy) {
            copy = value[0:0];
        }
    };
    Register<bit<16>, bit<8>>(MAX_GROUPS) next_turn;
    // meta.round is the round's last turn here, one less than in the entry: a register is compared before it is changed.
    RegisterAction<bit<16>, bit<8>, bit<16>>(next_turn) take_turn = {
        void apply(inout bit<16> next, out bit<16> turn) {
            turn = 0;
            if (next <= meta.round) {
                turn = next;
            }
            if (next < meta.round) {
                next = next + 1;
            } else {
                next = 0;
            }
        }
    };
    Register<burst_t, bit<8>>(MAX_GROUPS) bursts;
    RegisterAction<burst_t, bit<8>, bit<1>>(bursts) arrive = {
        void apply(inout burst_t burst, out bit<1> is_excess) {
            is_excess = 0;
            if (burst.window == meta.window) {
                if (burst.arrivals >= meta.threshold) {
                    is_excess = 1;
                }
                burst.arrivals = burst.arrivals + 1;
            } else {
                burst.window = meta.window;
                burst.arrivals = 1;
            }
        }
    };
    Register<bit<32>, bit<8>>(MAX_TYPES) count;
    RegisterAction<bit<32>, bit<8>, bit<32>>(count) count_request = {
        void apply(inout bit<32> requests) {
            requests = requests + 1;
        }
    };
    // A stateful ALU cannot shift by what it reads: the chip's low-pass filter averages, with a time constant that the control plane sets.
    Lpf<bit<32>, bit<8>>(MAX_TYPES) execution_ns;
    Register<answered_t, bit<16>>(DUPLICATE_SLOTS) answered;
    RegisterAction<answered_t, bit<16>, bit<1>>(answered) answer = {
        void apply(inout answered_t before, out bit<1> is_second) {
            is_second = 0;
            if (before.index == hdr.rack.index && before.is_there == 1) {
                is_second = 1;
                before.is_there = 0;
            } else {
                before.index = hdr.rack.index;
                before.is_there = 1;
            }
        }
    };
    Counter<bit<64>, bit<3>>(8, CounterType_t.PACKETS) counts;

    action drop() {
        for_deparser.drop_ctl = 1;
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
        for_tm.ucast_egress_port = port;
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

    action order_clone() {
        for_deparser.mirror_type = MIRROR_CLONE;
        meta.session = CLONE_SESSION;
        meta.clone.group = meta.next_group;
        hdr.rack.role = ROLE_ORIGINAL;
    }

    apply {
        if (!hdr.rack.isValid()) {
            routes.apply();
            return;
        }
        meta.copy = read_generation.execute(0);
        types.apply();
        bool is_answer = hdr.rack.is_response == 1;
        if (!is_answer) {
            if (meta.is_clone == 1) {
                meta.group = meta.clone.group;
            } else if (services.apply().hit) {
                groups.apply();
            } else {
                routes.apply();
                return;
            }
            limits.apply();
            meta.round = meta.round - 1;
            meta.turn = take_turn.execute(meta.group);
            if (!turns.apply().hit) {
                counts.count(COUNT_SHED);
                shed();
            } else if (meta.is_clone == 1) {
                hdr.rack.role = ROLE_CLONE;
            } else {
                hdr.rack.role = ROLE_PLAIN;
                if (hdr.rack.handed_back == 0) {
                    counts.count(COUNT_REQUESTS);
                    count_request.execute(meta.class);
                    meta.window = (bit<32>)(from_parser.global_tstamp >> WINDOW_SHIFT);
                    meta.is_excess = arrive.execute(meta.group);
                    if (meta.is_excess == 1 && meta.next_group != meta.group) {
                        counts.count(COUNT_CLONED);
                        order_clone();
                    }
                }
            }
        } else if (returning.apply().hit) {
            if (hdr.rack.time_ns != 0) {
                execution_ns.execute(hdr.rack.time_ns, meta.class);
            }
            bit<1> is_second = 0;
            if (hdr.rack.role != ROLE_PLAIN) {
                is_second = answer.execute(hdr.rack.index[15:0]);
            }
            if (is_second == 1) {
                counts.count(COUNT_FILTERED);
                drop();
            } else {
                hdr.rack.role = ROLE_PLAIN;
                counts.count(COUNT_ANSWERED);
            }
        } else {
            counts.count(COUNT_SPOOFED);
            drop();
        }
        routes.apply();
    }
}

control RackDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                     in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Mirror() mirror;
    Checksum() checksum;

    apply {
        if (for_deparser.mirror_type == MIRROR_CLONE) {
            mirror.emit<clone_t>(meta.session, meta.clone);
        }
        hdr.ipv4.checksum = checksum.update({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.reserved,
            hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst });
        packet.emit(hdr);
    }
}

// Nothing is left to do on the way out.
struct no_headers_t {}
struct no_metadata_t {}

parser EgressParser(packet_in packet, out no_headers_t hdr, out no_metadata_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control Egress(inout no_headers_t hdr, inout no_metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser, inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_output) {
    apply {}
}

control EgressDeparser(packet_out packet, inout no_headers_t hdr, in no_metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {}
}

Pipeline(RackParser(), RackIngress(), RackDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
