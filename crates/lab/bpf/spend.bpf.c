// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A slow filter: spends a set time on each frame that comes in, in the soft interrupt that receives it, and lets it pass.
// Its setting is written by crates/lab/src/fault/softirq_load.rs.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

// Reading the clock once takes 10 ns or more, so all rounds of readings take longer than the longest time that can be set.
#define READINGS 512
#define ROUNDS 32
// The most frames that one packet was joined from.
#define FRAMES 64

// What one frame costs, ns.
const volatile __u64 frame_ns;

// The verifier checks each of these functions once, whoever calls it: the loops would be too long for it in one.

// Whether `until` was reached within a round of readings.
__attribute__((noinline)) int reached(__u64 until)
{
	for (int reading = 0; reading < READINGS; reading++)
		if ((__s64)(bpf_ktime_get_ns() - until) >= 0)
			return 1;
	return 0;
}

// Spends the time of one frame.
__attribute__((noinline)) int spend(void)
{
	__u64 until = bpf_ktime_get_ns() + frame_ns;
	for (int round = 0; round < ROUNDS; round++)
		if (reached(until))
			break;
	return 0;
}

SEC("classifier")
int slow_filter(struct __sk_buff *packet)
{
	__u32 frames = packet->gso_segs > 1 ? packet->gso_segs : 1;
	for (__u32 frame = 0; frame < FRAMES; frame++) {
		if (frame >= frames)
			break;
		spend();
	}
	return TC_ACT_UNSPEC;
}

char licence[] SEC("license") = "Dual MIT/GPL";
