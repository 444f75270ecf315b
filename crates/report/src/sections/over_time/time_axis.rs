//! The axis of time that all charts over time of a result share, so that one moment stands at one place in all of them.

use crate::blocks::axis::Axis;
use crate::language::Language;
use linerate_model::Span;
use linerate_model::text;

/// From where to where the charts of a result reach.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeAxis {
    /// Number of the group of charts that share it.
    pub(crate) group: usize,
    pub(crate) span: Span,
    /// Whether zero is where the measured window opened, not the start.
    pub(crate) has_window: bool,
}

impl TimeAxis {
    /// Returns the axis over these spans, `None` if there are none.
    pub(crate) fn over(group: usize, has_window: bool, spans: impl Iterator<Item = Span>) -> Option<Self> {
        let all = |one: Span, other: Span| Span {
            from_us: one.from_us.min(other.from_us),
            to_us: one.to_us.max(other.to_us),
        };
        Some(Self { group, has_window, span: spans.reduce(all)? })
    }

    /// Returns the axis as it is drawn.
    pub(crate) fn axis(&self, lang: Language) -> Axis {
        let below = if self.has_window {
            text!("over-time-axis-window", "seconds from the opening of the window")
        } else {
            text!("over-time-axis-start", "seconds from the start")
        };
        Axis::seconds(lang.text(below), self.span.from_us as f64 / 1e6, self.span.to_us as f64 / 1e6)
    }
}
