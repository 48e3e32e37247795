/* VLAN tags beside packets: a sender that leaves its tag to hardware (`txvlan on`) sends it through a veth pair beside the packet. */
#pragma once

/* The kernel's own, by the fields that are used here. */
struct xdp_buff {
	void *data;
} __attribute__((preserve_access_index));
struct sk_buff {
	__u32 vlan_all;
} __attribute__((preserve_access_index));

/* What the driver of a veth pair keeps behind its `struct xdp_buff` since Linux 6.3. There is no buffer of a packet that a program redirected to the pair,
 * and no tag. */
struct behind_xdp_buff {
	struct sk_buff *skb;
};

#define TYPE_SIZE 1
#define TARGET_TYPE 1

/* In the place of these numbers the loader puts calls of the kernel's functions bpf_cast_to_kern_ctx and bpf_rdonly_cast. They tell the verifier what an address
 * is of, and it makes moves between registers of them. */
static void *(*const kernel_context)(struct xdp_md *ctx) = (void *)0x4b434354;
static void *(*const kernel_read)(const void *at, __u32 type) = (void *)0x4b435244;

/* Whether a VLAN tag lies beside the packet. Only the driver of a veth pair may run what asks. */
static __always_inline bool has_tag_beside(struct xdp_md *ctx)
{
	const void *at = kernel_context(ctx) + __builtin_preserve_type_info(*(struct xdp_buff *)0, TYPE_SIZE);
	/* The first word of a `struct sk_buff` is the address of another: so the verifier knows what the loaded word is. */
	const struct behind_xdp_buff *behind = kernel_read(at, __builtin_btf_type_id(*(struct sk_buff *)0, TARGET_TYPE));
	const struct sk_buff *skb = behind->skb;
	return skb && skb->vlan_all;
}
