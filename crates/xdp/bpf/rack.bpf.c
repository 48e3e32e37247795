/* The step of a rack's switch in XDP: a request goes to the server whose turn it is, a response back to its client. The step is that of
 * `headway_policy::rack::Shaper` and of `headway_rack::RackSwitch`; tests/planes.rs holds the three against each other. */
#include <linux/types.h>
#include "tables.h"

/* The loader writes it before the load, so that the kernel compiles the other mode away. */
volatile const struct switch_config config = {};

#include "packet.h"
#include "tags.h"

#define MAP(name, kind, value_t, entries) \
	struct { __uint(type, kind); __type(key, __u32); __type(value, value_t); __uint(max_entries, entries); } name SEC(".maps")

MAP(head, BPF_MAP_TYPE_ARRAY, struct tables_head, 1);
MAP(tables, BPF_MAP_TYPE_ARRAY, struct rack_tables, 2);
MAP(nat, BPF_MAP_TYPE_ARRAY, struct nat_entry, NAT_SLOTS);
MAP(bursts, BPF_MAP_TYPE_ARRAY, struct burst_register, MAX_GROUPS);
MAP(loads, BPF_MAP_TYPE_ARRAY, struct rack_loads, 1);
MAP(registers, BPF_MAP_TYPE_PERCPU_ARRAY, struct cpu_registers, 1);
MAP(interfaces, BPF_MAP_TYPE_ARRAY, struct own_interfaces, 1);
MAP(stamp, BPF_MAP_TYPE_ARRAY, __u64, 1); /* of the loader alone: what the other maps are of */

/* One packet on its way: its frame, and the tables and registers that it uses throughout. */
struct step {
	struct xdp_md *ctx;
	struct frame f;
	struct rack_tables *tables;
	struct cpu_registers *own;
	struct clone_order *order; /* where to ask for a clone of an excess request; none when the driver has no room */
	__u32 copy;                /* of the tables */
	bool is_veth;              /* the driver of a veth pair runs the program; constant */
};

static __always_inline void count(struct step *s, enum packet_count reason)
{
	s->own->counts[reason] += 1;
}

static __always_inline int drop(struct step *s, enum packet_count reason)
{
	count(s, reason);
	return XDP_DROP;
}

/* A veth pair drops what XDP_TX sends back unless the other end has an XDP program; what is redirected needs no more than GRO there. */
static __always_inline int leave_by(const struct step *s, __u32 ifindex)
{
	return ifindex == s->ctx->ingress_ifindex && !s->is_veth ? XDP_TX : bpf_redirect(ifindex, 0);
}

static __always_inline const void *source_ip(const struct frame *f)
{
	return f->family == FAMILY_IP4 ? (const void *)&f->ip4->saddr : (const void *)&f->ip6->saddr;
}

static __always_inline bool same_ip(__u8 family, const void *packet, const __u32 *ip)
{
	if (family == FAMILY_IP4)
		return word(packet) == ip[0];
	return word(packet) == ip[0] && word(packet + 4) == ip[1] && word(packet + 8) == ip[2] && word(packet + 12) == ip[3];
}

static __always_inline __u32 bucket_of(const struct step *s)
{
	const void *ip = source_ip(&s->f);
	__u32 mixed = word(ip);
	if (s->f.family == FAMILY_IP6)
		mixed ^= word(ip + 4) ^ word(ip + 8) ^ word(ip + 12);
	mixed = (mixed ^ s->f.udp->source ^ s->tables->seed) * 0x9e3779b1u;
	return mixed >> 22;
}

/* The server whose address the packet comes from. Most come from no server's, and find a free bucket at once. */
static __always_inline const struct server_entry *sending_server(const struct step *s)
{
	__u32 at = bucket_of(s);
	for (int probe = 0; probe < MAX_PROBES; probe++) {
		__u32 number = s->tables->bucket[(at + probe) & (BUCKETS - 1)];
		if (number == 0)
			return 0;
		const struct server_entry *server = &s->tables->server[(number - 1) & (MAX_SERVERS - 1)];
		if (server->family == s->f.family && server->port == s->f.udp->source && same_ip(s->f.family, source_ip(&s->f), server->ip))
			return server;
	}
	return 0;
}

