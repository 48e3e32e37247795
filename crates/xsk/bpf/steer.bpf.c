/* The choice of packets that go to AF_XDP sockets, and of the socket. All other packets go to the kernel. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "kernel_buffer.h"

#define BY_FLOW 0
#define BY_RANDOM 1
#define BY_BYTE 2

/* Mirrored by program.rs. */
struct steer_config {
	__u8 mac[ETH_ALEN];
	__be16 port;       /* 0: no port, only the hosts of the map below */
	__u32 sockets;     /* of each of the device's queues */
	__u8 how;
	__u8 byte;         /* of the UDP payload, by BY_BYTE */
	__u8 may_look;     /* for tags beside packets: the kernel has what that takes */
	__u8 unused;
};
_Static_assert(sizeof(struct steer_config) == 16, "as in program.rs");

volatile const struct steer_config config;

struct ip_key {
	__u8 bytes[16];
};

struct mac_key {
	__u8 bytes[8];
};

/* The socket of queue q and number n is at q * config.sockets + n. */
struct { __uint(type, BPF_MAP_TYPE_XSKMAP); __type(key, __u32); __type(value, __u32); __uint(max_entries, 64); } sockets SEC(".maps");
/* The served addresses. IPv4 is mapped. */
struct { __uint(type, BPF_MAP_TYPE_HASH); __type(key, struct ip_key); __type(value, __u32); __uint(max_entries, 256); } addresses SEC(".maps");
/* Hosts behind the sockets, by Ethernet address, and by IPv4 address for ARP. */
struct { __uint(type, BPF_MAP_TYPE_HASH); __type(key, struct mac_key); __type(value, __u32); __uint(max_entries, 256); } host_macs SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __type(key, __u32); __type(value, __u32); __uint(max_entries, 256); } host_ips SEC(".maps");

/* Whether the program looks for tags beside packets, and the packets with one. */
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __type(key, __u32); __type(value, __u64); __uint(max_entries, 2); } tags SEC(".maps");

struct vlan_tag {
	__be16 tci;
	__be16 proto;
};

struct arp_packet {
	__be16 hardware, protocol;
	__u8 hardware_bytes, protocol_bytes;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN], sender_ip[4], target_mac[ETH_ALEN], target_ip[4];
};

static __always_inline __u32 word(const void *at)
{
	__u32 value;
	__builtin_memcpy(&value, at, 4);
	return value;
}

/* A multiplication spreads its low bits upwards only, so the high half is folded down before the next. */
static __always_inline __u32 mixed(__u32 hash, __u32 more)
{
	__u64 product = (__u64)(hash ^ more) * 0x9E3779B97F4A7C15ull;
	return (__u32)(product >> 32) ^ (__u32)product;
}

#define FIELD_BYTE_OFFSET 0

/* Whether a VLAN tag lies beside the packet. A veth pair takes tags out of packets, and this end gets packets without; what is behind the kernel's `struct
 * xdp_buff` there tells. */
static __always_inline int has_tag_beside(struct xdp_md *ctx)
{
	__u32 at = 0, tag = 0;
	__u64 *looks = bpf_map_lookup_elem(&tags, &at);
	if (!config.may_look || !looks || !*looks)
		return 0;
	void *skb = 0;
	if (bpf_probe_read_kernel(&skb, sizeof(skb), behind_xdp_buff(ctx)) || !skb)
		return 0;
	if (bpf_probe_read_kernel(&tag, sizeof(tag), skb + __builtin_preserve_field_info(((struct sk_buff *)0)->vlan_all, FIELD_BYTE_OFFSET)))
		return 0;
	return tag != 0;
}

static __always_inline int drop_tagged(void)
{
	__u32 at = 1;
	__u64 *dropped = bpf_map_lookup_elem(&tags, &at);
	if (dropped)
		__sync_fetch_and_add(dropped, 1);
	return XDP_DROP;
}

