// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Counts and times the frames of a trial where they arrive, and drops them unless a socket is to receive them; all others pass. One program serves all ports.
// The layout of the maps is known to crates/sys/src/linux/xdp.rs too.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define SIGNATURE 18
#define EXPERIMENTAL 0x88b5  // EtherType of frames without an IP header
#define REMEMBERED 1024   // numbers among which a duplicate is recognised
#define FINEST 512        // durations up to this are told apart by the nanosecond
#define PER_OCTAVE 256
#define OCTAVES 25        // up to 2^34 ns, 17 s
#define BUCKETS (FINEST + OCTAVES * PER_OCTAVE)
#define RECEIVERS 64      // ports that a frame of a stream may arrive at
#define FLOOD_PLACES 4096 // streams and ports for which flooded frames are counted apart

struct flood_place {
	__u32 stream;
	__u32 interface;
};

struct settings {
	__u64 tag;
	__u64 sized;      // some stream mixes sizes: bytes are counted
	__u64 reading;    // frames of one poll for which one reading of the clock serves
	__u64 streams;    // they have the first slots; the slots after them are for further receivers
	__u64 delivers;   // the frames go on to a socket
};

struct clock {
	__u64 now;        // the last reading
	__u64 left;       // frames that it still serves for
};

struct counters {
	__u64 interface;  // where the stream is to arrive
	__u64 received;
	__u64 duplicates;
	__u64 reordered;
	__u64 flooded;
	__u64 first;
	__u64 last;
	__u64 expected;   // one above the highest number so far
	__u64 last_gap;   // when the last frame was sent before which numbers were missing; 0 for none
	__u64 bytes;      // of the frames received, FCS not counted
	__u64 next;       // slot of the stream's next receiver; 0 after the last
};

struct numbers {
	__u32 seen[REMEMBERED];  // one above the number that was last seen in each place
};

struct latencies {
	__u64 bucket[BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct clock);
} clocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct numbers);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct latencies);
} latencies SEC(".maps");

// Frames of a stream that arrived at an interface that they were not for.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOOD_PLACES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct flood_place);
	__type(value, __u64);
} floods SEC(".maps");

static __always_inline void count_flooded(__u32 stream, __u32 interface)
{
	struct flood_place place = {stream, interface};
	__u64 none = 0, *frames = bpf_map_lookup_elem(&floods, &place);
	if (!frames) {
		bpf_map_update_elem(&floods, &place, &none, BPF_NOEXIST);
		frames = bpf_map_lookup_elem(&floods, &place);
	}
	if (frames)
		__sync_fetch_and_add(frames, 1);
}

// The signature behind Ethernet, up to two VLAN tags, IPv4 without options or IPv6, UDP, ICMP or TCP without options, or
// right behind the experimental EtherType; none in other frames.
static __always_inline __u8 *find_signature(__u8 *at, __u8 *end)
{
	__u16 type;
	__u8 carried;

	if (at + ETH_HLEN > end)
		return 0;
	type = *(__u16 *)(at + 12);
	at += ETH_HLEN;
#pragma unroll
	for (int tags = 0; tags < 2; tags++) {
		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		if (at + 4 > end)
			return 0;
		type = *(__u16 *)(at + 2);
		at += 4;
	}
	if (type == bpf_htons(ETH_P_IP)) {
		if (at + 20 + 8 + SIGNATURE > end || at[0] != 0x45)
			return 0;
		carried = at[9];
		if (carried == 6)
			return at + 20 + 20 + SIGNATURE <= end && at[32] >> 4 == 5 ? at + 40 : 0;
		return carried == 17 || carried == 1 ? at + 28 : 0;
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		if (at + 40 + 8 + SIGNATURE > end)
			return 0;
		carried = at[6];
		if (carried == 6)
			return at + 40 + 20 + SIGNATURE <= end && at[52] >> 4 == 5 ? at + 60 : 0;
		return carried == 17 || carried == 58 ? at + 48 : 0;
	}
	return type == bpf_htons(EXPERIMENTAL) ? at : 0;
}

// The signature in the words that it is read by; all in network order.
struct signature {
	__u64 low;    // check, tag, stream, the number's upper half
	__u64 middle; // its lower half, the time's upper bytes
	__u16 high;   // the time's last two bytes
};

