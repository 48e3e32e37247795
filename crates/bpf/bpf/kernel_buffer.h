/* What the kernel keeps of a packet beside its bytes: where a driver put the packet, and the packet's VLAN tag. */
#pragma once
#include <linux/bpf.h>

/* The kernel's own, by the fields that are used here. */
struct xdp_buff {
	void *data;
} __attribute__((preserve_access_index));
struct sk_buff {
	__u32 vlan_all;
} __attribute__((preserve_access_index));

/* A question to `__builtin_preserve_type_info`. */
#define TYPE_SIZE 1

/* In the place of this number the loader puts a call of the kernel's function bpf_cast_to_kern_ctx. */
static void *(*const kernel_context)(struct xdp_md *ctx) = (void *)0x4b434354;

/* Behind the kernel's `struct xdp_buff` of this packet: there the driver of a veth pair keeps the packet's `struct sk_buff`. */
static __attribute__((always_inline)) inline void *behind_xdp_buff(struct xdp_md *ctx)
{
	return kernel_context(ctx) + __builtin_preserve_type_info(*(struct xdp_buff *)0, TYPE_SIZE);
}
