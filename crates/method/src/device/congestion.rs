//! Head-of-line blocking and back pressure (RFC 2889 section 5.5).
//!
//! In each group of four ports the first sender offers the rate of its line, alternately to the uncongested and to the
//! congested port; the second offers the rate of its line to the congested port, which is so overloaded to 150 %. A device
//! without either property loses a third of the frames for the congested port, and no other frame.

use super::load;
use crate::offered::{Offer, had_room};
use linerate_model::{
    Caveat, CaveatKind, Confidence, Congestion, CongestionGroup, DevicePlan, Firmness, FrameEngine, FrameStreamCounts,
    FramesRun, FramesTask, Limit, Message, MessageValue, Presence, TrialResult, Verdict, message,
};
use linerate_units::{FrameRate, FrameSize};

/// Streams of a group: to the uncongested port, and from each sender to the congested port.
const GROUP: usize = 3;
/// Share of the frames of a stream that chance or a pause of the machine may cost. Head-of-line blocking and overload cost
/// a third.
const SMALL: f64 = 0.01;
/// Share of the intended load that a sender must lack for its device to have slowed it down.
const SLOWED: f64 = 0.1;

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct CongestionTest {
    size: FrameSize,
    measured: Option<Box<TrialResult>>,
}

impl CongestionTest {
    pub(crate) fn new(size: FrameSize) -> Self {
        Self { size, measured: None }
    }

    /// Returns whether the trial is still to be run.
    pub(crate) fn is_due(&self) -> bool {
        self.measured.is_none()
    }

    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        self.measured = Some(Box::new(run.result.clone()));
        true
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> Option<Congestion> {
        let run = self.measured.as_deref().and_then(TrialResult::frames)?;
        let groups: Vec<CongestionGroup> = run
            .counts
            .streams
            .chunks_exact(GROUP)
            .zip(plan.directions.chunks_exact(GROUP))
            .map(|(counts, pairs)| group(&run, counts, [pairs[0].to, pairs[1].to]))
            .collect();
        let offer = Offer::of(&run);
        let room = had_room(run.result);
        let held_up = offer.held_up.is_some();
        let head_of_line = all(groups.iter().map(|group| head_of_line(group, room, held_up)));
        let back_pressure = all(groups.iter().map(|group| back_pressure(group, room, held_up)));
        let slowed_by_device = back_pressure == Presence::Present;
        let mut caveats = run.result.caveats.clone();
        caveats.extend(load::doubts(run.result.device_load.as_ref()));
        if run.counts.engine == FrameEngine::Xdp {
            let text = message!(
                "caveat-congestion-xdp",
                "XDP counts frames as sent that a stopped port dropped: back pressure looks like loss; leave out --engine xdp"
            );
            caveats.push(Caveat::new(CaveatKind::PlaceUnsure, text));
        }
        Some(Congestion {
            frame_bytes: self.size.get(),
            head_of_line,
            back_pressure,
            firmness: if slowed_by_device { Firmness::Firm } else { offer.firmness() },
            device_load: run.result.device_load.clone(),
            verdict: verdict(&groups, head_of_line, back_pressure),
            groups,
            caveats,
        })
    }
}

/// Sets the rates of a congestion trial: each sender offers the rate of its line.
pub(super) fn shape(task: &mut FramesTask, plan: &DevicePlan, size: FrameSize) {
    task.line = plan.line;
    let line = plan.line.map_or(1, |line| size.line_rate(line).get());
    for (index, stream) in task.streams.iter_mut().enumerate() {
        let is_alone = index % GROUP == GROUP - 1;
        let rate = if is_alone { line } else { line / 2 };
        stream.rate = Some(FrameRate::per_second(rate.max(1)));
        stream.after = linerate_units::Nanos::default();
        // The first sender alternates between its two receivers.
        if index % GROUP == 1 {
            stream.after = linerate_units::Nanos::new(1_000_000_000 / line.max(1));
        }
    }
    // Packet sockets see PAUSE frames and full queues, and send the frames later.
    if task.engine == FrameEngine::Auto {
        task.engine = FrameEngine::PacketSocket;
    }
}

