//! Exact counts at the window's edges.

pub(crate) use linerate_engine::Timeline;
use linerate_units::Nanos;

/// Part of the window after which its first sample counts as late.
const LATE: u64 = 10;

/// Counts a running total over the window.
///
/// Each edge is the first sample on or after it, together with the sample's own time, so that count and length match
/// however long the call at the edge lasted. If the first sample is late by more than a tenth of the window, the last
/// sample before the window is the edge if it is nearer. So a call that outlasts the window counts completely, over its
/// own time.
#[derive(Debug)]
pub(crate) struct Window {
    timeline: Timeline,
    /// Last sample before the window. Initially the start with a count of zero.
    before: (u64, u64),
    opened: Option<(u64, u64)>,
    closed: Option<(u64, u64)>,
}

/// Edge of the window that a sample passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Opening of the window.
    Opened,
    /// Close of the window.
    Closed,
}

impl Window {
    /// Creates a window that no sample has reached yet.
    pub(crate) fn new(timeline: Timeline) -> Self {
        Self { before: (timeline.start(), 0), timeline, opened: None, closed: None }
    }

    /// Creates the window of a volume, which counts completely. Without a warm-up it is open from the start.
    pub(crate) fn of_volume(timeline: Timeline) -> Self {
        let start = timeline.start();
        let opened = (timeline.open() <= start).then_some((start, 0));
        Self { opened, ..Self::new(timeline) }
    }

    /// Records the `total` at `now`. Returns the edge that this sample passed, if any.
    #[inline]
    pub(crate) fn sample(&mut self, now: u64, total: u64) -> Option<Edge> {
        if self.closed.is_some() {
            return None;
        }
        let open = self.timeline.open();
        let close = self.timeline.close();
        if now < open {
            self.before = (now, total);
            return None;
        }
        if self.opened.is_none() {
            let sample = (now, total);
            self.opened = Some(if self.is_nearer(self.before.0, now) { self.before } else { sample });
            if now >= close {
                self.closed = Some(sample);
                return Some(Edge::Closed);
            }
            return Some(Edge::Opened);
        }
        if now < close {
            return None;
        }
        self.closed = Some((now, total));
        Some(Edge::Closed)
    }

    /// Returns whether the last sample before the window, at `before`, is a better opening than the first one after it,
    /// at `now`. A descheduled thread may take that one when the window is nearly over, or over.
    fn is_nearer(&self, before: u64, now: u64) -> bool {
        let open = self.timeline.open();
        let close = self.timeline.close();
        let late = now - open;
        now >= close || late > (close - open) / LATE && open.saturating_sub(before) < late
    }

    /// Returns whether a sample at `now` would pass an edge.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let edge = if self.opened.is_none() { self.timeline.open() } else { self.timeline.close() };
        now >= edge && self.closed.is_none()
    }

    /// Returns whether the window has opened and not closed.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.opened.is_some() && self.closed.is_none()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Closes the window early, because no more samples follow.
    pub(crate) fn close_at(&mut self, now: u64, total: u64) {
        if self.opened.is_some() && self.closed.is_none() {
            self.closed = Some((now, total));
        }
    }

    /// Closes the window of a volume whose `first` and `last` byte were moved at these times.
    ///
    /// A window that had not opened begins with the last sample before it. Without a warm-up it begins with the first
    /// byte if that arrived before this host had started.
    pub(crate) fn end_at(&mut self, first: u64, last: u64, total: u64) {
        let (opened, before) = self.opened.get_or_insert(self.before);
        if *before == 0 {
            *opened = first.min(*opened);
        }
        let last = last.max(*opened);
        self.close_at(last, total);
    }

    /// Returns the totals at both edges, or `None` if the window has not closed.
    pub(crate) fn totals(&self) -> Option<(u64, u64)> {
        Some((self.opened?.1, self.closed?.1))
    }

    /// Returns the count and the time between the edges, or `None` if the window has not closed.
    pub(crate) fn counted(&self) -> Option<(u64, Nanos)> {
        let (from, before) = self.opened?;
        let (to, after) = self.closed?;
        Some((after - before, Nanos::new(to - from)))
    }
}

