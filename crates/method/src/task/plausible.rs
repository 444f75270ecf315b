//! Counts that no host can have made: those of an agent with a fault, or of something else that answers in its place. Figures
//! drawn from them would be nonsense, and sums of them would overflow.

use linerate_model::{CopyCounts, EndCounts, FramePartCounts, HopsEnd, HostCounts, RoleCounts};
use linerate_units::Nanos;

/// No trial counts so much of anything: 72 petabytes take a day at 6 Tbit/s.
const MOST: u64 = 1 << 56;

/// Returns why the counts of a host cannot be; none if they can.
pub(super) fn impossible(counts: &HostCounts) -> Option<String> {
    counts.roles.iter().find_map(|role| {
        let (largest, timeless) = match role {
            RoleCounts::Flows(end) => flows(end),
            RoleCounts::Frames(part) => frames(part),
            RoleCounts::Copy(part) => copy(part),
            RoleCounts::Hops(end) => hops(end),
        };
        if largest > MOST {
            return Some(format!(
                "its agent counted {largest} of something, which cannot be; use the same linerate everywhere"
            ));
        }
        timeless.then(|| {
            String::from("its agent counted something in no time, which cannot be; use the same linerate everywhere")
        })
    })
}

/// The largest number, and whether something was counted in no time.
type Extremes = (u64, bool);

fn extremes(counted: impl IntoIterator<Item = (u64, Nanos)>) -> Extremes {
    counted.into_iter().fold((0, false), |(largest, timeless), (number, time)| {
        (largest.max(number), timeless || number > 0 && time == Nanos::default())
    })
}

fn flows(end: &EndCounts) -> Extremes {
    let sent = end.sent.iter().map(|sent| (sent.payload_bytes.max(sent.messages).max(sent.not_sent), sent.window));
    let received = end.received.iter().map(|got| (got.payload_bytes.max(got.messages).max(got.arrived), got.window));
    let asked =
        end.transactions.iter().map(|asked| (asked.completed.max(asked.failed).max(asked.not_sent), asked.window));
    extremes(sent.chain(received).chain(asked))
}

fn frames(part: &FramePartCounts) -> Extremes {
    // Rates of frames are taken over the trial's own time: one frame alone takes none.
    let counted = part.streams.iter().flat_map(|stream| {
        let sent = stream.sent.iter().map(|sent| sent.sent.max(sent.intended).max(sent.bytes));
        let floods = stream.flooded_at.iter().map(|flood| flood.frames);
        sent.chain(stream.arrived.iter().map(|arrived| arrived.received.max(arrived.bytes))).chain(floods)
    });
    (counted.max().unwrap_or_default(), false)
}

fn hops(end: &HopsEnd) -> Extremes {
    let hops = end.way.iter().flat_map(|way| &way.hops).map(|hop| hop.sent.max(hop.answered));
    (hops.chain([end.reflected]).max().unwrap_or_default(), false)
}

fn copy(part: &CopyCounts) -> Extremes {
    extremes(part.sides.iter().map(|side| (side.bytes.max(side.files), side.time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{CopySide, FrameEngine, FrameStreamPart, FramesSent, Observation, Received, Transactions};

    fn why(role: RoleCounts) -> Option<String> {
        let (observation, caveats, remains) = (Observation::default(), Vec::new(), Vec::new());
        impossible(&HostCounts {
            roles: vec![role],
            observation,
            series: linerate_model::Series::default(),
            started_unix_ns: 0,
            caveats,
            remains,
        })
    }

    fn received(payload_bytes: u64, window: Nanos) -> RoleCounts {
        let received = Some(Received { payload_bytes, window, ..Received::default() });
        RoleCounts::Flows(Box::new(EndCounts { received, ..EndCounts::default() }))
    }

    #[test]
    fn numbers_that_no_host_counts_are_told_from_large_ones() {
        let second = Nanos::from_secs(1);
        assert_eq!(why(received(MOST, second)), None);
        assert!(why(received(MOST + 1, second)).is_some_and(|why| why.contains("72057594037927937")));
        let sent = FramesSent { intended: u64::MAX, ..FramesSent::default() };
        let streams = vec![FrameStreamPart { sent: Some(sent), ..FrameStreamPart::default() }];
        assert!(why(RoleCounts::Frames(FramePartCounts { engine: FrameEngine::Xdp, streams })).is_some());
    }

    #[test]
    fn something_takes_time_and_nothing_takes_none() {
        let none = Nanos::default();
        assert_eq!(why(received(0, none)), None);
        assert!(why(received(1, none)).is_some_and(|why| why.contains("in no time")));
        let transactions = Some(Transactions { completed: 1, ..Transactions::default() });
        assert!(why(RoleCounts::Flows(Box::new(EndCounts { transactions, ..EndCounts::default() }))).is_some());
        let sides = |bytes| vec![CopySide { bytes, ..CopySide::default() }];
        let copy = |bytes| RoleCounts::Copy(CopyCounts { sides: sides(bytes), faults: Vec::new(), faults_total: 0 });
        assert_eq!((why(copy(0)).is_some(), why(copy(1)).is_some()), (false, true));
        // One frame alone takes no time from the first to the last.
        let sent = FramesSent { intended: 1, sent: 1, bytes: 64, ..FramesSent::default() };
        let streams = vec![FrameStreamPart { sent: Some(sent), ..FrameStreamPart::default() }];
        assert_eq!(why(RoleCounts::Frames(FramePartCounts { engine: FrameEngine::Xdp, streams })), None);
    }
}
