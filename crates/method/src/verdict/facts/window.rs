//! Samples within the measured window, and the difference between the counts of both ends.

use super::median;
use crate::transfer::{Transfer, rate, transfers};
use linerate_model::{EndCounts, HostName, Series, TrialResult};
use std::collections::BTreeSet;

/// Shortest window whose shares of time are evidence, in seconds. Cores are accounted in ticks of 10 ms (proc_stat(5)), so shares of a
/// shorter window are known to 5 % at best.
const SHORTEST: f64 = 0.2;
/// Multiple of its congestion window that a TCP sender keeps in its buffer while the path is full.
const BUFFERED_WINDOWS: f64 = 3.0;

/// Observation of the measured window, medians over the runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct WindowFacts {
    /// Length of the window in seconds, of the end with the shortest one.
    pub(crate) seconds: f64,
    /// Whole sampling intervals within the window, of the host with the fewest.
    pub(crate) samples: f64,
    /// Difference between the counts of sender and receiver, as a share of the larger. `None` if only one end counts.
    pub(crate) difference: Option<f64>,
}

impl WindowFacts {
    /// Returns the observation of a load of flows.
    pub(super) fn of(runs: &[&TrialResult]) -> Self {
        let mut lengths = Vec::new();
        let mut samples = Vec::new();
        let mut differences = Vec::new();
        for run in runs {
            let all = transfers(run);
            lengths.push(all.iter().filter_map(shortest_window).fold(f64::INFINITY, f64::min));
            let hosts: BTreeSet<&HostName> = all.iter().flat_map(|transfer| [transfer.from, transfer.to]).collect();
            samples.push(fewest_samples(run, &hosts));
            differences.extend(all.iter().filter_map(|one| difference(run, one)).reduce(f64::max));
        }
        let difference = (!differences.is_empty()).then(|| median(differences.iter().copied()));
        let seconds = median(lengths.into_iter().filter(|length| length.is_finite()));
        Self { seconds, samples: median(samples.into_iter()), difference }
    }

    /// Returns the observation of a task without a window, which took `seconds` on `hosts`.
    pub(crate) fn of_whole(
        run: &TrialResult,
        hosts: &BTreeSet<&HostName>,
        seconds: f64,
        difference: Option<f64>,
    ) -> Self {
        Self { seconds, samples: fewest_samples(run, hosts), difference }
    }

    /// Whether the window is too short for shares of time to be evidence.
    pub(crate) fn is_brief(&self) -> bool {
        self.seconds < SHORTEST
    }
}

/// Length of the shorter window of both ends, in seconds.
fn shortest_window(transfer: &Transfer<'_>) -> Option<f64> {
    let of_end = |end: &EndCounts| {
        let sent = end.sent.as_ref().map(|sent| sent.window);
        let received = end.received.as_ref().map(|received| received.window);
        let asked = end.transactions.as_ref().map(|asked| asked.window);
        [sent, received, asked].into_iter().flatten().min()
    };
    let shortest = [transfer.sender, transfer.receiver].into_iter().filter_map(of_end).min()?;
    Some(shortest.as_secs_f64())
}

/// Whole sampling intervals in the window, of the host with the fewest. Hosts without an agent are left out.
fn fewest_samples(run: &TrialResult, hosts: &BTreeSet<&HostName>) -> f64 {
    let own = run.series.iter().filter(|one| one.load == 0 && hosts.contains(&one.host));
    own.map(|one| whole_intervals(&one.series)).min().unwrap_or_default() as f64
}

/// Number of intervals in the window, without the short ones at its edges.
pub(super) fn whole_intervals(series: &Series) -> usize {
    let inside = series.spans().zip(series.in_window()).filter(|(_, inside)| *inside);
    let lengths: Vec<f64> = inside.map(|(span, _)| span.seconds()).collect();
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    lengths.into_iter().filter(|length| *length > longest / 2.0).count()
}

