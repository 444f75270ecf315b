// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Sends the frames of one lane: the streams that one core serves in turn. The kernel runs it as a live-frame test run
// (Documentation/bpf/bpf_prog_run.rst), over and over; each turn sends the frame of one stream that is due, or drops the
// turn. The layout of the maps is known to crates/sys/src/linux/xdp.rs too.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define HEAD 104         // the longest headers (82 bytes) and the signature (18), filled up to a multiple of 8
#define SHORTEST 60      // bytes of the shortest frame that Ethernet permits, FCS not counted
#define SIGNATURE 18
#define LOOKS 16         // streams looked at in a turn
#define SLOWEST 4        // times its leeway is more than a batch takes where a frame costs the most

#define ROUND 64         // frames after which a mix of sizes begins anew
#define CHANGES 4        // fields that vary
#define NEVER (~0ULL)

// A field that varies; what it means is in crates/frames/src/vary.rs.
struct change {
	__u32 at;                  // where in the frame it begins
	__u32 wide;                // it has four bytes, otherwise two
	__u32 base;                // its first value
	__u32 count;               // how many values it takes
	__u32 random;              // by chance, otherwise one after the other
	__u32 ip_checksum;         // where the checksums are that cover it; 0 for none
	__u32 transport_checksum;
	__u32 udp;                 // the latter is UDP's
};

struct frame {
	__u8 head[HEAD];      // headers, signature, filling
	__u64 length;         // bytes of the frame, FCS not counted
};

struct stream {
	__u64 frames;         // index of its first frame; one of a mix has one for each size
	__u64 round;          // frames after which the sizes begin anew; 1 if there is one size
	__u64 changes;        // how many fields vary
	__u64 signature_at;   // where in the frame the signature begins; 0 without one
	__u64 port;           // index of its port in `ports`
	__u64 start;          // CLOCK_MONOTONIC, ns
	__u64 end;            // nothing is sent from here on
	__u64 gap;            // ns between frames; 0 sends without pause
	__u64 gap_fraction;   // in 2^-32 ns
	__u64 least_gap;      // ns between frames while a delay is made up for; 0 for none
	__u64 leeway;         // ns by which one may be shorter all the same: a batch of turns takes time
	__u64 limit;          // frames at the most
	__u64 burst;          // frames of a burst; 1 spaces all of them evenly
	__u64 rest;           // ns after each burst, in addition to the gap
	__u64 rest_fraction;  // in 2^-32 ns
	__u64 catch_up;       // ns of delay that are made up for; beyond it the schedule moves
	__u8 sizes[ROUND];    // which frame comes when in a round
	struct change change[CHANGES];
	// What follows is the program's.
	__u64 next;           // when the next frame is due, NEVER after the last; user space sets it to `start`
	__u64 next_fraction;
	__u64 earliest;       // the next frame is sent no sooner, for `least_gap`
	__u64 sent;
	__u64 first;
	__u64 last;
	__u64 held_up;        // ns by which the schedule moved because the sender was held up
};

struct lane {
	__u64 streams;
	__u64 reading;  // turns for which one reading of the clock serves while frames are overdue, a power of two
	// What follows is the program's.
	__u64 cursor;
	__u64 turns;
	__u64 now;      // the last reading
	__u64 overdue;  // the frame after the one just sent was due by that reading
	__u64 done;     // how many streams have ended
};

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

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
	__type(value, struct frame);
} frames SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lane);
} lanes SEC(".maps");

// Reading the clock costs as much as all else this program does. A sender that is behind its schedule has a frame due at
// any time, so a reading serves for a few turns: it stamps frames too early by what those take, under a microsecond.
// The turns are counted so that a batch begins with a new reading, for there is a pause before it.
static __always_inline __u64 read_clock(struct lane *lane)
{
	if ((lane->turns++ & (lane->reading - 1)) == 0 || !lane->overdue)
		lane->now = bpf_ktime_get_ns();
	lane->overdue = 0;
	return lane->now;
}

static __always_inline int is_due(struct stream *stream, struct lane *lane, __u64 now)
{
	if (now < stream->next || now < stream->earliest)
		return 0;
	// A sender that was held up leaves no frames out: the rest is due later.
	if (now - stream->next > stream->catch_up) {
		__u64 longest = stream->gap + stream->rest;
		// Behind while frames leave batch by batch: the rate is beyond it. Otherwise something held it up.
		if (longest && now - stream->last > longest + SLOWEST * stream->leeway)
			stream->held_up += now - stream->catch_up - stream->next;
		stream->next = now - stream->catch_up;
	}
	if (now >= stream->end || stream->sent >= stream->limit) {
		stream->next = NEVER;
		lane->done++;
		return 0;
	}
	return 1;
}

static __always_inline void schedule_next(struct stream *stream, __u64 now)
{
	__u64 fraction = stream->next_fraction + stream->gap_fraction;

	if (stream->burst > 1 && stream->sent % stream->burst == 0) {
		stream->next += stream->rest;
		fraction += stream->rest_fraction;
	}
	// Nor are they sent in a burst, which a device with few buffers would lose.
	if (stream->least_gap) {
		if (stream->earliest < now - stream->leeway)
			stream->earliest = now - stream->leeway;
		stream->earliest += stream->least_gap;
	}

	stream->next += stream->gap + (fraction >> 32);
	stream->next_fraction = fraction & 0xffffffff;
}