/* Whether the packet came in by the interface that leads to the server. Whoever sends under the server's address elsewhere, as on the clients' side,
 * is not it. */
static __always_inline bool on_its_side(const struct step *s, const struct server_entry *server)
{
	return server->ifindex == s->ctx->ingress_ifindex;
}

static __always_inline bool from_own_address(const struct frame *f)
{
	if (f->udp->source != config.port)
		return false;
	if (f->family == FAMILY_IP4)
		return f->ip4->saddr == config.own_ip4;
	const void *ip = &f->ip6->saddr;
	return word(ip) == config.own_ip6[0] && word(ip + 4) == config.own_ip6[1] && word(ip + 8) == config.own_ip6[2] &&
	       word(ip + 12) == config.own_ip6[3];
}

/* The server whose turn it is in a group, by this CPU's counter; negative when the group has none. */
static __always_inline int turn(struct step *s, __u32 group)
{
	const struct group_table *table = &s->tables->group[group & (MAX_GROUPS - 1)];
	__u32 *counter = &s->own->next_turn[group & (MAX_GROUPS - 1)];
	__u32 round = table->round, at = *counter;
	if (round == 0)
		return -1;
	/* The tables changed since the counter's last use. */
	if (at >= round)
		at %= round;
	*counter = at + 1 == round ? 0 : at + 1;
	return s->tables->turns[(table->first + at) & (MAX_TURNS - 1)];
}

static __always_inline __u32 class_of(const struct step *s, __u8 wire_class)
{
	return s->tables->class_of[wire_class];
}

static __always_inline struct server_entry *server_at(const struct step *s, __u32 number)
{
	return &s->tables->server[number & (MAX_SERVERS - 1)];
}

static __always_inline struct server_registers *registers_of(struct step *s, __u32 number)
{
	return &s->own->server[number & (MAX_SERVERS - 1)];
}

/* Drops a request that this server cannot get: it has no address of the packet's family, or was removed. */
static __always_inline int drop_unreachable(struct step *s, const struct server_entry *server)
{
	return drop(s, server->family ? COUNT_OTHER_FAMILY : COUNT_NO_SERVER);
}

static __always_inline void addresses_of_switch(struct rewrite *to, __u32 *own_ip, __u8 family)
{
	if (family == FAMILY_IP4) {
		own_ip[0] = config.own_ip4;
	} else {
		own_ip[0] = config.own_ip6[0];
		own_ip[1] = config.own_ip6[1];
		own_ip[2] = config.own_ip6[2];
		own_ip[3] = config.own_ip6[3];
	}
	to->source_ip = own_ip;
	to->source_port = config.port;
}

/* Addresses a response, this one or a refusal, to the client of `entry`. */
static __always_inline void address_to_client(struct step *s, const struct nat_entry *entry, __u8 flag, __u32 time_ns)
{
	__u32 own_ip[4] = {};
	struct rewrite to = {
		.dest_ip = entry->client_ip, .dest_port = entry->client_port, .macs = &entry->macs,
		.class = entry->wire_class, .flag = flag, .index = entry->client_index, .time_ns = time_ns,
	};
	addresses_of_switch(&to, own_ip, s->f.family);
	rewrite(&s->f, s->ctx, &to);
}

#include "shed.h"
#include "choose.h"
#include "burst.h"
#include "overflow.h"
#include "nat.h"

static __always_inline int request(struct step *s)
{
	if (from_own_address(&s->f) || sending_server(s))
		return drop(s, COUNT_SPOOFED);
	count(s, COUNT_REQUESTS);
	__u32 class = class_of(s, s->f.wire->class);
	if (class == config.types) {
		count(s, COUNT_UNKNOWN_TYPE);
		s->own->unknown_bytes[s->f.wire->class] += 1;
	}
	__u32 group = s->tables->group_of[class & (MAX_TYPES - 1)];
	if (config.mode == MODE_NAT)
		return begin(s, class, group);
	int number = turn(s, group);
	if (number < 0)
		return shed_request(s);
	s->own->type[class & (MAX_TYPES - 1)].count += 1;
	const struct server_entry *server = server_at(s, number);
	if (server->family != s->f.family)
		return drop_unreachable(s, server);
	registers_of(s, number)->sent += 1;
	redirect_to(&s->f, s->ctx, server, 0);
	return leave_by(s, server->ifindex);
}

