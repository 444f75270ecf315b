//! Counts that no host can have made: those of an agent with a fault, or of something else that answers in its place. Figures
//! drawn from them would be nonsense, and sums of them would overflow.

use linerate_model::{CopyCounts, EndCounts, FramePartCounts, HostCounts, RoleCounts};
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
        sent.chain(stream.arrived.iter().map(|arrived| arrived.received.max(arrived.bytes)))
    });
    (counted.max().unwrap_or_default(), false)
}

fn copy(part: &CopyCounts) -> Extremes {
    extremes(part.sides.iter().map(|side| (side.bytes.max(side.files), side.time)))
}
