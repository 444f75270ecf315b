// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The reference device: a switch that learns addresses and keeps to exactly known limits. One program serves all its ports.
// The settings are written by crates/lab/src/reference.rs.
//
// Its work is a virtual queue: each frame that is taken moves the moment at which the device is free by what the frame
// costs, and a frame that would have to wait behind more than the queue holds is dropped. Programs cannot hold frames back.
// The same holds for the lines at its ports (port_queues.h), which a frame meets after the device's own limits.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/in.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "virtual_queue.h"
#include "port_queues.h"

#define VLAN_TAG 4  // bytes
#define BROADCAST 0xffffffffffffULL

// A reading of the clock is old after 100 us.
#define OLD (100000ULL << TIME_SHIFT)

// What one frame costs, 2^-12 ns; zero without a limit.
const volatile __u64 frame_cost;
// What one byte on the wire costs, 2^-28 ns; zero without a limit.
const volatile __u64 byte_cost;
// Frames that may wait.
const volatile __u64 queue;
// loss_part of loss_of frames are lost.
const volatile __u64 loss_part;
const volatile __u64 loss_of;
// What one echo costs, 2^-12 ns, and how long one may wait; zero if the device answers none.
const volatile __u64 echo_cost;
const volatile __u64 echo_wait;
// What one broadcast costs, 2^-12 ns, and how long one may wait; zero without a limit.
const volatile __u64 broadcast_cost, broadcast_wait;
// Lengths that are dropped, in bytes without the FCS: below the shortest, above the longest, which a VLAN tag lengthens.
const volatile __u64 shortest, longest;
// The device's own addresses.
const volatile __u8 own_mac[ETH_ALEN] = {0x02, 0, 0, 0, 0, 0xfe};
const volatile __u32 own_ip = bpf_htonl(0xc61200fe);  // 198.18.0.254

struct state {
	struct bpf_spin_lock lock;
	__u32 unused;
	__u64 free_at;       // when the last frame taken is through
	__u64 echo_free_at;  // when the last echo is answered
	__u64 owed;          // how far the next loss has come, in parts of loss_of
	__u64 broadcast_free_at;  // when the last broadcast is replicated
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} state SEC(".maps");

// From a port's number to the port.
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 128);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct port_queues);
} queues SEC(".maps");

// The FIFO of each input. The size is the device's.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS);
	__type(key, __u32);
	__type(value, struct fifo);
} fifos SEC(".maps");

// From an interface to the number of its port.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORTS);
	__type(key, __u32);
	__type(value, __u32);
} numbers SEC(".maps");

// A PAUSE frame that a process sends for the device (crates/lab/src/linux/reference/pause.rs).
struct pause {
	__u32 interface;
	__u32 quanta;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} pauses SEC(".maps");

// From a MAC address to the number of its port. The size is the device's.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u32);
} addresses SEC(".maps");

// Frames that were dropped though no limit drops them, by the cause.
enum cause {
	HELD_UP,      // by a reading of the clock that was old: the program was held up in between
	PAUSED_LATE,  // though the device asks for pauses: its PAUSE frame came too late
	CAUSES,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CAUSES);
	__type(key, __u32);
	__type(value, __u64);
} unplanned SEC(".maps");

struct arp_ipv4 {
	__u16 hardware;
	__u16 protocol;
	__u8 hardware_bytes;
	__u8 protocol_bytes;
	__u16 operation;
	__u8 sender_mac[ETH_ALEN];
	__u8 sender_ip[4];
	__u8 target_mac[ETH_ALEN];
	__u8 target_ip[4];
} __attribute__((packed));

struct echo {
	__u8 type;
	__u8 code;
	__u16 checksum;
};

enum kind {
	TEST,      // what limits hold for
	CONTROL,   // how neighbours find each other: always passes
	CHATTER,   // what kernels say by themselves: passes, and teaches nothing
};

static __always_inline __u64 mac_key(const __u8 *mac)
{
	return (__u64)mac[0] << 40 | (__u64)mac[1] << 32 | (__u64)mac[2] << 24 | (__u64)mac[3] << 16 | (__u64)mac[4] << 8 | mac[5];
}

static __always_inline enum kind kind_of(const struct ethhdr *frame, const void *end)
{
	if (frame->h_proto == bpf_htons(ETH_P_ARP))
		return CONTROL;
	if (frame->h_proto != bpf_htons(ETH_P_IPV6))
		return TEST;
	const struct ipv6hdr *ip = (const void *)(frame + 1);
	const __u8 *type = (const void *)(ip + 1);
	if ((const void *)(type + 1) > end)
		return TEST;
	// Listener reports carry a router alert.
	if (ip->nexthdr == 0 && frame->h_dest[0] == 0x33)
		return CHATTER;
	if (ip->nexthdr != IPPROTO_ICMPV6)
		return TEST;
	if (*type >= 135 && *type <= 137)
		return CONTROL;
	return (*type >= 130 && *type <= 134) || *type == 143 ? CHATTER : TEST;
}

