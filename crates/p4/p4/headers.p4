// What both programs parse: Ethernet, one VLAN tag, IPv4 without options, UDP, and the ten bytes of docs/wire.md.

const bit<16> TYPE_VLAN = 0x8100;
const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;

// The flag of the wire header: bits 0 and 1 the clone role, bit 2 a response, bits 3 to 5 the status, bit 6 handed back.
const bit<2> ROLE_PLAIN = 0;
const bit<2> ROLE_ORIGINAL = 1;
const bit<2> ROLE_CLONE = 2;
const bit<3> STATUS_SHED = 1;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header vlan_t {
    bit<16> tag;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_len;
    bit<16> id;
    bit<1> reserved;
    bit<1> dont_fragment;
    bit<1> more_fragments;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

header rack_t {
    bit<8> type;
    bit<1> unused;
    bit<1> handed_back;
    bit<3> status;
    bit<1> is_response;
    bit<2> role;
    bit<32> index;
    bit<32> time_ns;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
    udp_t udp;
    rack_t rack;
}
