//! Display of running tasks: one table for each subject.

use linerate_model::{IntervalReport, Text, Transport, text};

/// Unit of the values of a chart over time.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ValueKind {
    BitsPerSecond,
    BytesPerSecond,
    PerSecond,
    Share,
    Bytes,
    Segments,
    Nanos,
}

/// Quantity that the rate of a running task counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveRate {
    /// Payload bits at the receivers.
    Payload,
    /// Bytes of files in place.
    Files,
    /// Requests of any kind.
    Requests,
    /// Frames.
    Frames,
}

/// A column of the lines that are printed while a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveColumn {
    /// Bytes received.
    Received,
    /// Payload bits received per second.
    Rate,
    /// Retransmits of TCP, or requests sent again.
    Retransmits,
    /// Datagrams lost.
    Lost,
    /// Smoothed round-trip time of TCP.
    Srtt,
    /// Median response time.
    P50,
    /// 99th percentile of response times.
    P99,
    /// Transactions per second.
    Transactions,
    /// RPC calls per second.
    Calls,
    /// NFS operations per second.
    Operations,
    /// Files copied in the interval.
    Files,
    /// Bytes copied in the interval.
    Copied,
    /// Files copied since the copy began.
    AllFiles,
    /// Frames received in the interval.
    Frames,
    /// Frames received per second.
    FrameRate,
    /// Bits sent per second.
    SentRate,
    /// Bits received per second.
    ReceivedRate,
}

/// A chart of a running task with one line.
pub(crate) struct LiveChart {
    /// What it shows.
    pub(crate) what: &'static Text,
    pub(crate) kind: ValueKind,
    /// Returns the value of an interval, `None` if it was not reported.
    pub(crate) value: fn(&IntervalReport) -> Option<f64>,
}

/// Display of a running task.
pub struct Live {
    /// Quantity of its rate.
    pub rate: LiveRate,
    /// Title of the panel of its rate.
    pub panel: &'static Text,
    /// Columns of its lines, without the interval and the busiest thread.
    columns: &'static [LiveColumn],
    /// Columns over UDP.
    udp_columns: &'static [LiveColumn],
    /// Charts of its rate and of what was lost or sent again.
    charts: &'static [LiveChart],
    /// Charts over UDP.
    udp_charts: &'static [LiveChart],
    /// Whether its trials have a warm-up and a measured window.
    pub(crate) has_window: bool,
}

impl Live {
    /// Returns what a task shows over every transport.
    pub(crate) const fn new(
        rate: LiveRate,
        panel: &'static Text,
        columns: &'static [LiveColumn],
        charts: &'static [LiveChart],
    ) -> Self {
        let has_window = matches!(rate, LiveRate::Payload | LiveRate::Requests);
        Self { rate, panel, columns, udp_columns: columns, charts, udp_charts: charts, has_window }
    }

    /// Returns the same with what it shows over UDP.
    pub(crate) const fn over_udp(self, columns: &'static [LiveColumn], charts: &'static [LiveChart]) -> Self {
        Self { udp_columns: columns, udp_charts: charts, ..self }
    }

    /// Returns the columns of its lines, without the interval and the busiest thread.
    pub fn columns(&self, transport: Option<Transport>) -> &'static [LiveColumn] {
        if transport == Some(Transport::Udp) { self.udp_columns } else { self.columns }
    }

    /// Returns the charts of its rate and of what was lost or sent again.
    pub(crate) fn charts(&self, transport: Option<Transport>) -> &'static [LiveChart] {
        if transport == Some(Transport::Udp) { self.udp_charts } else { self.charts }
    }
}

/// Requests sent again over UDP.
pub(crate) const SENT_AGAIN: LiveChart = sent_again(text!("over-time-calls-again", "calls sent again"));

/// Retransmits of TCP.
pub(crate) const RETRANSMITS: LiveChart = sent_again(text!("over-time-retransmits", "retransmits"));

/// Returns the chart of a rate of requests or frames.
pub(crate) const fn operations(what: &'static Text) -> LiveChart {
    LiveChart { what, kind: ValueKind::PerSecond, value: |interval| Some(interval.operations_per_s) }
}

/// Returns the chart of what was sent again.
const fn sent_again(what: &'static Text) -> LiveChart {
    LiveChart { what, kind: ValueKind::PerSecond, value: |interval| per_second(interval, interval.retransmits) }
}

/// Returns a count of an interval as a rate, `None` if the interval has no length.
pub(crate) fn per_second(interval: &IntervalReport, count: u64) -> Option<f64> {
    let seconds = (interval.to - interval.from).as_secs_f64();
    (seconds > 0.0).then(|| count as f64 / seconds)
}
