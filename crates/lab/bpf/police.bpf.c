// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A policer: lets through what keeps to a rate, of bits or of frames, and drops the rest at once, without a queue. Its
// settings are written by crates/lab/src/policer.rs.
//
// It is a virtual queue, as the reference device's: each frame that is let through moves the moment at which all of it would
// have left at the rate, and a frame that comes while that moment is further off than the burst is dropped.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "virtual_queue.h"

// What one byte on the wire costs, 2^-28 ns.
const volatile __u64 byte_cost;
// What one frame costs besides, 2^-12 ns.
const volatile __u64 frame_cost;
// How far off that moment may be, 2^-12 ns.
const volatile __u64 burst;

struct state {
	struct bpf_spin_lock lock;
	__u32 unused;
	__u64 free_at;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} state SEC(".maps");

// How neighbours find each other passes outside the limit: it would go on below any flood.
static __always_inline int finds_neighbours(struct __sk_buff *frame)
{
	if (frame->protocol == bpf_htons(ETH_P_ARP))
		return 1;
	if (frame->protocol != bpf_htons(ETH_P_IPV6))
		return 0;
	__u8 next = 0, type = 0;
	bpf_skb_load_bytes(frame, ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &next, sizeof(next));
	if (next != IPPROTO_ICMPV6)
		return 0;
	bpf_skb_load_bytes(frame, ETH_HLEN + sizeof(struct ipv6hdr), &type, sizeof(type));
	return type >= 133 && type <= 137;
}

SEC("classifier")
int police(struct __sk_buff *frame)
{
	if (finds_neighbours(frame))
		return TC_ACT_UNSPEC;
	__u32 zero = 0;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	if (!s)
		return TC_ACT_SHOT;
	// Of what is yet to be cut into frames, wire_len counts the headers of each.
	__u64 frames = frame->gso_segs > 1 ? frame->gso_segs : 1;
	__u64 bytes = frame->wire_len > frame->len ? frame->wire_len : frame->len;
	if (bytes < SHORTEST)
		bytes = SHORTEST;
	__u64 cost = (((bytes + frames * AROUND) * byte_cost) >> COST_SHIFT) + frames * frame_cost;
	__u64 now = bpf_ktime_get_ns() << TIME_SHIFT, most = burst;

	bpf_spin_lock(&s->lock);
	int passes = take(&s->free_at, now, cost, most);
	bpf_spin_unlock(&s->lock);
	return passes ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

char licence[] SEC("license") = "Dual MIT/GPL";
