//! Exact counts at the window's edges.

pub(crate) use linerate_engine::Timeline;
use linerate_units::Nanos;

/// A window is opened late beyond this part of it.
const LATE: u64 = 10;

/// Counts a running total over the window.
///
/// Each edge is taken at the first sample on or after it, together with the sample's own time, so that count and length
/// belong together however long the call lasted that straddled the edge. Where that is late by a tenth of the window and more, the last
/// sample before the window may be nearer, and is the edge; so of a call that outlasts the window the whole counts, over its own time.
#[derive(Debug)]
pub(crate) struct Window {
    timeline: Timeline,
    /// The last sample before the window, at the latest the start: nothing had been counted then.
    before: (u64, u64),
    opened: Option<(u64, u64)>,
    closed: Option<(u64, u64)>,
}

/// What a sample found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The window opened.
    Opened,
    /// The window closed.
    Closed,
}

impl Window {
    /// A window that no sample has reached yet.
    pub(crate) fn new(timeline: Timeline) -> Self {
        Self { before: (timeline.start(), 0), timeline, opened: None, closed: None }
    }

    /// The same of a volume, all of which counts: without a warm-up it is open from the start.
    pub(crate) fn of_volume(timeline: Timeline) -> Self {
        let start = timeline.start();
        let opened = (timeline.open() <= start).then_some((start, 0));
        Self { opened, ..Self::new(timeline) }
    }

    /// Takes note that `total` stood at `now`; tells if that passed an edge.
    #[inline]
    pub(crate) fn sample(&mut self, now: u64, total: u64) -> Option<Edge> {
        if self.closed.is_some() {
            return None;
        }
        let (open, close) = (self.timeline.open(), self.timeline.close());
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

    /// The last sample before the window tells its beginning better than the first one behind it: a thread that was kept from its core
    /// may come to that when the window is nearly over, or over.
    fn is_nearer(&self, before: u64, now: u64) -> bool {
        let (open, close) = (self.timeline.open(), self.timeline.close());
        let late = now - open;
        now >= close || late > (close - open) / LATE && open.saturating_sub(before) < late
    }

    /// A sample at `now` would pass an edge.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let edge = if self.opened.is_none() { self.timeline.open() } else { self.timeline.close() };
        now >= edge && self.closed.is_none()
    }

    /// The window has opened, and not closed.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.opened.is_some() && self.closed.is_none()
    }

    /// The window has closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Closes the window early: there will be no more samples.
    pub(crate) fn close_at(&mut self, now: u64, total: u64) {
        if self.opened.is_some() && self.closed.is_none() {
            self.closed = Some((now, total));
        }
    }

    /// Closes the window of a volume whose `first` and `last` byte were moved then. One that had not opened began with the last sample
    /// before it. Without a warm-up it begins with the first byte if that came before this host had started.
    pub(crate) fn end_at(&mut self, first: u64, last: u64, total: u64) {
        let (opened, before) = self.opened.get_or_insert(self.before);
        if *before == 0 {
            *opened = first.min(*opened);
        }
        let last = last.max(*opened);
        self.close_at(last, total);
    }

    /// The totals at both edges; none if it has not closed.
    pub(crate) fn totals(&self) -> Option<(u64, u64)> {
        Some((self.opened?.1, self.closed?.1))
    }

    /// The count between the edges, and the time between them; none if it has not closed.
    pub(crate) fn counted(&self) -> Option<(u64, Nanos)> {
        let ((from, before), (to, after)) = (self.opened?, self.closed?);
        Some((after - before, Nanos::new(to - from)))
    }
}

/// The length over which a sum of counts gives the sum of their rates: flows close their windows microseconds apart.
pub(crate) fn joint_length(counts: &mut dyn Iterator<Item = (u64, Nanos)>) -> Nanos {
    let (mut longest, mut sum, mut rate) = (0, 0.0, 0.0);
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

    /// From 0 on, with a window from 100 to 200.
    fn unsampled() -> Window {
        Window::new(Timeline::new(
            0,
            linerate_model::Window { warmup: Warmup::Fixed(Nanos::new(100)), measure: Nanos::new(100) },
        ))
    }

    #[test]
    fn counts_between_the_samples_at_the_edges() {
        let mut window = unsampled();
        let edges: Vec<_> = [(90, 9), (99, 10), (105, 11), (150, 15), (199, 20), (206, 21), (210, 30)]
            .into_iter()
            .filter_map(|(now, total)| window.sample(now, total))
            .collect();
        assert_eq!(edges, [Edge::Opened, Edge::Closed]);
        assert_eq!(window.counted(), Some((10, Nanos::new(101))));
    }

    #[test]
    fn all_of_a_volume_counts_until_its_last_byte() {
        let warmup = |nanos| {
            let warmup = Warmup::Fixed(Nanos::new(nanos));
            Timeline::new(50, linerate_model::Window { warmup, measure: Nanos::new(1_000) })
        };
        let mut whole = Window::of_volume(warmup(0));
        assert!(whole.is_open() && !whole.is_due(90));
        assert_eq!(whole.sample(90, 9), None, "what the first call moved counts");
        whole.end_at(80, 190, 28);
        assert_eq!((whole.is_open(), whole.counted()), (false, Some((28, Nanos::new(140)))));
        let mut silent = Window::of_volume(warmup(0));
        silent.end_at(u64::MAX, 0, 0);
        assert_eq!(silent.counted(), Some((0, Nanos::new(0))), "other flows moved all of it");
        let mut late = Window::of_volume(warmup(0));
        late.end_at(40, 60, 28);
        assert_eq!(late.counted(), Some((28, Nanos::new(20))), "the sender had started before this end");
        let mut warmed_up = Window::of_volume(warmup(100));
        assert_eq!((warmed_up.is_open(), warmed_up.sample(140, 9)), (false, None));
        assert_eq!(warmed_up.sample(160, 10), Some(Edge::Opened));
        warmed_up.end_at(60, 190, 28);
        assert_eq!(warmed_up.counted(), Some((18, Nanos::new(30))));
        let mut early = Window::of_volume(warmup(100));
        early.sample(140, 9);
        early.end_at(60, 145, 12);
        assert_eq!(early.counted(), Some((3, Nanos::new(5))), "it was over before this end knew of the opening");
    }

    #[test]
    fn a_sample_is_due_at_each_edge_once() {
        let mut window = unsampled();
        for (now, due) in [(99, false), (105, true), (150, false), (200, true), (250, false)] {
            assert_eq!(window.is_due(now), due, "{now}");
            assert_eq!(window.sample(now, 0).is_some(), due, "{now}");
        }
    }

    /// A host that is hardly let run may have a thread wait for longer than the window.
    #[test]
    fn a_call_that_outlasts_the_window_counts_over_its_own_time() {
        let mut window = unsampled();
        assert_eq!(window.sample(90, 9), None);
        assert_eq!(window.sample(290, 29), Some(Edge::Closed));
        assert_eq!(window.counted(), Some((20, Nanos::new(200))));
        assert!(window.is_closed());
    }

    #[test]
    fn a_window_that_opens_late_begins_before_if_that_is_nearer() {
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
    fn an_unfinished_window_has_no_count_and_of_a_missed_one_the_whole_counts() {
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
        // 10 + 20 a nanosecond.
        assert_eq!(length, Nanos::new(133));
        assert_eq!(joint_length(&mut [(0, Nanos::new(7))].into_iter()), Nanos::new(7));
    }
}