// Whether its 16-bit words add up to 0xffff.
static __always_inline int is_whole(const struct signature *signature)
{
	__u64 sum = (signature->low & 0xffffffff) + (signature->low >> 32);

	sum += (signature->middle & 0xffffffff) + (signature->middle >> 32) + signature->high;
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

// Reading the clock costs as much as all else this program does. A poll takes frames that have arrived already, one after
// the other, so a reading serves for a few of them: the last comes out too early by what those took, under a microsecond.
static __always_inline __u64 read_clock(const struct settings *trial, __u64 sent)
{
	__u32 zero = 0;
	struct clock *clock = bpf_map_lookup_elem(&clocks, &zero);

	if (!clock)
		return bpf_ktime_get_ns();
	// What was sent after the last reading arrived after it too.
	if (clock->left == 0 || sent > clock->now) {
		clock->now = bpf_ktime_get_ns();
		clock->left = trial->reading;
	}
	clock->left--;
	return clock->now;
}

static __always_inline __u32 octave_of(__u64 value)
{
	__u32 octave = 0;

	if (value >> 32) { value >>= 32; octave += 32; }
	if (value >> 16) { value >>= 16; octave += 16; }
	if (value >> 8) { value >>= 8; octave += 8; }
	if (value >> 4) { value >>= 4; octave += 4; }
	if (value >> 2) { value >>= 2; octave += 2; }
	return octave + (value >> 1);
}

static __always_inline __u32 bucket_of(__u64 nanos)
{
	if (nanos < FINEST)
		return nanos;
	if (nanos >> 34)
		return BUCKETS - 1;
	__u32 shift = octave_of(nanos) - 8;
	return FINEST + (shift - 1) * PER_OCTAVE + (__u32)(nanos >> shift) - PER_OCTAVE;
}

// The kernel calls this at the end of a poll. What comes in the next one has arrived later.
SEC("raw_tp/napi_poll")
int polled(void *context)
{
	__u32 zero = 0;
	struct clock *clock = bpf_map_lookup_elem(&clocks, &zero);

	if (clock)
		clock->left = 0;
	return 0;
}

// A frame carries the lower 32 bits of its number, which a long trial uses up: it is the nearest to the one that is expected.
static __always_inline __u64 number_of(__u32 carried, __u64 expected)
{
	__s64 nearest = (__s64)expected + (__s32)(carried - (__u32)expected);

	return nearest < 0 ? carried : nearest;
}

SEC("xdp")
int receive(struct xdp_md *context)
{
	__u8 *frame = (__u8 *)(long)context->data, *end = (__u8 *)(long)context->data_end;
	__u8 *found = find_signature(frame, end);
	__u32 zero = 0;

	if (!found || found + SIGNATURE > end)
		return XDP_PASS;
	struct settings *trial = bpf_map_lookup_elem(&settings, &zero);
	struct signature signature = { *(__u64 *)found, *(__u64 *)(found + 8), *(__u16 *)(found + 16) };
	__u32 stream = bpf_ntohs(signature.low >> 32);
	__u16 tag = bpf_ntohs(signature.low >> 16);
	if (!trial || tag != trial->tag || stream >= trial->streams || !is_whole(&signature))
		return XDP_PASS;

	__u32 slot = stream;
	struct counters *count = bpf_map_lookup_elem(&counters, &slot);
	if (!count)
		return XDP_PASS;
	for (int i = 1; i < RECEIVERS && count->interface != context->ingress_ifindex && count->next; i++) {
		slot = count->next;
		count = bpf_map_lookup_elem(&counters, &slot);
		if (!count)
			return XDP_PASS;
	}
	if (count->interface != context->ingress_ifindex) {
		count = bpf_map_lookup_elem(&counters, &stream);
		if (count)
			__sync_fetch_and_add(&count->flooded, 1);
		count_flooded(stream, context->ingress_ifindex);
		return XDP_DROP;
	}
	struct numbers *known = bpf_map_lookup_elem(&numbers, &slot);
	struct latencies *latency = bpf_map_lookup_elem(&latencies, &slot);
	if (!known || !latency)
		return XDP_PASS;

	__u32 carried = bpf_ntohl(signature.low >> 48 | signature.middle << 16);
	__u64 sent = bpf_be64_to_cpu(signature.middle >> 16 | (__u64)signature.high << 48);
	__u64 now = read_clock(trial, sent);
	if (__sync_lock_test_and_set(&known->seen[carried % REMEMBERED], carried + 1) == carried + 1) {
		__sync_fetch_and_add(&count->duplicates, 1);
		return trial->delivers ? XDP_PASS : XDP_DROP;
	}
	if (count->received == 0)
		count->first = now;
	count->last = now;
	__sync_fetch_and_add(&count->received, 1);
	if (trial->sized)
		__sync_fetch_and_add(&count->bytes, end - frame);
	__u64 number = number_of(carried, count->expected);
	if (number < count->expected) {
		__sync_fetch_and_add(&count->reordered, 1);
	} else {
		if (number > count->expected)
			count->last_gap = sent;
		count->expected = number + 1;
	}
	__u32 bucket = bucket_of(now > sent ? now - sent : 0);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&latency->bucket[bucket], 1);
	return trial->delivers ? XDP_PASS : XDP_DROP;
}

// bpf_ktime_get_ns may be used by programs under the GPL only; the kernel asks for this word.
char licence[] SEC("license") = "Dual MIT/GPL";
