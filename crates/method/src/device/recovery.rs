//! How long frames go on being lost after an overload (RFC 2544 section 26.5): 110 % of the throughput, then 50 % of it.

use super::{TesterLimit, directions, doubts, highest_load};
use crate::offered::Offer;
use linerate_model::{
    Caveat, CaveatKind, Confidence, DevicePlan, DirectionCounts, Firmness, FrameStreamCounts, FramesRun, FramesTask,
    Limit, Message, MessageValue, Recovery, Throughput, Verdict, message,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct RecoveryTest {
    size: FrameSize,
    throughput: u64,
    /// Of the throughput.
    of_throughput: Firmness,
    /// Of the runs so far.
    of_runs: Firmness,
    loads: Loads,
    time: Nanos,
    repeats: u32,
    runs: Vec<Run>,
    caveats: Vec<Caveat>,
}

/// The loads of a trial, one after the other, all directions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loads {
    pub(crate) overload: FrameRate,
    pub(crate) reduced: FrameRate,
    /// Each load's.
    pub(crate) time: Nanos,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    overload: f64,
    overload_lost: u64,
    reduced: f64,
    /// Nanoseconds from the fall of the load to the last loss; none if it went on to the end.
    recovery: Option<u64>,
}

impl RecoveryTest {
    pub(crate) fn new(
        plan: &DevicePlan,
        size: FrameSize,
        repeats: u32,
        throughput: Option<&Throughput>,
        tester_limit: Option<&TesterLimit>,
    ) -> Self {
        let found = throughput.map_or(0, |throughput| throughput.frames_per_s as u64);
        let share = |percent: u64| FrameRate::per_second((found.saturating_mul(percent) / 100).max(1));
        let loads = Loads {
            overload: share(110).min(highest_load(plan, size, tester_limit)),
            reduced: share(50),
            time: plan.final_time,
        };
        let of_throughput = throughput.map_or(Firmness::Firm, |throughput| throughput.firmness);
        Self {
            size,
            throughput: found,
            of_throughput,
            of_runs: Firmness::Firm,
            loads,
            time: plan.final_time,
            repeats,
            runs: Vec::new(),
            caveats: Vec::new(),
        }
    }

    /// Why the device cannot be overloaded.
    fn inapplicable(&self) -> Option<Message> {
        if self.throughput == 0 {
            return Some(message!("recovery-no-rate", "no rate is known that the device carries"));
        }
        (self.loads.overload.get() <= self.throughput).then(|| {
            message!(
                "recovery-no-overload",
                "the throughput of {rate} frames/s is all that the line or the tester can offer; nothing more \
                 overloads the device",
                rate = MessageValue::Count(self.throughput)
            )
        })
    }

    /// The loads of the next trial.
    pub(crate) fn next(&self) -> Option<Loads> {
        let wanted = self.inapplicable().is_none() && (self.runs.len() as u32) < self.repeats;
        wanted.then_some(self.loads)
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        // The streams of the overload come first, see `shape`.
        let half = run.counts.streams.len() / 2;
        let (overload, reduced) = run.counts.streams.split_at(half);
        let seconds = self.time.as_secs_f64();
        let offered = |streams: &[FrameStreamCounts]| {
            streams.iter().map(|stream| stream.sent as f64 / seconds.max(stream.send_time.as_secs_f64())).sum()
        };
        let lost = |stream: &FrameStreamCounts| stream.sent.saturating_sub(stream.received);
        self.runs.push(Run {
            overload: offered(overload),
            overload_lost: overload.iter().map(lost).sum(),
            reduced: offered(reduced),
            recovery: reduced.iter().map(last_loss).try_fold(0, |last, stream| stream.map(|stream| last.max(stream))),
        });
        let mut doubt = |caveat: Caveat| {
            if !self.caveats.contains(&caveat) {
                self.caveats.push(caveat);
            }
        };
        run.result.caveats.iter().cloned().for_each(&mut doubt);
        let offer = Offer::of(run);
        self.of_runs = self.of_runs.and(offer.firmness());
        if !offer.is_whole() {
            let text = message!(
                "caveat-both-loads-lower",
                "{offered}: both loads are those that it reached",
                offered = offer.told()
            );
            doubt(Caveat::new(CaveatKind::BelowOfferedRate, text));
        }
        if directions(run).iter().skip(half).any(|way: &DirectionCounts| way.reordered > 0) {
            doubt(Caveat::new(
                CaveatKind::PlaceUnsure,
                message!(
                    "caveat-recovery-out-of-order",
                    "frames arrived out of order: what seems lost last may have come later, so the times may be \
                     too long"
                ),
            ));
        }
        self.next().is_none()
    }