// Number and time, and the word that makes the signature's sum 0xffff, which any checksum over it takes for zero. `names` is
// what never changes: trial and stream.
static __always_inline void sign(__u8 *signature, __u32 names, __u32 number, __u64 now)
{
	__u32 number_sent = bpf_htonl(number);
	__u64 now_sent = bpf_cpu_to_be64(now);
	__u64 sum = (__u64)names + number_sent + (now_sent & 0xffffffff) + (now_sent >> 32);

	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	*(__u16 *)signature = ~sum;
	*(__u32 *)(signature + 6) = number_sent;
	*(__u64 *)(signature + 10) = now_sent;
}

static __always_inline __u32 index_of(const struct change *change, __u32 number)
{
	if (!change->random)
		return change->count ? number % change->count : 0;
	__u64 draw = ((__u64)number + 1 + ((__u64)change->at << 32)) * 0x9e3779b97f4a7c15;
	draw ^= draw >> 32;
	draw *= 0xbf58476d1ce4e5b9;
	return ((draw >> 32) * change->count) >> 32;
}

// Brings a checksum up to date by RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
static __always_inline void mend(__u8 *head, __u32 at, __u32 difference, __u32 udp)
{
	if (at == 0 || at > HEAD - 2)
		return;
	__u32 sum = (__u16)~*(__u16 *)(head + at) + difference;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	__u16 checksum = ~sum;
	// To UDP zero says that there is none (RFC 768).
	*(__u16 *)(head + at) = udp && checksum == 0 ? 0xffff : checksum;
}

// Gives a field the value of frame `number`. The head keeps it until the next.
static __always_inline void vary(__u8 *head, const struct change *change, __u32 number)
{
	__u32 at = change->at, value = change->base + index_of(change, number), difference = 0;

	if (at > HEAD - 4)
		return;
	__u16 *word = (__u16 *)(head + at);
	if (change->wide) {
		__u16 upper = bpf_htons(value >> 16);
		difference = (__u16)~*word + upper;
		*word++ = upper;
	}
	__u16 lower = bpf_htons(value);
	difference += (__u16)~*word + lower;
	*word = lower;
	mend(head, change->ip_checksum, difference, 0);
	mend(head, change->transport_checksum, difference, change->udp);
}

SEC("xdp")
int transmit(struct xdp_md *context)
{
	__u32 zero = 0, at;
	struct lane *lane = bpf_map_lookup_elem(&lanes, &zero);
	struct stream *stream = 0;
	int due = 0;

	if (!lane)
		return XDP_DROP;
	__u64 now = read_clock(lane);
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

	at = stream->frames;
	if (stream->round > 1)
		at += stream->sizes[((__u32)stream->sent % (__u32)stream->round) & (ROUND - 1)];
	struct frame *sending = bpf_map_lookup_elem(&frames, &at);
	if (!sending)
		return XDP_DROP;
	long spare = (long)sending->length - (long)(context->data_end - context->data);
	if (spare > 0 || (spare < 0 && bpf_xdp_adjust_tail(context, spare)))
		return XDP_DROP;

	for (int i = 0; i < CHANGES && i < stream->changes; i++)
		vary(sending->head, &stream->change[i], stream->sent);

	// A frame comes back from its last journey as others left it, so all of its head is written anew.
	__u8 *frame = (__u8 *)(long)context->data, *end = (__u8 *)(long)context->data_end;
	if (frame + HEAD <= end) {
#pragma unroll
		for (int i = 0; i < HEAD; i += 8)
			*(__u64 *)(frame + i) = *(__u64 *)(sending->head + i);
	} else if (frame + SHORTEST <= end) {
#pragma unroll
		for (int i = 0; i < SHORTEST - 4; i += 8)
			*(__u64 *)(frame + i) = *(__u64 *)(sending->head + i);
#pragma unroll
		for (int i = SHORTEST - 4; i < HEAD; i += 4) {
			if (frame + i + 4 > end)
				break;
			*(__u32 *)(frame + i) = *(__u32 *)(sending->head + i);
		}
	} else {
		for (int i = 0; i < SHORTEST; i++) {
			if (frame + i + 1 > end)
				break;
			frame[i] = sending->head[i];
		}
	}
	__u64 signature_at = stream->signature_at;
	if (signature_at > HEAD - SIGNATURE)
		return XDP_DROP;
	if (signature_at) {
		__u8 *signature = frame + signature_at;
		if (signature + SIGNATURE > end)
			return XDP_DROP;
		sign(signature, *(__u32 *)(sending->head + signature_at + 2), stream->sent, now);
	}

	if (stream->sent == 0)
		stream->first = now;
	stream->last = now;
	stream->sent++;
	schedule_next(stream, now);
	lane->overdue = stream->next <= now;
	return bpf_redirect_map(&ports, stream->port, 0);
}

// bpf_ktime_get_ns may be used by programs under the GPL only; the kernel asks for this word.
char licence[] SEC("license") = "Dual MIT/GPL";