/// Returns the length over which a sum of counts has the sum of their rates. Flows close their windows microseconds
/// apart.
pub(crate) fn joint_length(counts: &mut dyn Iterator<Item = (u64, Nanos)>) -> Nanos {
    let mut longest = 0;
    let mut sum = 0.0;
    let mut rate = 0.0;
    for (count, length) in counts {
        longest = longest.max(length.get());
        sum += count as f64;
        rate += count as f64 / length.get().max(1) as f64;
    }
    Nanos::new(if rate > 0.0 { (sum / rate).round() as u64 } else { longest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Warmup;

    /// Returns a window from 100 to 200 of a load that starts at 0.
    fn unsampled() -> Window {
        Window::new(Timeline::new(
            0,
            linerate_model::Window { warmup: Warmup::Fixed(Nanos::new(100)), measure: Nanos::new(100) },
        ))
    }

    #[test]
    fn window_counts_between_the_samples_at_its_edges() {
        let mut window = unsampled();
        let edges: Vec<_> = [(90, 9), (99, 10), (105, 11), (150, 15), (199, 20), (206, 21), (210, 30)]
            .into_iter()
            .filter_map(|(now, total)| window.sample(now, total))
            .collect();
        assert_eq!(edges, [Edge::Opened, Edge::Closed]);
        assert_eq!(window.counted(), Some((10, Nanos::new(101))));
    }

    #[test]
    fn volume_counts_until_its_last_byte() {
        let mut whole = of_volume(0);
        assert!(whole.is_open() && !whole.is_due(90));
        assert_eq!(whole.sample(90, 9), None, "the bytes of the first call count");
        whole.end_at(80, 190, 28);
        assert_eq!((whole.is_open(), whole.counted()), (false, Some((28, Nanos::new(140)))));
        let mut silent = of_volume(0);
        silent.end_at(u64::MAX, 0, 0);
        assert_eq!(silent.counted(), Some((0, Nanos::new(0))), "other flows moved all of it");
        let mut late = of_volume(0);
        late.end_at(40, 60, 28);
        assert_eq!(late.counted(), Some((28, Nanos::new(20))), "the sender had started before this end");
        let mut warmed_up = of_volume(100);
        assert_eq!((warmed_up.is_open(), warmed_up.sample(140, 9)), (false, None));
        assert_eq!(warmed_up.sample(160, 10), Some(Edge::Opened));
        warmed_up.end_at(60, 190, 28);
        assert_eq!(warmed_up.counted(), Some((18, Nanos::new(30))));
        let mut early = of_volume(100);
        early.sample(140, 9);
        early.end_at(60, 145, 12);
        assert_eq!(early.counted(), Some((3, Nanos::new(5))), "it was over before this end knew of the opening");
    }

    /// Returns the window of a volume after a warm-up, of a load that starts at 50.
    fn of_volume(warmup_ns: u64) -> Window {
        let warmup = Warmup::Fixed(Nanos::new(warmup_ns));
        Window::of_volume(Timeline::new(50, linerate_model::Window { warmup, measure: Nanos::new(1_000) }))
    }

    #[test]
    fn a_sample_is_due_at_each_edge_once() {
        let mut window = unsampled();
        for (now, due) in [(99, false), (105, true), (150, false), (200, true), (250, false)] {
            assert_eq!(window.is_due(now), due, "{now}");
            assert_eq!(window.sample(now, 0).is_some(), due, "{now}");
        }
    }

    /// On an overloaded host a thread may wait for longer than the window.
    #[test]
    fn call_that_outlasts_the_window_counts_over_its_own_time() {
        let mut window = unsampled();
        assert_eq!(window.sample(90, 9), None);
        assert_eq!(window.sample(290, 29), Some(Edge::Closed));
        assert_eq!(window.counted(), Some((20, Nanos::new(200))));
        assert!(window.is_closed());
    }

    #[test]
    fn late_window_begins_with_an_earlier_sample_if_nearer() {
        for (before, late, counted) in [
            ((90, 9), (130, 13), Some((12, 120))),
            ((50, 5), (130, 13), Some((8, 80))),
            ((99, 9), (108, 10), Some((11, 102))),
        ] {
            let mut window = unsampled();
            window.sample(before.0, before.1);
            assert_eq!(window.sample(late.0, late.1), Some(Edge::Opened));
            window.sample(210, 21);
            assert_eq!(window.counted(), counted.map(|(count, length)| (count, Nanos::new(length))));
        }
    }

    #[test]
    fn unfinished_window_has_no_count_and_missed_window_counts_everything() {
        let mut window = unsampled();
        window.sample(150, 5);
        assert_eq!((window.is_closed(), window.counted()), (false, None));
        let mut missed = unsampled();
        missed.sample(310, 6);
        assert_eq!((missed.is_closed(), missed.counted()), (true, Some((6, Nanos::new(310)))));
    }

    #[test]
    fn joint_length_keeps_the_sum_of_rates() {
        let length = joint_length(&mut [(1_000, Nanos::new(100)), (3_000, Nanos::new(150))].into_iter());
        // 10 + 20 per nanosecond.
        assert_eq!(length, Nanos::new(133));
        assert_eq!(joint_length(&mut [(0, Nanos::new(7))].into_iter()), Nanos::new(7));
    }
}
