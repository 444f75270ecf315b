// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What the engine is measured against (benches/engine.rs): the barest sender and receiver there can be, and a tap on the
// cable that sees when each frame comes by.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define LARGEST 65535  // ns; a gap that is further off counts as this

// The interface that frames leave by.
const volatile __u32 onward;
// What is meant to be between two frames, ns.
const volatile __u64 meant;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} latest SEC(".maps");

// How many gaps were so many ns longer or shorter than meant.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LARGEST + 1);
	__type(key, __u32);
	__type(value, __u64);
} errors SEC(".maps");

SEC("xdp")
int bare_send(struct xdp_md *context)
{
	return bpf_redirect(onward, 0);
}

SEC("xdp")
int bare_drop(struct xdp_md *context)
{
	return XDP_DROP;
}

SEC("xdp")
int tap(struct xdp_md *context)
{
	struct ethhdr *frame = (void *)(long)context->data;
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;
	__u64 *last = bpf_map_lookup_elem(&latest, &zero);

	// What is no IPv4 is none of the trial's.
	if ((void *)(frame + 1) > (void *)(long)context->data_end || frame->h_proto != bpf_htons(ETH_P_IP) || !last)
		return XDP_DROP;
	if (*last) {
		__u64 gap = now - *last;
		__u64 off = gap > meant ? gap - meant : meant - gap;
		__u32 key = off > LARGEST ? LARGEST : off;
		__u64 *count = bpf_map_lookup_elem(&errors, &key);
		if (count)
			*count += 1;
	}
	*last = now;
	return bpf_redirect(onward, 0);
}

// bpf_ktime_get_ns may be used by programs under the GPL only; the kernel asks for this word.
char licence[] SEC("license") = "Dual MIT/GPL";
