//! A trial seen as transfers: who sent to whom over which path, whichever end opened the connection.

use linerate_model::{Direction, EndCounts, HostName, Loss, Path, PathCounts, StreamTask, Task, TrialResult};

/// One path in one direction.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    /// The path's index.
    pub path: usize,
    /// It goes from the client to the server.
    pub forward: bool,
    /// The sending (transactions: the asking) host.
    pub from: &'a HostName,
    /// The receiving (transactions: the answering) host.
    pub to: &'a HostName,
    /// The sending end's counts.
    pub sender: &'a EndCounts,
    /// The receiving end's counts.
    pub receiver: &'a EndCounts,
    /// What became of its datagrams; none but for UDP streams.
    pub loss: Option<&'a Loss>,
}

impl Transfer<'_> {
    /// Payload bits per second at the receiver; zero if it counted nothing.
    pub fn payload_bps(&self) -> f64 {
        self.receiver.received.as_ref().map_or(0.0, |r| rate(r.payload_bytes * 8, r.window.get()))
    }
}

/// `count` in `window_ns`, per second; zero for an empty window.
pub(crate) fn rate(count: u64, window_ns: u64) -> f64 {
    if window_ns == 0 { 0.0 } else { count as f64 * 1e9 / window_ns as f64 }
}

/// The transfers of a trial. Transactions count as one transfer a path, from the asking host to the answering one. A trial
/// with frames, a copy and a failed trial have none.
pub fn transfers(result: &TrialResult) -> Vec<Transfer<'_>> {
    transfers_of(result.trial.task(), result.paths())
}

/// The same of the counts of any load.
pub(crate) fn transfers_of<'a>(task: &'a Task, paths: &'a [PathCounts]) -> Vec<Transfer<'a>> {
    match task {
        Task::Stream(stream) => stream_transfers(stream, paths),
        // The data of calls go where each call says; the asking end stands for the sender. Frames and copies have no paths.
        _ => between(task.paths(), paths, Direction::Send),
    }
}

/// The same of a stream.
pub(crate) fn stream_transfers<'a>(stream: &'a StreamTask, paths: &'a [PathCounts]) -> Vec<Transfer<'a>> {
    between(&stream.paths, paths, stream.direction)
}

fn between<'a>(paths: &'a [Path], counted: &'a [PathCounts], direction: Direction) -> Vec<Transfer<'a>> {
    let mut all = Vec::new();
    for (index, (path, ends)) in paths.iter().zip(counted).enumerate() {
        if direction != Direction::Receive {
            all.push(Transfer {
                path: index,
                forward: true,
                from: &path.client,
                to: path.server.name(),
                sender: &ends.client,
                receiver: &ends.server,
                loss: ends.forward_loss.as_ref(),
            });
        }
        if direction != Direction::Send {
            all.push(Transfer {
                path: index,
                forward: false,
                from: path.server.name(),
                to: &path.client,
                sender: &ends.server,
                receiver: &ends.client,
                loss: ends.backward_loss.as_ref(),
            });
        }
    }
    all
}

/// Transactions per second of one path; zero if none were counted.
pub(crate) fn transactions_per_s(transfer: &Transfer<'_>) -> f64 {
    transfer.sender.transactions.as_ref().map_or(0.0, |t| rate(t.completed, t.window.get()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::task::figure;
    use linerate_model::*;
    use linerate_units::{ByteCount, Nanos};
    use std::collections::BTreeMap;

    /// A UDP stream of 1,000-byte datagrams from a to b.
    pub(crate) fn spec() -> Trial {
        let stream = StreamTask {
            paths: vec![Path::between("a", "b")],
            offload: false,
            ..StreamTask::plain(Transport::Udp, ByteCount::new(1000))
        };
        let timing = Timing::of(Nanos::from_millis(200), Nanos::from_secs(1));
        Trial::new("udp 1000", Task::Stream(stream), timing)
    }

    /// One second of `spec()` in which `arrived` of `arrived + lost` datagrams came through.
    pub(crate) fn trial(arrived: u64, lost: u64) -> TrialResult {
        let window = Nanos::from_secs(1);
        let sent = Sent { window, payload_bytes: (arrived + lost) * 1000, messages: arrived + lost, ..Sent::default() };
        let received =
            Received { window, payload_bytes: arrived * 1000, messages: arrived, arrived, ..Received::default() };
        let eth0 = || Some("eth0".to_owned());
        let client = EndCounts { interface: eth0(), sent: Some(sent), ..EndCounts::default() };
        let server = EndCounts { interface: eth0(), received: Some(received), ..EndCounts::default() };
        let ends = PathCounts { client, server, forward_loss: None, backward_loss: None };
        TrialResult {
            trial: spec(),
            attempt: 0,
            standing: Standing::Counted,
            started_unix_ns: 0,
            span: None,
            counts: vec![Counts::Flows(vec![ends])],
            hosts: BTreeMap::from([("a".into(), Observation::default()), ("b".into(), Observation::default())]),
            series: Vec::new(),
            clocks: BTreeMap::new(),
            outages: Vec::new(),
            device_load: None,
            caveats: Vec::new(),
        }
    }

    /// The measured load's paths, to be changed.
    pub(crate) fn paths_of(result: &mut TrialResult) -> &mut Vec<PathCounts> {
        match result.counts.first_mut() {
            Some(Counts::Flows(paths)) => paths,
            other => panic!("no flows: {other:?}"),
        }
    }

    /// The measured stream, to be changed.
    pub(crate) fn stream_of(trial: &mut Trial) -> &mut StreamTask {
        match trial.task_mut() {
            Task::Stream(stream) => stream,
            other => panic!("no stream: {other:?}"),
        }
    }

    #[test]
    fn both_directions_are_two_transfers() {
        let mut both = trial(1000, 0);
        stream_of(&mut both.trial).direction = Direction::Both;
        let names: Vec<_> = transfers(&both).iter().map(|t| (t.from.0.clone(), t.to.0.clone())).collect();
        assert_eq!(names, [("a".into(), "b".into()), ("b".into(), "a".into())]);
        assert_eq!(figure(&both), 8e6);
    }
}