fn group(run: &FramesRun<'_>, counts: &[FrameStreamCounts], [uncongested, congested]: [u16; 2]) -> CongestionGroup {
    let port = |index: u16| run.task.ports.get(usize::from(index)).map(ToString::to_string).unwrap_or_default();
    let seconds = run.task.time.as_secs_f64();
    let (own, others) = (&counts[0], &counts[1..]);
    let sum = |count: fn(&FrameStreamCounts) -> u64| others.iter().map(count).sum::<u64>();
    let congested_received = sum(|stream| stream.received);
    let paused = counts.iter().map(|stream| stream.paused).max().unwrap_or_default();
    CongestionGroup {
        uncongested: port(uncongested),
        congested: port(congested),
        uncongested_intended: own.intended,
        uncongested_sent: own.sent,
        uncongested_received: own.received,
        congested_intended: sum(|stream| stream.intended),
        congested_sent: sum(|stream| stream.sent),
        congested_received,
        uncongested_frames_per_s: own.received as f64 / seconds,
        congested_frames_per_s: congested_received as f64 / seconds,
        paused_share: (paused.as_secs_f64() / seconds).min(1.0),
    }
}

/// Returns the share of the frames sent that did not arrive.
fn loss(sent: u64, received: u64) -> f64 {
    sent.saturating_sub(received) as f64 / sent.max(1) as f64
}

/// Returns whether the loss at the uncongested port shows head-of-line blocking.
///
/// Blocking is absent only if the other port was congested: by the whole load of both senders, or by back pressure.
fn head_of_line(group: &CongestionGroup, had_room: bool, held_up: bool) -> Presence {
    let lost = loss(group.uncongested_sent, group.uncongested_received);
    let is_overloaded = loss(group.congested_sent, group.congested_received) > SMALL && !is_slowed(group);
    let is_congested = is_overloaded || back_pressure(group, had_room, held_up) == Presence::Present;
    match lost {
        _ if group.uncongested_sent == 0 || group.uncongested_received == 0 => Presence::CannotTell,
        lost if lost > SMALL && had_room => Presence::Present,
        lost if lost == 0.0 && is_congested => Presence::Absent,
        _ => Presence::CannotTell,
    }
}

/// Returns whether the congested port shows back pressure: no loss, because the senders were slowed down.
fn back_pressure(group: &CongestionGroup, had_room: bool, held_up: bool) -> Presence {
    let lost = loss(group.congested_sent, group.congested_received);
    match lost {
        _ if group.congested_sent == 0 || group.congested_received == 0 => Presence::CannotTell,
        lost if lost > SMALL && had_room => Presence::Absent,
        lost if lost == 0.0 && group.paused_share > 0.0 && is_slowed(group) => Presence::Present,
        // The port's own queue was full although the tester was not delayed.
        lost if lost == 0.0 && !held_up && is_slowed(group) => Presence::Present,
        _ => Presence::CannotTell,
    }
}

fn is_slowed(group: &CongestionGroup) -> bool {
    (group.congested_sent as f64) < group.congested_intended as f64 * (1.0 - SLOWED)
}

/// Returns the presence that all groups agree on.
fn all(found: impl Iterator<Item = Presence>) -> Presence {
    found.reduce(|one, other| if one == other { one } else { Presence::CannotTell }).unwrap_or(Presence::CannotTell)
}

fn verdict(groups: &[CongestionGroup], head_of_line: Presence, back_pressure: Presence) -> Verdict {
    let mut evidence = vec![presence_of_blocking(head_of_line), presence_of_back_pressure(back_pressure)];
    for group in groups {
        evidence.push(message!(
            "congestion-group",
            "{uncongested_lost} of {uncongested_sent} frames to the uncongested port {uncongested} were lost, and \
             {congested_lost} of {congested_sent} to the congested port {congested}",
            uncongested_lost = MessageValue::Count(group.uncongested_sent.saturating_sub(group.uncongested_received)),
            uncongested_sent = MessageValue::Count(group.uncongested_sent),
            uncongested = group.uncongested.clone(),
            congested_lost = MessageValue::Count(group.congested_sent.saturating_sub(group.congested_received)),
            congested_sent = MessageValue::Count(group.congested_sent),
            congested = group.congested.clone()
        ));
    }
    let decided = head_of_line != Presence::CannotTell && back_pressure != Presence::CannotTell;
    let mut verdict = match decided {
        true => Verdict::new(Limit::Device, Confidence::Medium, evidence),
        false => Verdict::new(Limit::CannotTell, Confidence::Low, evidence),
    };
    let not_congested =
        groups.iter().any(|group| !is_slowed(group) && loss(group.congested_sent, group.congested_received) <= SMALL);
    if not_congested {
        verdict.next.push(message!(
            "congestion-not-congested",
            "the congested port took 150 % of the line rate: check --line, or give more load"
        ));
    }
    verdict
}

