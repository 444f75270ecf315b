/* SPDX-License-Identifier: Apache-2.0 OR MIT */
//
// Queues at the ports of the reference device. Each output is a line, and so is each direction of an uplink between the two
// halves of the ports. Frames wait at the lines, or in a FIFO at each input until the lines that they need have room.
//
// crates/lab/tests/it/port_queues.rs has the same rules in Rust.

#define PORTS 64             // most ports
#define FIFO_FRAMES 1024     // most frames in the FIFO of an input; a power of 2
#define QUANTA_MAXIMUM 65535 // longest pause (IEEE 802.3 annex 31B)

// What one byte costs at an output, 2^-28 ns; zero if ports are as fast as the machine.
const volatile __u64 port_byte_cost;
// Bytes on the wire around a frame at an output.
const volatile __u64 port_around = AROUND;
// Frames that may wait in the FIFO of an input; zero if frames wait at the outputs.
const volatile __u64 fifo_frames;
// What one byte costs on the uplink, 2^-28 ns; zero without an uplink.
const volatile __u64 uplink_byte_cost;
// 512 bit times of a port, 2^-12 ns; zero if the device sends no PAUSE frames.
const volatile __u64 quantum;
// The device's ports.
const volatile __u64 port_count;

struct port_queues {
	struct bpf_spin_lock lock;
	__u32 unused;
	__u64 output_free_at[PORTS];  // when the last frame taken is on the wire
	__u64 uplink_free_at[2];      // the same by the half that sends
	__u64 paused_until[PORTS];    // when the pause of an input ends
};

// The FIFO of an input.
struct fifo {
	__u64 frames;                  // frames that entered it so far
	__u64 leaves_at[FIFO_FRAMES];  // when each of the last ones leaves it
};

// What a frame finds at the lines that it needs.
struct finding {
	__u64 room_after;  // time until all have room
	__u64 pause;       // time until none has more than a quarter of its queue, once one has half; else zero
};

// Looks at a line with work for the time `ahead`.
static __always_inline void look(struct finding *finding, __u64 ahead, __u64 cost, __u64 queue)
{
	__u64 most = queue * cost;
	if (ahead > most && ahead - most > finding->room_after)
		finding->room_after = ahead - most;
	if (ahead >= most / 2 && ahead - most / 4 > finding->pause)
		finding->pause = ahead - most / 4;
}

// All ones, or zero for the port `from` itself. Without a branch: the verifier would follow each port's loop by itself.
static __always_inline __u64 if_other(__u32 port, __u32 from)
{
	__u64 difference = port ^ from;
	asm volatile("" : "+r"(difference));
	return -((difference | -difference) >> 63);
}

// The longest work of all outputs but one.
static __always_inline __u64 longest_backlog(struct port_queues *ports, __u32 from, __u64 now)
{
	__u64 longest = 0;
	for (__u32 port = 0; port < PORTS && port < port_count; port++) {
		__u64 ahead = backlog(ports->output_free_at[port], now) & if_other(port, from);
		if (ahead > longest)
			longest = ahead;
	}
	return longest;
}

// Puts work on all outputs but one.
static __always_inline void occupy_others(struct port_queues *ports, __u32 from, __u64 now, __u64 cost)
{
	for (__u32 port = 0; port < PORTS && port < port_count; port++) {
		__u64 ahead = backlog(ports->output_free_at[port], now);
		ports->output_free_at[port] = now + ahead + (cost & if_other(port, from));
	}
}

static __always_inline __u64 *leaves_at(struct fifo *fifo, __u64 frame)
{
	return &fifo->leaves_at[frame & (FIFO_FRAMES - 1)];
}

// Enters a frame into a FIFO that it may leave after `room_after`; false if there is no room. Sets the pause.
static __always_inline int enter(struct fifo *fifo, __u64 now, __u64 room_after, __u64 *pause)
{
	__u64 frames = fifo->frames;
	int full = frames >= fifo_frames && (__s64)(*leaves_at(fifo, frames - fifo_frames) - now) > 0;
	if (!full) {
		__u64 ahead = frames ? backlog(*leaves_at(fifo, frames - 1), now) : 0;
		*leaves_at(fifo, frames) = now + (ahead > room_after ? ahead : room_after);
		fifo->frames = ++frames;
	}
	*pause = 0;
	if (frames >= fifo_frames / 2 && (__s64)(*leaves_at(fifo, frames - fifo_frames / 2) - now) > 0)
		*pause = backlog(*leaves_at(fifo, frames - fifo_frames / 4), now);
	return !full;
}

// Takes a frame by the port number `from` for the port number `to`, or for all others if that is PORTS; false if there is no
// room for it. Sets the pause to ask of its sender, or zero. A frame for several ports needs room at all of them.
static __always_inline int ports_take(struct port_queues *ports, struct fifo *fifo, __u32 from, __u32 to, __u64 bytes,
				      __u64 now, __u64 queue, __u64 *pause)
{
	__u64 length = bytes < SHORTEST ? SHORTEST : bytes;
	__u64 cost = ((length + port_around) * port_byte_cost) >> COST_SHIFT;
	__u64 uplink_cost = ((length + AROUND) * uplink_byte_cost) >> COST_SHIFT;
	__u64 longest_pause = quantum * QUANTA_MAXIMUM, half = port_count / 2;
	int uplink = uplink_cost && (to == PORTS || (from < half) != (to < half));
	__u64 *uplink_free_at = &ports->uplink_free_at[from >= half];
	struct finding finding = {};
	__u64 ahead;
	int taken;

	bpf_spin_lock(&ports->lock);
	if (to < PORTS)
		ahead = backlog(ports->output_free_at[to], now);
	else
		ahead = longest_backlog(ports, from, now);
	look(&finding, ahead, cost, queue);
	if (uplink)
		look(&finding, backlog(*uplink_free_at, now), uplink_cost, queue);
	if (fifo)
		taken = enter(fifo, now, finding.room_after, &finding.pause);
	else
		taken = !finding.room_after;
	if (taken) {
		if (uplink)
			*uplink_free_at = now + backlog(*uplink_free_at, now) + uplink_cost;
		if (to < PORTS)
			ports->output_free_at[to] = now + ahead + cost;
		else
			occupy_others(ports, from, now, cost);
	}
	// A pause is asked for once: until it ends, what still comes was on its way.
	if (finding.pause && quantum && !backlog(ports->paused_until[from], now)) {
		*pause = finding.pause < longest_pause ? finding.pause : longest_pause;
		ports->paused_until[from] = now + *pause;
	} else {
		*pause = 0;
	}
	bpf_spin_unlock(&ports->lock);
	return taken;
}