    pub(crate) fn known(&self) -> Message {
        message!(
            "known-recovery",
            "recovery {number} of {all} from {rate}",
            number = (self.runs.len() as u32 + 1).min(self.repeats),
            all = self.repeats,
            rate = self.loads.overload
        )
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> Recovery {
        let mut caveats = doubts(plan);
        caveats.extend(self.caveats.iter().cloned());
        let runs = self.runs.len().max(1) as f64;
        let values_ns: Vec<u64> = self.runs.iter().filter_map(|run| run.recovery).collect();
        let overload_lost = self.runs.iter().map(|run| run.overload_lost).sum();
        if let Some(why) = self.inapplicable() {
            caveats.push(Caveat::new(
                CaveatKind::NotMeasured,
                message!("caveat-recovery-not-measured", "recovery was not measured: {why}", why),
            ));
        } else if overload_lost == 0 {
            let text = message!(
                "caveat-overload-lost-nothing",
                "the overload lost no frame, so there was nothing to recover from: give a longer --time"
            );
            caveats.push(Caveat::new(CaveatKind::NotMeasured, text));
        }
        let unrecovered = self.runs.iter().filter(|run| run.recovery.is_none()).count() as u32;
        if unrecovered > 0 {
            let text = message!(
                "caveat-not-recovered",
                "in {unrecovered} of {runs} runs frames were lost until the end: give a longer --time",
                unrecovered,
                runs = self.runs.len()
            );
            caveats.push(Caveat::new(CaveatKind::NotMeasured, text));
        }
        let tester = |text: Message| Verdict::new(Limit::Tester, Confidence::Medium, vec![text]);
        let verdict = self.inapplicable().is_none().then(|| match overload_lost {
            _ if !self.of_runs.is_firm() => {
                tester(message!("recovery-loads-not-offered", "the tester did not offer both loads in every run"))
            }
            _ if !self.of_throughput.is_firm() => tester(message!(
                "recovery-throughput-not-firm",
                "the throughput that both loads follow from is not firm"
            )),
            0 => Verdict::new(
                Limit::OfferedLoad,
                Confidence::High,
                vec![message!("recovery-no-loss", "no frame was lost in the overload")],
            ),
            lost => {
                let text =
                    message!("recovery-overload", "the overload cost {lost} frames", lost = MessageValue::Count(lost));
                Verdict::new(Limit::Device, Confidence::High, vec![text])
            }
        });
        Recovery {
            frame_bytes: self.size.get(),
            throughput_frames_per_s: self.throughput as f64,
            overload_frames_per_s: self.runs.iter().map(|run| run.overload).sum::<f64>() / runs,
            firmness: self.of_throughput.and(self.of_runs),
            overload_lost,
            reduced_frames_per_s: self.runs.iter().map(|run| run.reduced).sum::<f64>() / runs,
            mean_ns: (!values_ns.is_empty()).then(|| values_ns.iter().sum::<u64>() as f64 / values_ns.len() as f64),
            values_ns,
            unrecovered,
            verdict,
            caveats,
        }
    }
}

/// Nanoseconds from the first frame of a stream to the last that was lost, zero without loss; none if frames were lost until
/// the end.
pub(crate) fn last_loss(stream: &FrameStreamCounts) -> Option<u64> {
    match stream.last_gap {
        // What was overtaken came later after all.
        Some(gap) if stream.sent > stream.received => (gap < stream.send_time).then_some(gap.get()),
        _ => Some(0),
    }
}

/// Makes a trial send one load and then the other: every stream twice, the overload's first.
pub(crate) fn shape(trial: &mut FramesTask, loads: Loads) {
    let share = |load: FrameRate| FrameRate::per_second((load.get() / trial.streams.len().max(1) as u64).max(1));
    let (overload, reduced) = (share(loads.overload), share(loads.reduced));
    let mut second = trial.streams.clone();
    for stream in &mut trial.streams {
        (stream.rate, stream.time) = (Some(overload), Some(loads.time));
    }
    for stream in &mut second {
        (stream.rate, stream.after, stream.time) = (Some(reduced), loads.time, Some(loads.time));
    }
    trial.streams.extend(second);
    trial.time = loads.time + loads.time;
}
