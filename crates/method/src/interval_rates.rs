//! Rates of a load in short intervals: what a load is judged by, and the mean rate with its error.

use linerate_model::{Task, Transport};

/// TCP passes data to a receiver in pieces of about so many bytes, and their number varies by chance.
const TCP_UNIT: u64 = 64 << 10;

/// What was counted in an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    /// Bytes or operations.
    pub(crate) count: f64,
    pub(crate) seconds: f64,
}

impl Interval {
    /// Returns the rate per second.
    pub(crate) fn rate(self) -> f64 {
        self.count / self.seconds
    }
}

/// Returns whether bytes at the receivers are what `task` is judged by, else operations completed; and the size of what arrives at
/// a time, in the same unit.
pub(crate) fn judged_by(task: &Task) -> (bool, f64) {
    match task {
        Task::Stream(task) => match task.net.transport {
            Transport::Tcp => (true, TCP_UNIT as f64),
            Transport::Udp => (true, task.message_bytes.get().max(1) as f64),
        },
        _ => (false, 1.0),
    }
}

/// Returns the mean rate of two intervals or more and its standard error: that of the rates, or of a count by chance in steps of
/// `unit`, whichever is larger.
pub(crate) fn mean_rate(intervals: &[Interval], unit: f64) -> (f64, f64) {
    let (count, seconds) = intervals.iter().fold((0.0, 0.0), |(c, s), i| (c + i.count, s + i.seconds));
    let (mean, number) = (count / seconds, intervals.len() as f64);
    let variance = intervals.iter().map(|interval| (interval.rate() - mean).powi(2)).sum::<f64>() / (number - 1.0);
    (mean, (variance / number).sqrt().max((count / unit).max(1.0).sqrt() * unit / seconds))
}
