/* A packet's headers: finding them, and rewriting them with their checksums. */
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

/* Addresses, port and wire header of a packet to be sent. IPv4 addresses are the first word. */
struct rewrite {
	const __u32 *source_ip;
	const __u32 *dest_ip;
	const struct mac_pair *macs;
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

/* Copies words by hand: the compiler would copy six bytes one at a time, unaware that unaligned words are allowed here. */
static __always_inline void put_mac(void *to, const void *from)
{
	put_word(to, word(from));
	*(__u16 *)(to + 4) = *(const __u16 *)(from + 4);
}

static __always_inline __u64 sum_ip6(const void *at)
{
	return (__u64)word(at) + word(at + 4) + word(at + 8) + word(at + 12);
}

/* Two bytes in the packet's order. */
static __always_inline __u16 pair(__u8 first, __u8 second)
{
	return bpf_htons((__u16)first << 8 | second);
}

/* Sums modulo 0xffff: of words of any size, in any order. */
static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (sum >> 16);
}

/* A multiple of 0xffff beyond every sum of a packet's words: it keeps a difference of such sums positive. */
#define SUM_MODULUS (0xffffull << 40)

/* RFC 1624: the checksum of words whose sum changed by `change`, which has SUM_MODULUS in it. */
static __always_inline __u16 updated(__u16 check, __u64 change)
{
	return (__u16)~folded((__u16)~check + change);
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

/* Of the pseudo header beside the addresses: the protocol and the length. */
static __always_inline __u64 sum_pseudo(const struct udphdr *udp)
{
	return (__u64)bpf_htons(IPPROTO_UDP) + udp->len;
}

/* Whether the sender left the checksum to hardware that no packet of its way has met: then the field has the sum of the pseudo header alone. A whole
 * checksum is equal to that one time in 65 535. */
static __always_inline bool is_unfinished(const struct frame *f, __u64 addresses)
{
	return config.unfinished && f->udp->check == folded(addresses + sum_pseudo(f->udp));
}

#define MOST_HEADERS 127 /* more bytes than are before a UDP header */

/* The sum of the packet's bytes from an offset on, at most of a datagram. A function that the verifier checks by itself, and its loop once. */
__noinline __u32 sum_bytes(struct xdp_md *ctx, __u32 from, __u32 bytes)
{
	void *end = (void *)(long)ctx->data_end, *at = (void *)(long)ctx->data + (from & MOST_HEADERS);
	__u32 sum = 0;
	for (__u32 summed = 2; summed <= sizeof(struct udphdr) + MOST_PAYLOAD; summed += 2, at += 2) {
		if (summed > bytes || at + 2 > end)
			break;
		sum += *(const __u16 *)at;
	}
	if (bytes & 1 && at + 1 <= end)
		sum += pair(*(const __u8 *)at, 0);
	return sum;
}

/* Finishes the checksum of a rewritten datagram. The packet leaves for a wire, where nobody knows what its sender left to whom. IPv4 allows that there is none. */
static __always_inline void finish_udp_check(struct frame *f, struct xdp_md *ctx, __u64 addresses)
{
	f->udp->check = 0;
	if (f->family == FAMILY_IP4)
		return;
	__u64 sum = addresses + sum_pseudo(f->udp);
	sum += sum_bytes(ctx, (void *)f->udp - (void *)(long)ctx->data, bpf_ntohs(f->udp->len));
	put_udp_check(f->udp, ~folded(sum));
}

/* Ports and wire header. */
static __always_inline __u64 sum_rewritten(const struct frame *f)
{
	const void *wire = f->wire;
	return (__u64)word(f->udp) + *(const __u16 *)wire + word(wire + 2) + word(wire + 6);
}

static __always_inline void put_macs(struct frame *f, const struct mac_pair *macs)
{
	*(__u64 *)f->eth->h_dest = *(const __u64 *)macs;
	put_word(f->eth->h_dest + 8, word((const void *)macs + 8));
}

static __always_inline void put_ip6(void *at, const __u32 *ip)
{
	put_word(at, ip[0]);
	put_word(at + 4, ip[1]);
	put_word(at + 8, ip[2]);
	put_word(at + 12, ip[3]);
}

/* Rewrites the packet's addresses and wire header, and updates its checksums. It never reads written bytes back, since a load that spans
 * several stores waits for them. */
static __always_inline void rewrite(struct frame *f, struct xdp_md *ctx, const struct rewrite *to)
{
	__u64 before = sum_addresses(f), addresses = SUM_MODULUS - before, rest = sum_rewritten(f);
	bool unfinished = is_unfinished(f, before);
	__u16 class_and_flag = pair(to->class, to->flag);
	if (f->family == FAMILY_IP4) {
		__u32 source = to->source_ip[0], dest = to->dest_ip[0];
		f->ip4->saddr = source;
		f->ip4->daddr = dest;
		addresses += (__u64)source + dest;
		f->ip4->check = updated(f->ip4->check, addresses);
	} else {
		put_ip6(&f->ip6->saddr, to->source_ip);
		put_ip6(&f->ip6->daddr, to->dest_ip);
		addresses += sum_ip6(to->source_ip) + sum_ip6(to->dest_ip);
	}
	f->udp->source = to->source_port;
	f->udp->dest = to->dest_port;
	*(__u16 *)f->wire = class_and_flag;
	put_word(f->wire->index, to->index);
	put_word(f->wire->time_ns, to->time_ns);
	rest = (__u64)to->source_port + to->dest_port + class_and_flag + to->index + to->time_ns - rest;
	if (unfinished)
		finish_udp_check(f, ctx, before + addresses);
	else if (f->udp->check)
		put_udp_check(f->udp, updated(f->udp->check, addresses + rest));
	put_macs(f, to->macs);
}

/* Redirects the packet to another server. It keeps its sender and its wire header except the flag. There is no `ctx` behind the XDP program, which left
 * nothing unfinished. */
static __always_inline void redirect_to(struct frame *f, struct xdp_md *ctx, const struct server_entry *server, __u8 flag)
{
	__u64 before = sum_addresses(f);
	bool unfinished = ctx && is_unfinished(f, before);
	__u16 class_and_flag = pair(f->wire->class, flag);
	__u64 addresses = SUM_MODULUS, rest = (__u64)server->port + class_and_flag - f->udp->dest - *(const __u16 *)f->wire;
	*(__u16 *)f->wire = class_and_flag;
	f->udp->dest = server->port;
	if (f->family == FAMILY_IP4) {
		__u32 dest = server->ip[0];
		addresses += (__u64)dest - f->ip4->daddr;
		f->ip4->daddr = dest;
		f->ip4->check = updated(f->ip4->check, addresses);
	} else {
		addresses += sum_ip6(server->ip) - sum_ip6(&f->ip6->daddr);
		put_ip6(&f->ip6->daddr, server->ip);
	}
	if (unfinished)
		finish_udp_check(f, ctx, before + addresses);
	else if (f->udp->check)
		put_udp_check(f->udp, updated(f->udp->check, addresses + rest));
	put_macs(f, &server->macs);
}
