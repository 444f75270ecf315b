//! What an attempt at a trial counted, and whether its figures count.

use crate::{
    Caveat, ClockOffset, CopyParts, Counts, DeviceLoad, FrameCounts, FrameStream, FrameStreamCounts, HostName,
    Observation, Outage, PathCounts, SessionSeries, Task, Trial,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One attempt at a trial. Every attempt is kept; results are drawn from those that count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialResult {
    /// What was to be done.
    pub trial: Trial,
    /// Which attempt at this repeat it was; the first is 0.
    pub attempt: u32,
    /// Whether its figures count.
    pub standing: Standing,
    /// When the window opened or the first frame was sent, nanoseconds since 1970; zero where it failed before.
    pub started_unix_ns: u64,
    /// When it was under way; none in records of versions that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<AttemptSpan>,
    /// What each load counted, in the trial's order; empty where the attempt failed.
    pub counts: Vec<Counts>,
    /// What each host saw during the window.
    pub hosts: BTreeMap<HostName, Observation>,
    /// The course of the attempt: what each session sampled, in the order of the loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SessionSeries>,
    /// Each host's clock against the runner's. It puts all series on one axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<HostName, ClockOffset>,
    /// Times in which the path carried nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// What the device, or a file server with an agent on it, said of its own load meanwhile; none if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
    /// Doubts about this attempt.
    pub caveats: Vec<Caveat>,
}

/// When an attempt was under way, failed or not, by the clock of the runner: preparation before and removal after it are part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptSpan {
    /// When it began, nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// When its counts had come, or it had failed, nanoseconds since 1970.
    pub ended_unix_ns: u64,
}

/// Whether the figures of an attempt count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Standing {
    /// They count.
    Counted,
    /// The tester spoilt the attempt: it was repeated, and its figures do not count.
    Spoilt {
        /// What spoilt it.
        reason: Caveat,
    },
    /// The attempt came to nothing.
    Failed {
        /// Why.
        reason: String,
    },
}

impl TrialResult {
    /// Reads an attempt out of JSON, as [`Record::from_json`](crate::Record::from_json) does.
    ///
    /// # Errors
    /// The text is not JSON, or something in it is missing or cannot be.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// An attempt that came to nothing.
    pub fn failed(trial: Trial, attempt: u32, reason: impl Into<String>) -> Self {
        Self {
            trial,
            attempt,
            standing: Standing::Failed { reason: reason.into() },
            started_unix_ns: 0,
            span: None,
            counts: Vec::new(),
            hosts: BTreeMap::new(),
            series: Vec::new(),
            clocks: BTreeMap::new(),
            outages: Vec::new(),
            device_load: None,
            caveats: Vec::new(),
        }
    }

    /// Whether the figures of this attempt count.
    pub fn is_counted(&self) -> bool {
        self.standing == Standing::Counted
    }

    /// Why the attempt came to nothing; none otherwise.
    pub fn failure(&self) -> Option<&str> {
        match &self.standing {
            Standing::Failed { reason } => Some(reason),
            _ => None,
        }
    }

    /// Where each of [`Self::series`] lies on one axis: its zero less that of the first one, microseconds. Zero where the clocks
    /// of the two hosts cannot be compared.
    pub fn series_offsets_us(&self) -> Vec<i64> {
        let Some(first) = self.series.first() else { return Vec::new() };
        let clock = |of: &SessionSeries| self.clocks.get(&of.host).map(|clock| i128::from(clock.offset_ns));
        let apart = |one: &SessionSeries| {
            let clocks =
                if one.host == first.host { Some(0) } else { clock(one).zip(clock(first)).map(|(a, b)| a - b) };
            let ns = i128::from(one.series.opened_ns) - i128::from(first.series.opened_ns) - clocks?;
            i64::try_from(ns.div_euclid(1_000)).ok()
        };
        self.series.iter().map(|one| apart(one).unwrap_or_default()).collect()
    }

