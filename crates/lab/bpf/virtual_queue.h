/* SPDX-License-Identifier: Apache-2.0 OR MIT */
//
// A queue that holds nothing: the moment at which all that was taken will be through. What a frame costs moves it on.

#define TIME_SHIFT 12    // moments are kept in 2^-12 ns; they wrap, so only differences count
#define COST_SHIFT 16    // costs of a byte in 2^-28 ns
#define SHORTEST 60      // bytes of a frame, without its FCS
#define AROUND 24        // FCS, preamble and gap

// How long until all that was taken is through.
static __always_inline __u64 backlog(__u64 free_at, __u64 now)
{
	return free_at == 0 || (__s64)(free_at - now) < 0 ? 0 : free_at - now;
}

// Takes one more, unless it would wait for longer than `wait`. Called under the lock of what holds `free_at`.
static __always_inline int take(__u64 *free_at, __u64 now, __u64 cost, __u64 wait)
{
	__u64 ahead = backlog(*free_at, now);
	if (ahead > wait)
		return 0;
	*free_at = now + ahead + cost;
	return 1;
}
