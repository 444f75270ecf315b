//! The longest burst that comes back whole, and the buffer that it fills (RFC 2544 section 26.4, RFC 9004).
//!
//! Bursts are sent at the maximum frame rate, or as fast as the tester can. Where that is less, RFC 9004's formulas hold with
//! the rate that the bursts really had: they only need to know how fast frames came in while the device forwarded.
//!
//! A burst with a pause in it gives the device time to send on what it holds. Such a burst shows nothing and is sent again.

use super::throughput::{AT_LINE, AT_TESTER_LIMIT, lines};
use super::{bound, doubts, highest_load, sum, whole};
use crate::offered::{is_whole, of_number};
use crate::terms;
use linerate_model::{
    BackToBack, BufferTime, BurstLengths, Caveat, CaveatKind, DevicePlan, Firmness, FrameStreamCounts, FramesRun,
    FramesTask, Limit, Message, MessageValue, Throughput, message,
};
use linerate_search::Longest;
use linerate_units::{BitRate, FrameSize, Nanos, Ratio};

/// Bursts last no longer (RFC 2544 section 26.4 asks for trials of 2 s).
const LONGEST: Nanos = Nanos::from_secs(2);
/// Where the first search begins, frames.
const FIRST: u64 = 16;
/// How narrow each search gets.
const WIDTH: Ratio = Ratio::new(1, 200);
/// Repeats that RFC 2544 section 26.4 asks for.
const STANDARD_REPEATS: u32 = 50;
/// A burst with a pause in it is sent again so often at the most.
const PAUSED_RETRIES: u32 = 4;

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct BurstTest {
    size: FrameSize,
    throughput: Option<Throughput>,
    repeats: u32,
    maximum: u64,
    search: Longest,
    /// Frames per second of the search's longest whole burst.
    rate: Option<f64>,
    /// How often the burst that is due had a pause in it.
    paused: u32,
    found: Vec<Found>,
    caveats: Vec<Caveat>,
}

/// What one search found.
#[derive(Debug, Clone, Copy)]
struct Found {
    frames: u64,
    rate: Option<f64>,
    /// No burst was long enough to lose frames.
    unlimited: bool,
    firmness: Firmness,
}

