//! Hosts of network namespaces in a VLAN. Not every kernel has devices of VLANs, so classifiers stand in for one.
#![allow(dead_code, reason = "each test uses a part of it")]

use super::net::shell;

/// Classifiers of a host in VLAN 5: one gives every IPv4 packet its tag, the other lets none in without and takes it out.
const SOURCES: [(&str, &str); 2] = [
    (
        "push.bpf.c",
        r#"
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("classifier")
int push(struct __sk_buff *skb)
{
	if (skb->protocol == bpf_htons(ETH_P_IP))
		bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 5);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
"#,
    ),
    (
        "pop.bpf.c",
        r#"
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("classifier")
int pop(struct __sk_buff *skb)
{
	if (!skb->vlan_present)
		return skb->protocol == bpf_htons(ETH_P_IP) ? TC_ACT_SHOT : TC_ACT_OK;
	if ((skb->vlan_tci & 0xfff) != 5)
		return TC_ACT_SHOT;
	bpf_skb_vlan_pop(skb);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
"#,
    ),
];

/// The classifiers of the packets that leave, and of those that come.
fn compiled() -> [Vec<u8>; 2] {
    headway_bpf::objects(&SOURCES, ["push.bpf", "pop.bpf"]).expect("clang")
}

/// Puts the device of the host of this [task](super::net::Host::task) into VLAN 5.
pub(crate) fn put_into_vlan(task: i32) {
    let run = |command: &str| in_namespace_of(task, command);
    run("tc qdisc add dev e0 clsact");
    for (object, direction) in compiled().iter().zip(["egress", "ingress"]) {
        attach(object, direction, run);
    }
}

/// From here on IPv4 packets of this thread's device have the tag of VLAN 5.
pub(crate) fn tag_all() {
    let run = |command: &str| drop(shell(command));
    run("tc qdisc add dev e0 clsact");
    let [push, _] = compiled();
    attach(&push, "egress", run);
}

/// `run` runs a command in the namespace of the device.
fn attach(object: &[u8], direction: &str, run: impl Fn(&str)) {
    let path = format!("/tmp/headway-vlan-{}.o", nix::unistd::gettid());
    std::fs::write(&path, object).expect("the object");
    run(&format!(
        "tc filter add dev e0 {direction} bpf direct-action object-file {path} section classifier"
    ));
    std::fs::remove_file(&path).expect("the object");
}

/// Whether the host's device sends tags beside packets, or in them.
pub(crate) fn leave_tags_to_hardware(task: i32, leaves: bool) {
    let state = if leaves { "on" } else { "off" };
    in_namespace_of(task, &format!("ethtool -K e0 txvlan {state}"));
}

fn in_namespace_of(task: i32, command: &str) {
    let own = std::process::id();
    shell(&format!(
        "nsenter --net=/proc/{own}/task/{task}/ns/net {command}"
    ));
}
