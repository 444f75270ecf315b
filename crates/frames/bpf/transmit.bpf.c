// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Sends the frames of one lane: the streams that one core serves in turn. The kernel runs it as a live-frame test run
// (Documentation/bpf/bpf_prog_run.rst), over and over; each turn sends the frame of one stream that is due, or drops the
// turn. The layout of the maps is known to crates/sys/src/xdp.rs too.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define HEAD 88          // the longest headers (70 bytes) and the signature (18), a multiple of 8
#define LOOKS 16         // streams looked at in a turn
#define CATCH_UP 100000  // ns of delay that are made up for; beyond it the schedule moves

struct stream {
	__u8 head[HEAD];      // headers, signature, filling
	__u64 signature_at;   // where in the frame the signature begins
	__u64 length;         // bytes of the frame, FCS not counted
	__u64 interface;
	__u64 start;          // CLOCK_MONOTONIC, ns
	__u64 end;            // nothing is sent from here on
	__u64 gap;            // ns between frames; 0 sends without pause
	__u64 gap_fraction;   // in 2^-32 ns
	__u64 limit;          // frames at the most; 0 for no limit
	// What follows is the program's.
	__u64 next;           // when the next frame is due; user space sets it to `start`
	__u64 next_fraction;
	__u64 sent;
	__u64 first;
	__u64 last;
	__u64 done;
};

struct lane {
	__u64 streams;
	__u64 cursor;
	__u64 done;  // how many streams have ended
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stream);
} streams SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lane);
} lanes SEC(".maps");

static __always_inline int is_due(struct stream *stream, struct lane *lane, __u64 now)
{
	if (stream->done || now < stream->next)
		return 0;
	// A sender that was held up neither leaves frames out nor sends them in a burst: the rest is due later.
	if (stream->gap == 0)
		stream->next = now;
	else if (now - stream->next > CATCH_UP)
		stream->next = now - CATCH_UP;
	if (now >= stream->end || (stream->limit && stream->sent >= stream->limit)) {
		stream->done = 1;
		lane->done++;
		return 0;
	}
	return 1;
}

static __always_inline void schedule_next(struct stream *stream)
{
	__u64 fraction = stream->next_fraction + stream->gap_fraction;

	stream->next += stream->gap + (fraction >> 32);
	stream->next_fraction = fraction & 0xffffffff;
}

// Number and time, and the word that makes the signature's sum 0xffff, which any checksum over it takes for zero.
static __always_inline void sign(__u8 *signature, __u32 number, __u64 now)
{
	__u32 number_sent = bpf_htonl(number);
	__u64 now_sent = bpf_cpu_to_be64(now);
	__u64 sum = (__u64)*(__u16 *)(signature + 2) + *(__u16 *)(signature + 4);

	sum += (number_sent & 0xffff) + (number_sent >> 16);
	sum += (now_sent & 0xffff) + ((now_sent >> 16) & 0xffff) + ((now_sent >> 32) & 0xffff) + (now_sent >> 48);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	*(__u16 *)signature = ~sum;
	*(__u32 *)(signature + 6) = number_sent;
	*(__u64 *)(signature + 10) = now_sent;
}

SEC("xdp")
int transmit(struct xdp_md *context)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0, at;
	struct lane *lane = bpf_map_lookup_elem(&lanes, &zero);
	struct stream *stream = 0;
	int due = 0;

	if (!lane)
		return XDP_DROP;
	for (int look = 0; look < LOOKS && look < lane->streams && !due; look++) {
		if (lane->cursor >= lane->streams)
			lane->cursor = 0;
		at = lane->cursor;
		stream = bpf_map_lookup_elem(&streams, &at);
		if (!stream)
			return XDP_DROP;
		lane->cursor++;
		due = is_due(stream, lane, now);
	}
	if (!due || !stream)
		return XDP_DROP;

	long spare = (long)stream->length - (long)(context->data_end - context->data);
	if (spare > 0 || (spare < 0 && bpf_xdp_adjust_tail(context, spare)))
		return XDP_DROP;

	__u64 signature_at = stream->signature_at;
	if (signature_at > HEAD - 18)
		return XDP_DROP;
	sign(stream->head + signature_at, stream->sent, now);

	// A frame comes back from its last journey as others left it, so all of its head is written anew.
	__u8 *frame = (__u8 *)(long)context->data, *end = (__u8 *)(long)context->data_end;
	if (frame + HEAD <= end) {
#pragma unroll
		for (int i = 0; i < HEAD; i += 8)
			*(__u64 *)(frame + i) = *(__u64 *)(stream->head + i);
	} else {
#pragma unroll
		for (int i = 0; i < HEAD; i += 4) {
			if (frame + i + 4 > end)
				break;
			*(__u32 *)(frame + i) = *(__u32 *)(stream->head + i);
		}
	}

	if (stream->sent == 0)
		stream->first = now;
	stream->last = now;
	stream->sent++;
	schedule_next(stream);
	return bpf_redirect(stream->interface, 0);
}

// bpf_ktime_get_ns may be used by programs under the GPL only; the kernel asks for this word.
char licence[] SEC("license") = "Dual MIT/GPL";