static __always_inline int to_socket(struct xdp_md *ctx, __u32 choice)
{
	/* It would be answered without the tag, and nobody there would hear it. */
	if (has_tag_beside(ctx))
		return drop_tagged();
	__u32 each = config.sockets ? config.sockets : 1;
	return bpf_redirect_map(&sockets, ctx->rx_queue_index * each + choice % each, XDP_PASS);
}

static __always_inline int served_at(const struct ip_key *to)
{
	return bpf_map_lookup_elem(&addresses, to) != 0;
}

static __always_inline int is_own(const struct ethhdr *eth)
{
	__u8 differs = 0;
	for (int i = 0; i < ETH_ALEN; i++)
		differs |= eth->h_dest[i] ^ config.mac[i];
	return !differs;
}

static __always_inline int datagram(struct xdp_md *ctx, struct udphdr *udp, void *end, __u32 hash)
{
	if ((void *)(udp + 1) > end || udp->dest != config.port)
		return XDP_PASS;
	if (config.how == BY_RANDOM)
		return to_socket(ctx, bpf_get_prandom_u32());
	if (config.how == BY_BYTE) {
		__u8 *byte = (__u8 *)(udp + 1) + (config.byte & 15);
		return to_socket(ctx, (void *)(byte + 1) > end ? 0 : *byte);
	}
	return to_socket(ctx, mixed(hash, word(udp)));
}

/* A datagram to this device and one of its own addresses, whole, and without options between IP and UDP. */
static __always_inline int of_server(struct xdp_md *ctx, struct ethhdr *eth, void *at, __be16 proto, void *end)
{
	struct ip_key to = {};
	if (!config.port || !is_own(eth))
		return XDP_PASS;
	if (proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = at;
		if ((void *)(ip + 1) > end || ip->ihl != 5 || ip->protocol != IPPROTO_UDP)
			return XDP_PASS;
		if (ip->frag_off & bpf_htons(0x3fff))
			return XDP_PASS;
		to.bytes[10] = to.bytes[11] = 0xff;
		__builtin_memcpy(&to.bytes[12], &ip->daddr, 4);
		if (!served_at(&to))
			return XDP_PASS;
		return datagram(ctx, (void *)(ip + 1), end, mixed(ip->saddr, ip->daddr));
	}
	if (proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = at;
		if ((void *)(ip + 1) > end || ip->nexthdr != IPPROTO_UDP)
			return XDP_PASS;
		__builtin_memcpy(to.bytes, &ip->daddr, 16);
		if (!served_at(&to))
			return XDP_PASS;
		__u32 hash = 0;
		for (int i = 0; i < 4; i++)
			hash = mixed(mixed(hash, ip->saddr.in6_u.u6_addr32[i]), ip->daddr.in6_u.u6_addr32[i]);
		return datagram(ctx, (void *)(ip + 1), end, hash);
	}
	return XDP_PASS;
}

/* Whether a frame is for a host behind the sockets: sent to its Ethernet address, or an ARP request for its IPv4 address. */
static __always_inline int is_for_host(struct ethhdr *eth, void *at, __be16 proto, void *end)
{
	struct mac_key to = {};
	__builtin_memcpy(to.bytes, eth->h_dest, ETH_ALEN);
	if (bpf_map_lookup_elem(&host_macs, &to))
		return 1;
	struct arp_packet *arp = at;
	if (proto != bpf_htons(ETH_P_ARP) || (void *)(arp + 1) > end)
		return 0;
	__u32 ip = word(arp->target_ip);
	return bpf_map_lookup_elem(&host_ips, &ip) != 0;
}

SEC("xdp")
int steer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	void *at = eth + 1;
	if (at > end)
		return XDP_PASS;
	__be16 proto = eth->h_proto;
	for (int tags = 0; tags < 2; tags++) {
		if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
			break;
		struct vlan_tag *tag = at;
		at = tag + 1;
		if (at > end)
			return XDP_PASS;
		proto = tag->proto;
	}
	if (is_for_host(eth, at, proto, end))
		return to_socket(ctx, 0);
	return of_server(ctx, eth, at, proto, end);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