static __always_inline void count(__u32 cause)
{
	__u64 *frames = bpf_map_lookup_elem(&unplanned, &cause);
	if (frames)
		__sync_fetch_and_add(frames, 1);
}

// Counts a frame that was dropped by a reading of the clock `now` if that is old.
static __always_inline void count_if_old(__u64 now)
{
	if ((bpf_ktime_get_ns() << TIME_SHIFT) - now > OLD)
		count(HELD_UP);
}

static __always_inline int within_limits(__u64 bytes)
{
	if (!frame_cost && !byte_cost && !loss_part)
		return 1;
	__u32 zero = 0;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	if (!s)
		return 0;
	__u64 on_wire = (bytes < SHORTEST ? SHORTEST : bytes) + AROUND;
	__u64 cost = (on_wire * byte_cost) >> COST_SHIFT;
	if (cost < frame_cost)
		cost = frame_cost;
	__u64 wait = queue * cost;
	__u64 now = bpf_ktime_get_ns() << TIME_SHIFT;
	int taken = 1, full = 0;

	bpf_spin_lock(&s->lock);
	if (loss_part) {
		s->owed += loss_part;
		if (s->owed >= loss_of) {
			s->owed -= loss_of;
			taken = 0;
		}
	}
	if (taken && cost)
		full = !take(&s->free_at, now, cost, wait);
	bpf_spin_unlock(&s->lock);
	if (full)
		count_if_old(now);
	return taken && !full;
}

static __always_inline int echo_within_limit(void)
{
	__u32 zero = 0;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	if (!s)
		return 0;
	__u64 cost = echo_cost, wait = echo_wait;
	__u64 now = bpf_ktime_get_ns() << TIME_SHIFT;
	bpf_spin_lock(&s->lock);
	int taken = take(&s->echo_free_at, now, cost, wait);
	bpf_spin_unlock(&s->lock);
	if (!taken)
		count_if_old(now);
	return taken;
}

static __always_inline int broadcast_within_limit(void)
{
	__u32 zero = 0;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	if (!s)
		return 0;
	__u64 cost = broadcast_cost, wait = broadcast_wait;
	__u64 now = bpf_ktime_get_ns() << TIME_SHIFT;
	bpf_spin_lock(&s->lock);
	int taken = take(&s->broadcast_free_at, now, cost, wait);
	bpf_spin_unlock(&s->lock);
	if (!taken)
		count_if_old(now);
	return taken;
}

// Whether the lines have room for a frame from an interface to another, or to all others if that is zero.
static __always_inline int ports_have_room(__u32 from, __u32 to, __u64 bytes)
{
	if (!port_byte_cost && !uplink_byte_cost)
		return 1;
	__u32 zero = 0, output = PORTS;
	struct port_queues *ports = bpf_map_lookup_elem(&queues, &zero);
	__u32 *number = bpf_map_lookup_elem(&numbers, &from);
	if (!ports || !number || *number >= PORTS)
		return 0;
	__u32 input = *number;
	if (to) {
		number = bpf_map_lookup_elem(&numbers, &to);
		if (!number || *number >= PORTS)
			return 0;
		output = *number;
	}
	struct fifo *fifo = 0;
	if (fifo_frames) {
		fifo = bpf_map_lookup_elem(&fifos, &input);
		if (!fifo)
			return 0;
	}
	__u64 now = bpf_ktime_get_ns() << TIME_SHIFT, pause_for = 0;
	int taken = ports_take(ports, fifo, input, output, bytes, now, queue, &pause_for);
	if (pause_for) {
		struct pause pause = {from, (pause_for + quantum - 1) / quantum};
		// Without room for it, frames are dropped and counted.
		bpf_ringbuf_output(&pauses, &pause, sizeof(pause), BPF_RB_FORCE_WAKEUP);
	}
	if (!taken) {
		if (quantum)
			count(PAUSED_LATE);
		else
			count_if_old(now);
	}
	return taken;
}

static __always_inline int has_length(const struct ethhdr *frame, __u64 bytes)
{
	int tagged = frame->h_proto == bpf_htons(ETH_P_8021Q) || frame->h_proto == bpf_htons(ETH_P_8021AD);
	return bytes >= shortest && (!longest || bytes <= longest + (tagged ? VLAN_TAG : 0));
}