/* Handles a packet to this switch's address. Each family calls it with a constant `family`, so that the compiler makes a path for each:
 * one path for both costs 3 ns of 20. */
static __always_inline int datagram(struct step *s, void *end, __u8 family, __u32 udp_most)
{
	struct frame *f = &s->f;
	f->family = family;
	if ((void *)(f->udp + 1) > end)
		return drop(s, COUNT_TRUNCATED);
	if (f->udp->dest != config.port || !f->udp->source)
		return XDP_PASS;
	/* Sent on from here it would be on no VLAN, or on another. */
	if (s->is_veth && has_tag_beside(s->ctx))
		return drop(s, COUNT_HIDDEN_TAG);
	f->wire = (void *)(f->udp + 1);
	__u32 length = bpf_ntohs(f->udp->len);
	if ((void *)(f->wire + 1) > end || length < sizeof(*f->udp) + sizeof(*f->wire) || length > udp_most || (void *)f->udp + (length & 0xffff) > end)
		return drop(s, COUNT_TRUNCATED);
	if (length > sizeof(*f->udp) + MOST_PAYLOAD)
		return drop(s, COUNT_TOO_LONG);
	if (f->wire->flag & FLAG_RESPONSE)
		return response(s);
	if (f->wire->flag & FLAG_BOUNCED)
		return bounced(s);
	return request(s);
}

/* Whether the frame was sent to the Ethernet address of the interface that it came in by. Others come in too, where a bridge floods or the interface takes all. */
static __always_inline bool is_to_own_mac(const struct step *s)
{
	const __u8 *dest = s->f.eth->h_dest;
	__u32 zero = 0, came_by = s->ctx->ingress_ifindex;
	const struct own_interfaces *own = bpf_map_lookup_elem(&interfaces, &zero);
	if (dest[0] & 1 || !own)
		return false;
	for (int at = 0; at < MAX_INTERFACES; at++) {
		const struct interface_address *one = &own->at[at];
		if (one->ifindex == came_by)
			return word(dest) == word(one->mac) && *(const __u16 *)(dest + 4) == *(const __u16 *)(one->mac + 4);
		if (!one->ifindex)
			break;
	}
	return true;
}

/* Whether a host of another machine can have this address: none of this network's or machine's own, of several, or of all. */
static __always_inline bool is_host4(__be32 ip)
{
	__u8 first = *(const __u8 *)&ip;
	return first != 0 && first != 127 && first < 224;
}

static __always_inline bool is_host6(const void *ip)
{
	bool is_own_kind = !word(ip) && !word(ip + 4) && !word(ip + 8) && (word(ip + 12) & bpf_htonl(~1u)) == 0;
	return *(const __u8 *)ip != 0xff && !is_own_kind;
}