impl BurstTest {
    /// The test at `size`, whose throughput is known; none if it was not found.
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, repeats: u32, throughput: Option<Throughput>) -> Self {
        // Calibrated or not, a tester sends no faster than the line; the time ends what it cannot send.
        let maximum = highest_load(plan, size, None).get().saturating_mul(LONGEST.get() / 1_000_000_000);
        let search = Longest::new(FIRST, FIRST, maximum, WIDTH);
        let (found, caveats) = (Vec::new(), Vec::new());
        Self { size, throughput, repeats, maximum, search, rate: None, paused: 0, found, caveats }
    }

    /// Why a buffer cannot be seen: nothing is ever held back in it.
    fn inapplicable(&self) -> Option<Message> {
        let Some(throughput) = self.throughput.as_ref().filter(|found| found.frames_per_s > 0.0) else {
            return Some(message!("burst-no-throughput", "without a throughput no buffer can be worked out"));
        };
        let rate = whole(throughput.frames_per_s);
        let at_tester_limit = throughput.tester_limit.as_ref().is_some_and(|limit| limit.share >= AT_TESTER_LIMIT);
        // RFC 9004 section 5.1: only sizes whose throughput is below the maximum frame rate are tested.
        match (throughput.limit, throughput.lost_at_frames_per_s) {
            (Limit::Wire, _) => Some(message!(
                "burst-line-rate",
                "the throughput of {rate} frames/s is the maximum frame rate: no burst fills a buffer",
                rate
            )),
            _ if at_tester_limit => Some(message!(
                "burst-at-tester-limit",
                "the tester cannot send much faster than the {rate} frames/s that the device carries: none of its \
                 bursts fills a buffer",
                rate = rate
            )),
            _ if !throughput.firmness.is_firm() => Some(message!(
                "burst-not-firm",
                "the throughput of {rate} frames/s is not firm, since the tester cannot send all that is due at \
                 higher rates: no buffer follows from it",
                rate = rate
            )),
            (_, None) => {
                Some(message!("burst-no-loss", "up to the highest rate, {rate} frames/s, no frame was lost", rate))
            }
            _ => None,
        }
    }

    /// The frames of the next burst, all directions together.
    pub(crate) fn next(&self) -> Option<u64> {
        let wanted = self.inapplicable().is_none() && (self.found.len() as u32) < self.repeats;
        wanted.then(|| self.search.next()).flatten()
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        if self.search.next().is_none() {
            return true;
        }
        for caveat in &run.result.caveats {
            if !self.caveats.contains(caveat) {
                self.caveats.push(caveat.clone());
            }
        }
        let share = run.counts.streams.iter().map(without_pause).fold(1.0, f64::min);
        if !is_whole(share) {
            self.paused += 1;
            if self.paused > PAUSED_RETRIES {
                self.end_search(Firmness::NotFirm { offered: Some(share) });
            }
            return self.next().is_none();
        }
        self.paused = 0;
        let (sent, received) = (sum(run, |stream| stream.sent), sum(run, |stream| stream.received));
        // With two directions an odd length is one frame more than is asked for.
        let asked: u64 = run.task.streams.iter().filter_map(|stream| stream.count).sum();
        let out_of_time = sent < asked && self.search.bounds().1.is_none();
        if out_of_time {
            self.maximum = self.maximum.min(sent);
            self.search.cap(sent);
        }
        let whole = received >= sent;
        if whole {
            self.rate = rate(run);
        }
        self.search.record(whole);
        if self.search.next().is_none() {
            self.end_search(Firmness::Firm);
        }
        self.next().is_none()
    }

    /// Puts down what the search has found, and begins the next one there.
    fn end_search(&mut self, firmness: Firmness) {
        let (lower, upper) = self.search.bounds();
        let frames = lower.unwrap_or(0);
        let unlimited = upper.is_none() && firmness.is_firm();
        self.found.push(Found { frames, rate: self.rate.take(), unlimited, firmness });
        self.paused = 0;
        let step = (frames * WIDTH.part / WIDTH.of).max(1);
        self.search = Longest::new(frames.max(1), step, self.maximum, WIDTH);
    }

    pub(crate) fn known(&self) -> Message {
        let (lower, upper) = self.search.bounds();
        message!(
            "known-burst",
            "burst {number} of {all}, between {lower} and {upper} frames",
            number = (self.found.len() as u32 + 1).min(self.repeats),
            all = self.repeats,
            lower = bound(lower),
            upper = bound(upper)
        )
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> BackToBack {
        let mut caveats = doubts(plan);
        caveats.extend(self.caveats.iter().cloned());
        let throughput = self.throughput.as_ref().map_or(0.0, |found| found.frames_per_s);
        let line = lines(plan, self.size);
        let sent = mean(self.found.iter().filter_map(|found| found.rate));
        let frames = lengths(self.found.iter().map(|found| found.frames).collect());
        let mut say = |kind, text: Message| caveats.push(Caveat::new(kind, text));
        let mut buffer = None;
        if let Some(why) = self.inapplicable() {
            say(CaveatKind::NotMeasured, message!("caveat-bursts-not-tried", "bursts were not tried: {why}", why));
        } else if let (Some(frames), Some(sent)) = (&frames, sent) {
            // RFC 9004 section 5.4, with the rate of the bursts in place of the maximum frame rate unless they reach it.
            let rate = line.filter(|line| sent >= AT_LINE * line).unwrap_or(sent);
            buffer = buffer_of(frames.mean, rate, throughput);
            if buffer.is_none() {
                let text = message!(
                    "caveat-bursts-too-slow",
                    "the bursts came at {rate} frames/s, no faster than the throughput of {throughput}: no buffer \
                     follows from their length",
                    rate = whole(rate),
                    throughput = whole(throughput)
                );
                say(CaveatKind::NotMeasured, text);
            } else if line.is_none_or(|line| rate < line) {
                let rate = whole(rate);
                let text = match line {
                    Some(line) => message!(
                        "caveat-bursts-below-line",
                        "the bursts came at {rate} frames/s, the tester's maximum (the line's is {line}); \
                         buffer times are calculated with that rate",
                        rate,
                        line = whole(line)
                    ),
                    None => message!(
                        "caveat-bursts-line-unknown",
                        "the bursts came at {rate} frames/s, the tester's maximum (the line's is unknown); \
                         buffer times are calculated with that rate",
                        rate
                    ),
                };
                say(CaveatKind::BelowOfferedRate, text);
            }
        } else if self.found.iter().any(|found| found.firmness.is_firm()) {
            say(
                CaveatKind::NotMeasured,
                message!("caveat-no-burst-came-back", "not even two frames in a row came back"),
            );
        }
        if self.found.iter().any(|found| found.unlimited) {
            let text = message!(
                "caveat-bursts-unlimited",
                "bursts of {longest} came back whole, and longer ones were not tried: the buffer may be larger",
                longest = LONGEST
            );
            say(CaveatKind::NotMeasured, text);
        }
        if !self.found.is_empty() && self.repeats < STANDARD_REPEATS {
            let text = message!(
                "caveat-few-searches",
                "the number of searches was {searches}; RFC 2544 section 26.4 asks for {standard_repeats}: give \
                 --repeats {standard_repeats} for a figure to be compared with others",
                searches = self.found.len(),
                standard_repeats = STANDARD_REPEATS
            );
            say(CaveatKind::ShortTrial, text);
        }
        let firmness = self.found.iter().fold(Firmness::Firm, |all, found| all.and(found.firmness));
        if let Some(share) = firmness.offered() {
            let text = message!(
                "caveat-bursts-held-up",
                "the tester was held up in bursts again and again, once for {share} of the time: the lengths are \
                 lower bounds; keep other work off its sending cores, and measure again",
                share = MessageValue::percent(1.0 - share, 1)
            );
            say(CaveatKind::BelowOfferedRate, text);
        }
        let verdict = match (self.inapplicable(), &frames) {
            (Some(_), _) => self.throughput.as_ref().map(|found| found.verdict.clone()),
            (None, Some(frames)) => {
                let unlimited = self.found.iter().any(|found| found.unlimited);
                let longest = frames.max;
                Some(of_number(terms::FRAMES_IN_A_ROW, longest, (!unlimited).then_some(longest + 1), firmness))
            }
            (None, None) => None,
        };
        BackToBack {
            frame_bytes: self.size.get(),
            throughput_frames_per_s: throughput,
            burst_frames_per_s: sent,
            line_frames_per_s: line,
            frames,
            firmness: self.throughput.as_ref().map_or(Firmness::Firm, |found| found.firmness).and(firmness),
            buffer,
            verdict,
            caveats,
        }
    }
}