static __always_inline void turn_round(struct ethhdr *frame)
{
	__builtin_memcpy(frame->h_dest, frame->h_source, ETH_ALEN);
	for (int i = 0; i < ETH_ALEN; i++)
		frame->h_source[i] = own_mac[i];
}

// Who has the device's address? True if that was asked, and is answered now.
static __always_inline int answers_arp(struct ethhdr *frame, void *end)
{
	struct arp_ipv4 *arp = (void *)(frame + 1);
	if (frame->h_proto != bpf_htons(ETH_P_ARP) || (void *)(arp + 1) > end)
		return 0;
	__u32 target, own = own_ip;
	__builtin_memcpy(&target, arp->target_ip, 4);
	if (arp->operation != bpf_htons(1) || target != own)
		return 0;
	arp->operation = bpf_htons(2);
	__builtin_memcpy(arp->target_mac, arp->sender_mac, ETH_ALEN);
	__builtin_memcpy(arp->target_ip, arp->sender_ip, 4);
	for (int i = 0; i < ETH_ALEN; i++)
		arp->sender_mac[i] = own_mac[i];
	__builtin_memcpy(arp->sender_ip, &own, 4);
	turn_round(frame);
	return 1;
}

// True if this was an echo request for the device, and is its answer now.
static __always_inline int answers_echo(struct ethhdr *frame, void *end)
{
	struct iphdr *ip = (void *)(frame + 1);
	struct echo *echo = (void *)(ip + 1);
	if (frame->h_proto != bpf_htons(ETH_P_IP) || (void *)(echo + 1) > end)
		return 0;
	__u32 own = own_ip;
	if (ip->ihl != 5 || ip->protocol != IPPROTO_ICMP || ip->daddr != own || ip->frag_off & bpf_htons(0x3fff))
		return 0;
	if (echo->type != 8 || echo->code != 0 || !echo_within_limit())
		return 0;
	ip->daddr = ip->saddr;
	ip->saddr = own;
	echo->type = 0;
	// RFC 1624: the first word of the message falls by 0x0800, so its complement rises by that, with the carry around.
	__u32 sum = echo->checksum + bpf_htons(0x0800);
	echo->checksum = sum + (sum >> 16);
	turn_round(frame);
	return 1;
}

// Sends a frame out by port `to`, or by all but the one it came by if that is zero.
static __always_inline int forward(__u32 to)
{
	if (to)
		return bpf_redirect_map(&ports, to, XDP_DROP);
	return bpf_redirect_map(&ports, 0, BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS);
}

SEC("xdp")
int reference(struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct ethhdr *frame = data;
	if ((void *)(frame + 1) > end)
		return XDP_DROP;
	__u32 from = context->ingress_ifindex;
	// Frames between neighbouring switches go no further (IEEE 802.1Q, 8.6.3).
	__u64 destination = mac_key(frame->h_dest), source = mac_key(frame->h_source);
	if (destination >> 4 == 0x0180c200000)
		return XDP_DROP;

	enum kind kind = kind_of(frame, end);
	if (kind == TEST && !has_length(frame, end - data))
		return XDP_DROP;
	if (kind != CHATTER && !(frame->h_source[0] & 1)) {
		__u32 *known = bpf_map_lookup_elem(&addresses, &source);
		if (!known)
			// Of a full table the kernel says so, and the address stays unknown.
			bpf_map_update_elem(&addresses, &source, &from, BPF_NOEXIST);
		else if (*known != from)
			*known = from;
	}

	if (echo_cost) {
		// By redirection: what XDP_TX sends wakes no end without an XDP program of its own (drivers/net/veth.c).
		if (answers_arp(frame, end))
			return forward(from);
		__u8 own[ETH_ALEN];
		for (int i = 0; i < ETH_ALEN; i++)
			own[i] = own_mac[i];
		if (destination == mac_key(own))
			return answers_echo(frame, end) ? forward(from) : XDP_DROP;
	}

	if (kind == TEST && broadcast_cost && destination == BROADCAST && !broadcast_within_limit())
		return XDP_DROP;
	if (kind == TEST && !within_limits(end - data))
		return XDP_DROP;
	__u32 *known = frame->h_dest[0] & 1 ? 0 : bpf_map_lookup_elem(&addresses, &destination);
	__u32 to = known ? *known : 0;
	if (to == from || (kind == TEST && !ports_have_room(from, to, end - data)))
		return XDP_DROP;
	return forward(to);
}

char licence[] SEC("license") = "Dual MIT/GPL";
