/* VLAN tags beside packets: a sender that leaves its tag to hardware (`txvlan on`) sends it through a veth pair beside the packet. */
#pragma once
#include "kernel_buffer.h"

/* What the driver of a veth pair keeps behind its `struct xdp_buff` since Linux 6.3. There is no buffer of a packet that a program redirected to the pair,
 * and no tag. */
struct veth_buffer {
	struct sk_buff *skb;
};

#define TARGET_TYPE 1

/* In the place of this number the loader puts a call of the kernel's function bpf_rdonly_cast. As bpf_cast_to_kern_ctx it tells the verifier what an address
 * is of, and the verifier makes moves between registers of both. */
static void *(*const kernel_read)(const void *at, __u32 type) = (void *)0x4b435244;

/* Whether a VLAN tag lies beside the packet. Only the driver of a veth pair may run what asks. */
static __always_inline bool has_tag_beside(struct xdp_md *ctx)
{
	/* The first word of a `struct sk_buff` is the address of another: so the verifier knows what the loaded word is. */
	const struct veth_buffer *behind = kernel_read(behind_xdp_buff(ctx), __builtin_btf_type_id(*(struct sk_buff *)0, TARGET_TYPE));
	const struct sk_buff *skb = behind->skb;
	return skb && skb->vlan_all;
}
