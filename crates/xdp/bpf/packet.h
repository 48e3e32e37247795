/* A packet's headers: where they are, and how they are rewritten with their checksums. */
#pragma once
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "tables.h"

/* docs/wire.md: ten bytes, big endian, at an even offset. */
struct wire_header {
	__u8 class;
	__u8 flag;
	__u16 index[2];
	__u16 time_ns[2];
};

#define FLAG_CLONE_MASK 0x03
#define FLAG_ORIGINAL 1
#define FLAG_CLONE 2
#define FLAG_RESPONSE 0x04
#define FLAG_STATUS_SHIFT 3
#define FLAG_STATUS_MASK 0x38
#define FLAG_BOUNCED 0x40
#define STATUS_SHED 1
#define STATUS_DRAINING 4
#define MOST_PAYLOAD 2000
#define ETH_P_8021Q_ETC 0x8100
#define ETH_P_8021AD_ETC 0x88a8

struct vlan_tag {
	__be16 tci;
	__be16 proto;
};

struct frame {
	struct ethhdr *eth;
	union {
		struct iphdr *ip4;
		struct ipv6hdr *ip6;
		void *ip;
	};
	struct udphdr *udp;
	struct wire_header *wire;
	__u8 family;
};

/* Addresses, port and wire header of a packet to be. Addresses of IPv4 are the first word. */
struct rewrite {
	const __u32 *source_ip;
	const __u32 *dest_ip;
	const __u8 *source_mac;
	const __u8 *dest_mac;
	__u16 source_port;
	__u16 dest_port;
	__u8 class;
	__u8 flag;
	__u32 index;       /* network order */
	__u32 time_ns;     /* network order */
};

static __always_inline __u32 word(const void *at)
{
	return *(const __u32 *)at;
}

static __always_inline void put_word(void *at, __u32 value)
{
	*(__u32 *)at = value;
}

static __always_inline __u64 sum_ip6(const void *at)
{
	return (__u64)word(at) + word(at + 4) + word(at + 8) + word(at + 12);
}

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* RFC 1624, equation 3: the complement of (the complement of the checksum - before + after). */
static __always_inline __u16 updated(__u16 check, __u64 before, __u64 after)
{
	__u64 sum = (__u16)~check + (__u64)(__u16)~folded(before) + after;
	return (__u16)~folded(sum);
}

static __always_inline void put_udp_check(struct udphdr *udp, __u16 check)
{
	udp->check = check ? check : 0xffff;
}

static __always_inline __u64 sum_addresses(const struct frame *f)
{
	if (f->family == FAMILY_IP4)
		return (__u64)f->ip4->saddr + f->ip4->daddr;
	return sum_ip6(&f->ip6->saddr) + sum_ip6(&f->ip6->daddr);
}

/* Ports, and the wire header but for what no rewrite changes. */
static __always_inline __u64 sum_rewritten(const struct frame *f)
{
	const void *wire = f->wire;
	return (__u64)word(f->udp) + word(wire) + word(wire + 4) + *(const __u16 *)(wire + 8);
}

static __always_inline void put_macs(struct frame *f, const struct rewrite *to)
{
	__builtin_memcpy(f->eth->h_dest, to->dest_mac, ETH_ALEN);
	__builtin_memcpy(f->eth->h_source, to->source_mac, ETH_ALEN);
}

static __always_inline void put_ip6(void *at, const __u32 *ip)
{
	put_word(at, ip[0]);
	put_word(at + 4, ip[1]);
	put_word(at + 8, ip[2]);
	put_word(at + 12, ip[3]);
}

/* The packet leaves with these addresses and this wire header; its checksums follow. */
static __always_inline void rewrite(struct frame *f, const struct rewrite *to)
{
	__u64 addresses_before = sum_addresses(f), before = sum_rewritten(f);
	if (f->family == FAMILY_IP4) {
		f->ip4->saddr = to->source_ip[0];
		f->ip4->daddr = to->dest_ip[0];
	} else {
		put_ip6(&f->ip6->saddr, to->source_ip);
		put_ip6(&f->ip6->daddr, to->dest_ip);
	}
	f->udp->source = to->source_port;
	f->udp->dest = to->dest_port;
	f->wire->class = to->class;
	f->wire->flag = to->flag;
	put_word(f->wire->index, to->index);
	put_word(f->wire->time_ns, to->time_ns);
	__u64 addresses = sum_addresses(f);
	if (f->family == FAMILY_IP4)
		f->ip4->check = updated(f->ip4->check, addresses_before, addresses);
	if (f->udp->check)
		put_udp_check(f->udp, updated(f->udp->check, addresses_before + before, addresses + sum_rewritten(f)));
	put_macs(f, to);
}

/* The packet keeps its sender and its wire header, but for the flag: it goes to another server. */
static __always_inline void redirect_to(struct frame *f, const struct server_entry *server, __u8 flag)
{
	__u64 before = (__u64)f->udp->dest + *(const __u16 *)f->wire, after;
	f->wire->flag = flag;
	f->udp->dest = server->port;
	after = (__u64)f->udp->dest + *(const __u16 *)f->wire;
	if (f->family == FAMILY_IP4) {
		__u32 old = f->ip4->daddr, new = server->ip[0];
		f->ip4->daddr = new;
		f->ip4->check = updated(f->ip4->check, old, new);
		before += old;
		after += new;
	} else {
		before += sum_ip6(&f->ip6->daddr);
		put_ip6(&f->ip6->daddr, server->ip);
		after += sum_ip6(&f->ip6->daddr);
	}
	if (f->udp->check)
		put_udp_check(f->udp, updated(f->udp->check, before, after));
	__builtin_memcpy(f->eth->h_dest, server->mac, ETH_ALEN);
	__builtin_memcpy(f->eth->h_source, server->own_mac, ETH_ALEN);
}
