//! A trial seen as transfers: who sent to whom over which path, whatever end opened the connection.

use linerate_model::{Direction, EndResult, HostName, Loss, TrialResult, Workload};

/// One path in one direction.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    /// The path's index.
    pub path: usize,
    /// It goes from the opener to the listener.
    pub forward: bool,
    /// The sending (transactions: the asking) host.
    pub from: &'a HostName,
    /// The receiving (transactions: the answering) host.
    pub to: &'a HostName,
    /// The sending end's counts.
    pub sender: &'a EndResult,
    /// The receiving end's counts.
    pub receiver: &'a EndResult,
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

/// The transfers of a trial. Transactions count as one transfer a path, from the asking host to the answering one.
pub fn transfers(result: &TrialResult) -> Vec<Transfer<'_>> {
    let direction = match &result.spec.workload {
        Workload::Stream(stream) => stream.direction,
        // The data of calls go where each call says; the asking end stands for the sender.
        Workload::Transact(_) | Workload::Rpc(_) | Workload::Nfs(_) => Direction::Send,
    };
    let mut all = Vec::new();
    for (index, (path, ends)) in result.spec.paths.iter().zip(&result.paths).enumerate() {
        if direction != Direction::Receive {
            all.push(Transfer {
                path: index,
                forward: true,
                from: &path.opener,
                to: &path.listener,
                sender: &ends.opener,
                receiver: &ends.listener,
                loss: ends.forward_loss.as_ref(),
            });
        }
        if direction != Direction::Send {
            all.push(Transfer {
                path: index,
                forward: false,
                from: &path.listener,
                to: &path.opener,
                sender: &ends.listener,
                receiver: &ends.opener,
                loss: ends.backward_loss.as_ref(),
            });
        }
    }
    all
}

/// The one figure of a trial that repeats are judged by: payload bit/s at the receivers, or transactions per second.
pub fn figure(result: &TrialResult) -> f64 {
    match &result.spec.workload {
        Workload::Stream(_) => transfers(result).iter().map(Transfer::payload_bps).sum(),
        Workload::Transact(_) | Workload::Rpc(_) | Workload::Nfs(_) => {
            transfers(result).iter().map(transactions_per_s).sum()
        }
    }
}

/// Transactions per second of one path; zero if none were counted.
pub(crate) fn transactions_per_s(transfer: &Transfer<'_>) -> f64 {
    transfer.sender.transactions.as_ref().map_or(0.0, |t| rate(t.completed, t.window.get()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use linerate_model::*;
    use linerate_units::{ByteCount, Nanos};
    use std::collections::BTreeMap;

    /// A UDP stream of 1,000-byte datagrams from a to b.
    pub(crate) fn spec() -> TrialSpec {
        TrialSpec {
            name: "udp 1000".into(),
            paths: vec![Path { opener: "a".into(), listener: "b".into() }],
            workload: Workload::Stream(StreamSpec {
                transport: Transport::Udp,
                ip: IpVersion::V4,
                message_bytes: ByteCount::new(1000),
                flows: 1,
                direction: Direction::Send,
                offered: None,
                offload: false,
                send_by: SendBy::Auto,
                receive_by: ReceiveBy::Copy,
                socket: SocketOptions::default(),
            }),
            timing: Timing { warmup: Nanos::from_millis(200), measure: Nanos::from_secs(1) },
            proves: None,
            probe: None,
        }
    }

    /// One second of `spec()` in which `arrived` of `arrived + lost` datagrams came through.
    pub(crate) fn trial(arrived: u64, lost: u64) -> TrialResult {
        let window = Nanos::from_secs(1);
        let sent = Sent { window, payload_bytes: (arrived + lost) * 1000, messages: arrived + lost, ..Sent::default() };
        let received =
            Received { window, payload_bytes: arrived * 1000, messages: arrived, arrived, ..Received::default() };
        let eth0 = || Some("eth0".to_owned());
        let opener = EndResult { interface: eth0(), sent: Some(sent), ..EndResult::default() };
        let listener = EndResult { interface: eth0(), received: Some(received), ..EndResult::default() };
        TrialResult {
            spec: spec(),
            started_unix_ns: 0,
            paths: vec![PathResult { opener, listener, forward_loss: None, backward_loss: None }],
            hosts: BTreeMap::from([("a".into(), Observation::default()), ("b".into(), Observation::default())]),
            probe: None,
            caveats: Vec::new(),
        }
    }

    #[test]
    fn both_directions_are_two_transfers() {
        let mut both = trial(1000, 0);
        if let Workload::Stream(stream) = &mut both.spec.workload {
            stream.direction = Direction::Both;
        }
        let names: Vec<_> = transfers(&both).iter().map(|t| (t.from.0.clone(), t.to.0.clone())).collect();
        assert_eq!(names, [("a".into(), "b".into()), ("b".into(), "a".into())]);
        assert_eq!(figure(&both), 8e6);
    }
}
