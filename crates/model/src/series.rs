//! The course of a trial on one host: what changed between one sample and the next.
//!
//! A sampler takes [`Readings`] again and again. A [`SeriesBuilder`] turns them into a [`Series`]: one point for each interval, one
//! track for each quantity. Counters become growth within the interval; levels stay as they were read.

mod builder;
mod latency_buckets;
mod quantity;

pub use builder::{Readings, SeriesBuilder};
pub use latency_buckets::LatencyBuckets;
pub use quantity::{Quantity as SeriesQuantity, SeriesUnit};

use crate::Window;
use crate::checked::{OutOfRange, check_when_read, within};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a host samples a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Sampling {
    /// Time from one sample to the next.
    pub period: Nanos,
    /// Points kept at the most. Where there would be more, neighbours are merged.
    pub most_points: u32,
}

impl Sampling {
    /// Shortest period.
    pub const SHORTEST: Nanos = Nanos::from_millis(10);
    /// Longest period.
    pub const LONGEST: Nanos = Nanos::from_secs(10);
    /// Points of one host in one trial, at the least: an edge of the window is never merged away, so that fewer would not be
    /// kept to.
    pub const FEWEST_POINTS: u32 = 4;
    /// Points of one host in one trial, at the most.
    pub const MOST_POINTS: u32 = 1_200;

    /// Checks that samples come neither too often nor too rarely, and that neither too few nor too many are kept.
    ///
    /// # Errors
    /// The range that it is out of.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let Self { period, most_points } = self;
        if !(Self::SHORTEST..=Self::LONGEST).contains(period) {
            return Err(OutOfRange(format!(
                "the trial is to be sampled every {period}, and an agent takes samples every {} to {}; set another period \
                 with `--sample`",
                Self::SHORTEST,
                Self::LONGEST
            )));
        }
        if !(Self::FEWEST_POINTS..=Self::MOST_POINTS).contains(most_points) {
            return Err(OutOfRange(format!(
                "the trial's series is to have {most_points} points at most, and an agent keeps {} to {} of them",
                Self::FEWEST_POINTS,
                Self::MOST_POINTS
            )));
        }
        Ok(())
    }
}

check_when_read!(Sampling);

impl Default for Sampling {
    fn default() -> Self {
        Self { period: Nanos::from_millis(100), most_points: Self::MOST_POINTS }
    }
}

/// What one host sampled in one session, from the start of its load to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Series {
    /// When the measured window opened, nanoseconds on the host's own monotonic clock; where there is no window, when the load
    /// began. All other times count from here.
    pub opened_ns: u64,
    /// How long the window was open; where there is no window, how long the load ran. What lies outside is warm-up or drain.
    pub window: Nanos,
    /// When the first interval began, microseconds; negative in the warm-up.
    pub from_us: i64,
    /// When each interval ended, microseconds. No interval lies across an edge of the window.
    pub at_us: Vec<i64>,
    /// One for each quantity that was not zero throughout.
    pub tracks: Vec<Track>,
    /// Response times of each interval, one for each point; empty where none are taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<LatencyBuckets>,
}

check_when_read!(Series);

/// One quantity over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Track {
    /// What it is.
    pub quantity: SeriesQuantity,
    /// Which core, thread, interface, queueing discipline, port or stage; empty where there is one only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// One value for each point, in the quantity's unit.
    pub values: Vec<u64>,
}

/// One interval of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its beginning, microseconds from the opening of the window.
    pub from_us: i64,
    /// Its end.
    pub to_us: i64,
}

impl Span {
    /// Length in seconds.
    pub fn seconds(self) -> f64 {
        (self.to_us - self.from_us) as f64 / 1e6
    }
}