    /// Counts of each path of the measured load; empty for other tasks and failed attempts.
    pub fn paths(&self) -> &[PathCounts] {
        match self.counts.first() {
            Some(Counts::Flows(paths)) => paths,
            _ => &[],
        }
    }

    /// What the measured load counted of raw frames; none for other tasks and failed attempts.
    pub fn frames(&self) -> Option<FramesRun<'_>> {
        match (self.trial.task(), self.counts.first()) {
            (Task::Frames(task), Some(Counts::Frames(counts))) => Some(FramesRun { result: self, task, counts }),
            _ => None,
        }
    }

    /// What the measured load counted of a copy; none for other tasks and failed attempts.
    pub fn copy(&self) -> Option<&CopyParts> {
        match self.counts.first() {
            Some(Counts::Copy(parts)) => Some(parts),
            _ => None,
        }
    }
}

/// A trial with raw frames beside what it counted.
#[derive(Debug, Clone, Copy)]
pub struct FramesRun<'a> {
    /// The whole attempt.
    pub result: &'a TrialResult,
    /// What was to be sent.
    pub task: &'a crate::FramesTask,
    /// What became of it.
    pub counts: &'a FrameCounts,
}

impl<'a> FramesRun<'a> {
    /// Each stream with its counts, in the trial's order.
    pub fn streams(&self) -> impl Iterator<Item = (&'a FrameStream, &'a FrameStreamCounts)> + use<'a> {
        self.task.streams.iter().zip(&self.counts.streams)
    }

    /// What the host of the first port saw.
    pub fn observation(&self) -> Option<&'a Observation> {
        let host = self.task.ports.first().map_or(&self.task.home, |port| self.task.host(port));
        self.result.hosts.get(host)
    }

    /// Frames per second that were really offered, all streams together. A sender that was held up takes longer than the
    /// trial's time.
    pub fn offered(&self) -> f64 {
        let rate = |(wish, stream): (&FrameStream, &FrameStreamCounts)| {
            stream.sent as f64 / wish.length(self.task.time).max(stream.send_time).as_secs_f64()
        };
        self.streams().map(rate).sum()
    }

    /// Offered load as a share of the intended load, 0 to 1, of the stream that fell shortest.
    pub fn offered_share(&self) -> f64 {
        let share = |(wish, stream): (&FrameStream, &FrameStreamCounts)| {
            let length = wish.length(self.task.time);
            let held_up = length.as_secs_f64() / length.max(stream.send_time).as_secs_f64();
            stream.sent as f64 / stream.intended.max(stream.sent).max(1) as f64 * held_up
        };
        self.streams().filter(|(_, stream)| stream.intended > 0).map(share).fold(1.0, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockOffset, Series, StreamTask, Timing, Transport};
    use linerate_units::{ByteCount, Nanos};

    #[test]
    fn series_lie_on_one_axis_as_far_as_clocks_are_known() {
        let task = Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1)));
        let mut result = TrialResult::failed(Trial::new("t", task, Timing::UntilDone), 0, "");
        assert_eq!(result.series_offsets_us(), Vec::<i64>::new());
        // The clock of b is 1 s ahead of that of a; c tells none.
        for (load, host, opened_ns) in
            [(0, "a", 5_000_000_000), (0, "b", 6_000_200_000), (0, "c", 9), (1, "a", 4_999_000_000)]
        {
            let series = Series { opened_ns, ..Series::default() };
            result.series.push(SessionSeries { load, host: host.into(), series });
        }
        assert_eq!(result.series_offsets_us(), [0, 0, 0, -1_000], "one host's own clock is known");
        for (host, offset_ns) in [("a", -3_000), ("b", 999_997_000)] {
            let clock = ClockOffset { offset_ns, uncertainty: Nanos::new(1), exchanges: 2 };
            result.clocks.insert(host.into(), clock);
        }
        assert_eq!(result.series_offsets_us(), [0, 200, 0, -1_000]);
    }
}