/* Parses the addresses. A packet to another address is passed on unchanged. */
static __always_inline int parse(struct step *s, void *data, void *end)
{
	struct frame *f = &s->f;
	f->eth = data;
	if ((void *)(f->eth + 1) > end)
		return XDP_PASS;
	__u16 proto = f->eth->h_proto;
	void *at = f->eth + 1;
#pragma unroll
	for (int tag = 0; tag < 2; tag++) {
		if (proto != bpf_htons(ETH_P_8021Q_ETC) && proto != bpf_htons(ETH_P_8021AD_ETC))
			break;
		struct vlan_tag *vlan = at;
		if ((void *)(vlan + 1) > end)
			return XDP_PASS;
		proto = vlan->proto;
		at = vlan + 1;
	}
	f->ip = at;
	if (proto == bpf_htons(ETH_P_IP)) {
		if ((void *)(f->ip4 + 1) > end || f->ip4->version != 4 || f->ip4->protocol != IPPROTO_UDP || f->ip4->daddr != config.own_ip4 ||
		    config.own_ip4 == 0)
			return XDP_PASS;
		if (!f->ip4->ttl || !is_host4(f->ip4->saddr) || !is_to_own_mac(s))
			return XDP_PASS;
		if (f->ip4->ihl != 5) {
			count(s, COUNT_OPTIONS);
			return XDP_PASS;
		}
		if (f->ip4->frag_off & bpf_htons(0x3fff)) {
			count(s, COUNT_FRAGMENT);
			return XDP_PASS;
		}
		f->udp = (void *)(f->ip4 + 1);
		__u32 total = bpf_ntohs(f->ip4->tot_len);
		return datagram(s, end, FAMILY_IP4, total < sizeof(*f->ip4) ? 0 : total - sizeof(*f->ip4));
	}
	if (proto == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(f->ip6 + 1) > end)
			return XDP_PASS;
		const void *dest = &f->ip6->daddr;
		if (word(dest) != config.own_ip6[0] || word(dest + 4) != config.own_ip6[1] || word(dest + 8) != config.own_ip6[2] ||
		    word(dest + 12) != config.own_ip6[3] || f->ip6->version != 6)
			return XDP_PASS;
		if (!f->ip6->hop_limit || !is_host6(&f->ip6->saddr) || !is_to_own_mac(s))
			return XDP_PASS;
		__u8 next = f->ip6->nexthdr;
		if (next == IPPROTO_FRAGMENT) {
			count(s, COUNT_FRAGMENT);
			return XDP_PASS;
		}
		if (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS) {
			count(s, COUNT_OPTIONS);
			return XDP_PASS;
		}
		if (next != IPPROTO_UDP)
			return XDP_PASS;
		f->udp = (void *)(f->ip6 + 1);
		return datagram(s, end, FAMILY_IP6, bpf_ntohs(f->ip6->payload_len));
	}
	return XDP_PASS;
}

/* The loader measures the length of a tick by test runs of this program. */
SEC("xdp")
int clock(struct xdp_md *ctx)
{
	return tick();
}

/* The control plane renews its lease by a test run of this program, since only the kernel knows its ticks. */
SEC("xdp")
int renew(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct tables_head *newest = bpf_map_lookup_elem(&head, &zero);
	if (newest)
		newest->lease_tick = bpf_jiffies64() + config.lease_ticks;
	return XDP_PASS;
}

/* Nobody's switch: its control plane is gone for as long as its lease. */
static __always_inline bool is_abandoned(const struct tables_head *newest)
{
	return config.lease_ticks && (__s64)(bpf_jiffies64() - newest->lease_tick) > 0;
}

static __always_inline int step_of(struct xdp_md *ctx, bool is_veth)
{
	__u32 zero = 0;
	struct tables_head *newest = bpf_map_lookup_elem(&head, &zero);
	if (!newest || is_abandoned(newest))
		return XDP_PASS;
	/* Read once: this packet sees one generation, whatever the control plane writes meanwhile. */
	__u32 copy = *(volatile __u64 *)&newest->generation & 1;
	/* Pass no address of a part of this to a helper: the compiler would keep all of it on the stack. */
	struct step s = {
		.ctx = ctx, .copy = copy, .is_veth = is_veth,
		.tables = bpf_map_lookup_elem(&tables, &copy), .own = bpf_map_lookup_elem(&registers, &zero),
	};
	if (!s.tables || !s.own)
		return XDP_PASS;
	return parse(&s, (void *)(long)ctx->data, (void *)(long)ctx->data_end);
}

SEC("xdp")
int rack(struct xdp_md *ctx)
{
	return step_of(ctx, false);
}

/* The same in the driver of a veth pair: a program of its own, so that other devices pay nothing for it. */
SEC("xdp")
int rack_veth(struct xdp_md *ctx)
{
	return step_of(ctx, true);
}

#include "clones.h"
#include "lose.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