/// Difference between what the sender's counts let expect at the receiver and what that counted. `None` for requests, which count
/// only with their answers.
fn difference(run: &TrialResult, transfer: &Transfer<'_>) -> Option<f64> {
    let (sent, received) = (transfer.sender.sent.as_ref()?, transfer.receiver.received.as_ref()?);
    // The ends of a volume take different times for the same bytes.
    let (sent_bytes, received_bytes) = match run.trial.volume() {
        Some(_) => (sent.payload_bytes as f64, received.payload_bytes as f64),
        None => {
            let seconds = received.window.as_secs_f64();
            (rate(sent.payload_bytes, sent.window.get()) * seconds, received.payload_bytes as f64)
        }
    };
    let (expected, tolerance) = match transfer.loss {
        Some(_) => {
            let arrived = received.arrived as f64 / sent.messages.max(1) as f64;
            let message = sent.payload_bytes as f64 / sent.messages.max(1) as f64;
            (sent_bytes * arrived.min(1.0), 2.0 * message)
        }
        None => (sent_bytes, buffered_bytes(transfer.sender)),
    };
    let missing = ((expected - received_bytes).abs() - tolerance).max(0.0);
    Some(missing / expected.max(received_bytes).max(1.0))
}

/// Bytes that TCP's buffers at both ends may hold at an edge of the window.
fn buffered_bytes(sender: &EndCounts) -> f64 {
    let tcp = sender.flows.iter().filter_map(|flow| flow.tcp.as_ref());
    let window = tcp.map(|tcp| {
        let congestion = f64::from(tcp.congestion_window) * f64::from(tcp.mss);
        BUFFERED_WINDOWS * congestion + f64::from(tcp.peer_window)
    });
    window.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::tests::placed;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{FlowCounts, SessionSeries, TcpFlow, Transport};
    use linerate_units::Nanos;

    fn with_intervals(ends_us: &[i64]) -> TrialResult {
        let mut run = trial(9_000, 0);
        let window = Nanos::from_secs(1);
        let series = Series { window, from_us: -100_000, at_us: ends_us.to_vec(), ..Series::default() };
        run.series = vec![SessionSeries { load: 0, host: "b".into(), series }];
        run
    }

    #[test]
    fn only_whole_intervals_within_the_window_are_samples() {
        let run = with_intervals(&[0, 20_000, 120_000, 220_000, 320_000, 1_100_000]);
        assert_eq!(WindowFacts::of(&[&run]).samples, 3.0);
        assert_eq!(WindowFacts::of(&[&trial(9_000, 0)]).samples, 0.0, "nothing was sampled");
    }

    #[test]
    fn datagrams_that_the_sender_did_not_count_are_a_difference() {
        let difference = |received_bytes: u64| {
            let mut run = placed(trial(9_000, 1_000));
            let end = &mut paths_of(&mut run)[0];
            let (sent, window) = (end.client.sent.as_mut().expect("sent"), Nanos::from_secs(1));
            (sent.payload_bytes, sent.window) = (10_000_000, window);
            let received = end.server.received.as_mut().expect("received");
            (received.payload_bytes, received.window) = (received_bytes, window);
            WindowFacts::of(&[&run]).difference.expect("both ends count")
        };
        assert_eq!(difference(9_000_000), 0.0);
        assert!(difference(9_800_000) > 0.05);
        assert!(difference(7_000_000) > 0.05);
    }

    #[test]
    fn bytes_in_the_buffers_of_tcp_are_no_difference() {
        let difference = |received_bytes: u64| {
            let mut run = trial(9_000, 0);
            stream_of(&mut run.trial).net.transport = Transport::Tcp;
            let end = &mut paths_of(&mut run)[0];
            end.forward_loss = None;
            let tcp = TcpFlow { congestion_window: 100, mss: 1_000, peer_window: 100_000, ..TcpFlow::default() };
            end.client.flows = vec![FlowCounts { tcp: Some(tcp), ..FlowCounts::default() }];
            let (sent, window) = (end.client.sent.as_mut().expect("sent"), Nanos::from_secs(1));
            (sent.payload_bytes, sent.window) = (10_000_000, window);
            let received = end.server.received.as_mut().expect("received");
            (received.payload_bytes, received.window) = (received_bytes, window);
            WindowFacts::of(&[&run]).difference.expect("both ends count")
        };
        assert_eq!(difference(9_700_000), 0.0);
        assert!(difference(8_000_000) > 0.05);
    }
}
