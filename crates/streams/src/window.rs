//! Exact counts at the window's edges.

pub(crate) use linerate_pace::Timeline;
use linerate_units::Nanos;

/// Counts a running total over the window.
///
/// Each edge is taken at the first sample on or after it, together with the sample's own time, so that count and length
/// belong together however long the call lasted that straddled the edge.
#[derive(Debug)]
pub(crate) struct Window {
    timeline: Timeline,
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
        Self { timeline, opened: None, closed: None }
    }

    /// Takes note that `total` stood at `now`; tells if that passed an edge.
    #[inline]
    pub(crate) fn sample(&mut self, now: u64, total: u64) -> Option<Edge> {
        if now < self.timeline.open || self.closed.is_some() {
            return None;
        }
        if self.opened.is_none() {
            self.opened = Some((now, total));
            return Some(Edge::Opened);
        }
        if now < self.timeline.close {
            return None;
        }
        self.closed = Some((now, total));
        Some(Edge::Closed)
    }

    /// A sample at `now` would pass an edge.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let edge = if self.opened.is_none() { self.timeline.open } else { self.timeline.close };
        now >= edge && self.closed.is_none()
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

    /// What was counted since the window opened, given the total.
    #[inline]
    pub(crate) fn since_open(&self, total: u64) -> u64 {
        self.opened.map_or(0, |(_, before)| total.saturating_sub(before))
    }

    /// The count between the edges, and the time between them; none if no sample fell into the window.
    pub(crate) fn counted(&self) -> Option<(u64, Nanos)> {
        let ((from, before), (to, after)) =
            (self.opened.filter(|(from, _)| *from < self.timeline.close)?, self.closed?);
        Some((after - before, Nanos::new(to - from)))
    }
}

/// The length over which a sum of counts gives the sum of their rates: flows close their windows microseconds apart.
pub(crate) fn joint_length(counts: impl Iterator<Item = (u64, Nanos)>) -> Nanos {
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

    const TIMELINE: Timeline = Timeline { start: 0, warm_until: 100, open: 100, close: 200 };

    #[test]
    fn counts_between_the_samples_at_the_edges() {
        let mut window = Window::new(TIMELINE);
        let edges: Vec<_> = [(90, 9), (99, 10), (105, 11), (150, 15), (199, 20), (206, 21), (210, 30)]
            .into_iter()
            .filter_map(|(now, total)| window.sample(now, total))
            .collect();
        assert_eq!(edges, [Edge::Opened, Edge::Closed]);
        assert_eq!(window.counted(), Some((10, Nanos::new(101))));
        assert_eq!(window.since_open(30), 19);
        assert_eq!(window.since_open(10), 0, "what waited at the edge is not taken yet");
    }

    #[test]
    fn a_sample_is_due_at_each_edge_once() {
        let mut window = Window::new(TIMELINE);
        for (now, due) in [(99, false), (105, true), (150, false), (200, true), (250, false)] {
            assert_eq!(window.is_due(now), due, "{now}");
            assert_eq!(window.sample(now, 0).is_some(), due, "{now}");
        }
    }

    #[test]
    fn an_unfinished_window_has_no_count() {
        let mut window = Window::new(TIMELINE);
        assert_eq!(window.since_open(5), 0);
        window.sample(300, 5);
        assert!(!window.is_closed());
        assert_eq!(window.counted(), None);
        // What is counted after the window says nothing about it.
        window.sample(310, 6);
        assert!(window.is_closed());
        assert_eq!(window.counted(), None);
    }

    #[test]
    fn joint_length_keeps_the_sum_of_rates() {
        let length = joint_length([(1_000, Nanos::new(100)), (3_000, Nanos::new(150))].into_iter());
        // 10 + 20 a nanosecond.
        assert_eq!(length, Nanos::new(133));
        assert_eq!(joint_length([(0, Nanos::new(7))].into_iter()), Nanos::new(7));
    }
}