impl Series {
    /// Checks that each track has a value for each interval, and that the intervals follow each other.
    fn check(&self) -> Result<(), OutOfRange> {
        let points = self.at_us.len();
        let uneven = self.tracks.iter().find(|track| track.values.len() != points);
        if let Some(track) = uneven {
            let values = track.values.len();
            return Err(OutOfRange(format!(
                "a series has {points} points and {values} values of {:?}",
                track.quantity
            )));
        }
        if !self.latency.is_empty() && self.latency.len() != points {
            let latency = self.latency.len();
            return Err(OutOfRange(format!("a series has {points} points and {latency} of response times")));
        }
        let longest = (Window::LONGEST.get() / 1_000) as i64;
        within("us as the beginning of a series", self.from_us, -longest..=longest)?;
        let last = self.at_us.last().copied().unwrap_or(self.from_us);
        within("us as the end of a series", last, -longest..=longest)?;
        match self.spans().find(|span| span.to_us < span.from_us) {
            Some(Span { from_us, to_us }) => {
                Err(OutOfRange(format!("a point at {to_us} us follows one at {from_us} us")))
            }
            None => Ok(()),
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.at_us.len()
    }

    /// Whether nothing was sampled.
    pub fn is_empty(&self) -> bool {
        self.at_us.is_empty()
    }

    /// The interval of each point.
    pub fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        let begins = std::iter::once(self.from_us).chain(self.at_us.iter().copied());
        begins.zip(&self.at_us).map(|(from_us, to_us)| Span { from_us, to_us: *to_us })
    }

    /// Whether each point lies within the measured window.
    pub fn in_window(&self) -> impl Iterator<Item = bool> + '_ {
        let end = (self.window.get() / 1_000) as i64;
        self.spans().map(move |span| span.from_us >= 0 && span.to_us <= end)
    }

    /// The track of `quantity` without a subject; none if it was zero throughout, or was not sampled.
    pub fn track(&self, quantity: SeriesQuantity) -> Option<&[u64]> {
        self.tracks_of(quantity).find(|track| track.subject.is_empty()).map(|track| &track.values[..])
    }

    /// All tracks of `quantity`.
    pub fn tracks_of(&self, quantity: SeriesQuantity) -> impl Iterator<Item = &Track> {
        self.tracks.iter().filter(move |track| track.quantity == quantity)
    }

    /// A counter's growth per second in each interval; empty if it was zero throughout.
    pub fn per_second(&self, quantity: SeriesQuantity) -> Vec<f64> {
        let Some(values) = self.track(quantity) else { return Vec::new() };
        let rate = |(value, span): (&u64, Span)| *value as f64 / span.seconds().max(f64::MIN_POSITIVE);
        values.iter().zip(self.spans()).map(rate).collect()
    }

    /// Leaves out what the whole host says, as where another session on the same host has it.
    pub fn without_host(mut self) -> Self {
        self.tracks.retain(|track| !track.quantity.is_of_host());
        self
    }
}

/// The series of one session of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSeries {
    /// The load's place in the trial.
    pub load: u16,
    /// Whose it is.
    pub host: crate::HostName,
    /// What was sampled. Those of a load beside the measured one leave out what the whole host says.
    pub series: Series,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_out_of_range_is_refused_with_the_range() {
        let check = |period, most_points| Sampling { period, most_points }.check().map_err(|error| error.to_string());
        let most = Sampling::MOST_POINTS;
        for (period, most_points) in [(Sampling::SHORTEST, 4), (Sampling::LONGEST, most)] {
            assert_eq!(check(period, most_points), Ok(()), "{period}, {most_points} points");
        }
        assert_eq!(Sampling::default().check(), Ok(()));
        for (period, most_points, parts) in [
            (Nanos::default(), most, ["every 0 ns", "10 ms to 10 s"]),
            (Nanos::new(9_999_999), most, ["--sample", "10 ms to 10 s"]),
            (Nanos::new(10_000_000_001), most, ["--sample", "10 ms to 10 s"]),
            (Sampling::SHORTEST, 0, ["0 points", "4 to 1200"]),
            (Sampling::SHORTEST, 3, ["3 points", "4 to 1200"]),
            (Sampling::SHORTEST, most + 1, ["1201 points", "4 to 1200"]),
        ] {
            let error = check(period, most_points).expect_err("out of range");
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} in {error}");
        }
    }
}