fn presence_of_blocking(presence: Presence) -> Message {
    match presence {
        Presence::Present => message!("congestion-blocking", "head-of-line blocking is present"),
        Presence::Absent => message!("congestion-no-blocking", "head-of-line blocking is absent"),
        Presence::CannotTell => message!("congestion-blocking-open", "head-of-line blocking was not decided"),
    }
}

fn presence_of_back_pressure(presence: Presence) -> Message {
    match presence {
        Presence::Present => message!("congestion-back-pressure", "back pressure is present"),
        Presence::Absent => message!("congestion-no-back-pressure", "back pressure is absent"),
        Presence::CannotTell => message!("congestion-back-pressure-open", "back pressure was not decided"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group that intends 1,000 frames for the uncongested port and 3,000 for the congested one.
    fn group(uncongested: [u64; 2], congested: [u64; 2], paused_share: f64) -> CongestionGroup {
        CongestionGroup {
            uncongested: "p2".to_owned(),
            congested: "p3".to_owned(),
            uncongested_intended: 1_000,
            uncongested_sent: uncongested[0],
            uncongested_received: uncongested[1],
            congested_intended: 3_000,
            congested_sent: congested[0],
            congested_received: congested[1],
            uncongested_frames_per_s: 0.0,
            congested_frames_per_s: 0.0,
            paused_share,
        }
    }

    fn found(group: &CongestionGroup, held_up: bool) -> (Presence, Presence) {
        (head_of_line(group, true, held_up), back_pressure(group, true, held_up))
    }

    #[test]
    fn output_queues_lose_a_third_at_the_congested_port_only() {
        let group = group([1_000, 1_000], [3_000, 2_000], 0.0);
        assert_eq!(found(&group, false), (Presence::Absent, Presence::Absent));
    }

    #[test]
    fn shared_queue_loses_frames_for_the_uncongested_port() {
        let group = group([1_000, 660], [3_000, 2_000], 0.0);
        assert_eq!(found(&group, false), (Presence::Present, Presence::Absent));
        assert_eq!(
            head_of_line(&group, false, false),
            Presence::CannotTell,
            "the tester's own sockets may have lost them"
        );
    }

    #[test]
    fn slowed_senders_show_back_pressure() {
        let slowed = group([800, 800], [2_000, 2_000], 0.3);
        assert_eq!(found(&slowed, true), (Presence::Absent, Presence::Present));
        let slow_tester = group([800, 800], [2_000, 2_000], 0.0);
        assert_eq!(found(&slow_tester, true), (Presence::CannotTell, Presence::CannotTell));
        // Half of the load overflows the queue of one input, and not that of the other.
        let slow_and_lossy = group([800, 800], [2_000, 1_900], 0.0);
        assert_eq!(found(&slow_and_lossy, true), (Presence::CannotTell, Presence::Absent));
    }

    #[test]
    fn port_that_takes_everything_was_not_congested() {
        let group = group([1_000, 1_000], [3_000, 3_000], 0.0);
        assert_eq!(found(&group, false), (Presence::CannotTell, Presence::CannotTell));
        let verdict = verdict(&[group], Presence::CannotTell, Presence::CannotTell);
        assert!(verdict.limit == Limit::CannotTell && verdict.next[0].to_string().contains("--line"));
    }

    #[test]
    fn few_lost_frames_decide_nothing() {
        let group = group([1_000, 995], [3_000, 2_000], 0.0);
        assert_eq!(head_of_line(&group, true, false), Presence::CannotTell);
    }
}