/// Makes a trial send `frames`, shared between its streams: with no more between them than the line asks for, where that is
/// known, else without pause.
pub(crate) fn shape(trial: &mut FramesTask, line: Option<BitRate>, frames: u64) {
    let share = (frames / trial.streams.len().max(1) as u64).max(1);
    trial.time = LONGEST;
    for stream in &mut trial.streams {
        (stream.rate, stream.count) = (line.map(|line| stream.size.line_rate(line)), Some(share));
    }
}

/// The share of a burst's time in which its sender was not held up, 0 to 1.
fn without_pause(stream: &FrameStreamCounts) -> f64 {
    let (held_up, time) = (stream.held_up.as_secs_f64(), stream.send_time.as_secs_f64());
    if time > 0.0 { (1.0 - held_up / time).max(0.0) } else { 1.0 }
}

/// Frames per second within a burst; none of single frames.
fn rate(run: &FramesRun<'_>) -> Option<f64> {
    let of = |stream: &FrameStreamCounts| {
        let gaps = stream.sent.checked_sub(1).filter(|gaps| *gaps > 0)?;
        (stream.send_time.get() > 0).then(|| gaps as f64 / stream.send_time.as_secs_f64())
    };
    run.counts.streams.iter().map(of).sum()
}

/// RFC 9004 section 5.4. None where frames came in no faster than they went out.
fn buffer_of(burst: f64, rate: f64, throughput: f64) -> Option<BufferTime> {
    let implied_ns = burst / rate * 1e9;
    let corrected_ns = implied_ns * (1.0 - throughput / rate);
    (corrected_ns > 0.0).then(|| BufferTime { implied_ns, corrected_ns, frames: corrected_ns * rate / 1e9 })
}

fn lengths(values: Vec<u64>) -> Option<BurstLengths> {
    let (min, max) = (*values.iter().min()?, *values.iter().max()?);
    let mean = mean(values.iter().map(|frames| *frames as f64))?;
    let squares: f64 = values.iter().map(|frames| (*frames as f64 - mean).powi(2)).sum();
    let deviation = (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt();
    Some(BurstLengths { mean, min, max, deviation, values })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9004 section 3: 26,000 frames at a maximum of 14,880,952 frames/s are 1.75 ms.
    #[test]
    fn the_buffer_is_less_than_the_burst_by_what_was_forwarded() {
        let buffer = buffer_of(26_000.0, 14_880_952.0, 11_000_000.0).expect("a buffer");
        assert!((buffer.implied_ns - 1_747_200.0).abs() < 1_000.0, "{buffer:?}");
        assert!((buffer.corrected_ns / buffer.implied_ns - 3_880_952.0 / 14_880_952.0).abs() < 1e-9);
        assert!((buffer.frames - 26_000.0 * 3_880_952.0 / 14_880_952.0).abs() < 1e-6);
        assert_eq!(buffer_of(26_000.0, 1_000.0, 1_000.0), None);
    }

    #[test]
    fn lengths_have_a_spread() {
        let lengths = lengths(vec![270, 272, 268, 270]).expect("lengths");
        assert_eq!((lengths.mean, lengths.min, lengths.max), (270.0, 268, 272));
        assert!((lengths.deviation - (8.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(super::lengths(vec![5]).map(|one| one.deviation), Some(0.0));
        assert_eq!(super::lengths(Vec::new()), None);
    }
}
