//! Set-ups drawn from the whole space of options. No rule can have been tuned on them, unlike on grids.
//!
//! An independent model ([`model`]) computes the limits that may bind. A verdict with high confidence must name one of
//! them, at its place. The figure must not exceed the model's bound, and must agree with the counters of the receiver's
//! interface ([`counters`]).

mod counters;
mod model;
mod space;

use super::interval::{Interval, is_beyond_chance};
use super::measure::Laboratory;
use super::results::Results;
use super::verdict::Verdict;
use crate::busy::BusyLoop;
use crate::process::check_interrupt;
use anyhow::{Context, Result, bail};
use counters::{Counters, Samples};
use model::Expected;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use space::{Setup, Task};
use std::fmt;

/// Tolerated difference between a figure and the model or the counters, as a share.
const TOLERANCE: f64 = 0.03;

/// Share of the figures that may be wrong.
const WRONG_FIGURES: f64 = 0.02;

/// Share of the verdicts that may be wrong with high confidence by chance. The goal is 0.
const SURELY_WRONG: f64 = 0.001;

/// Share of the draws that may fail by chance, for example a connection over a path with high loss. The goal is 0.
const NOT_MEASURED: f64 = 0.01;

/// Outcome of one draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Drawn {
    #[serde(flatten)]
    verdict: Option<Verdict>,
    /// Result in bit/s of payload.
    figure: Option<f64>,
    /// Rate at the receiver's interface in the same window, in bit/s of payload.
    counted: Option<f64>,
    /// Tolerated difference between the two in bit/s, in addition to [`TOLERANCE`].
    allowance: f64,
    /// Share of the data that arrived twice, or arrived and was dropped by the receiving host.
    surplus: f64,
}

/// Grade of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    Right,
    /// The verdict names no limit, or the record has no verdict.
    Open,
    Wrong,
    SurelyWrong,
}

/// Result of checking a figure against the model and the counters.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Agrees,
    AboveBound,
    Differs,
    /// The counters do not cover this task, or there is no figure.
    Unknown,
}

/// Counts over all draws.
#[derive(Debug, Default)]
struct Counts {
    judged: [u32; 4],
    figures: u32,
    figures_wrong: u32,
    not_measured: u32,
}

/// Measures the draws `numbers` of a seed. Prints each failure with the command that repeats it, then the counts.
///
/// # Errors
///
/// A goal is missed. With `by_chance`, only if it is missed by more than chance explains: one failure of few draws
/// proves little.
pub(super) fn run(
    laboratory: &Laboratory<'_>,
    results: &mut Option<Results<Drawn>>,
    seed: u64,
    numbers: std::ops::Range<u32>,
    by_chance: bool,
) -> Result<()> {
    let mut counts = Counts::default();
    let all = numbers.len();
    for number in numbers {
        let setup = Setup::draw(seed, number);
        let name = format!("random/{seed}/{number}");
        let kept = results.as_ref().and_then(|results| results.find(1, &name, &digest(&setup))).cloned();
        let drawn = match kept {
            Some(drawn) => drawn,
            None => match measure(laboratory, &setup, &name) {
                Ok(drawn) => {
                    if let Some(results) = results {
                        results.add(1, &name, &digest(&setup), &drawn)?;
                    }
                    drawn
                }
                Err(error) => {
                    check_interrupt()?;
                    counts.not_measured += 1;
                    print_failure(seed, &setup, &format!("NOT MEASURED: {error:#}"));
                    continue;
                }
            },
        };
        counts.add(seed, &setup, &drawn);
        eprintln!("{} of {all}: {} {drawn}", counts.all(), setup.command());
    }
    print!("{counts}");
    counts.judge(by_chance)
}

/// Returns a hash of everything that is measured.
fn digest(setup: &Setup) -> String {
    format!(
        "{:016x}",
        super::split::hash(&[&setup.command(), &setup.bench().to_string(), &setup.busy_loops().to_string()])
    )
}

fn measure(laboratory: &Laboratory<'_>, setup: &Setup, name: &str) -> Result<Drawn> {
    let _busy = BusyLoop::start_many(setup.busy_loops());
    let counters = Counters::start(setup);
    let record = laboratory.record(name, &setup.bench(), &setup.command());
    let samples = counters.stop();
    let record = record?;
    Drawn::of(setup, &record, &samples).with_context(|| format!("the record of `{}` holds no result", setup.command()))
}

impl Drawn {
    fn of(setup: &Setup, record: &Value, samples: &Samples) -> Option<Self> {
        let result = record.pointer("/results/0")?;
        let median = result.pointer("/main/median").and_then(Value::as_f64);
        let bits_per_unit = match setup.task {
            Task::Transact { request, response, .. } => 8.0 * (request + response) as f64,
            Task::Rpc { size, .. } => 8.0 * size as f64,
            _ => 1.0,
        };
        let arrived = receiver_window(record).and_then(|(opened, length)| samples.within(opened, length));
        let counted = arrived.and_then(|arrived| arrived.payload(setup));
        let allowance = arrived.zip(counted).map_or(0.0, |(arrived, counted)| arrived.at_edges(counted, setup));
        Some(Self {
            verdict: Verdict::first_of(record),
            figure: median.map(|median| median * bits_per_unit),
            counted,
            allowance,
            surplus: surplus(result),
        })
    }

    fn judge(&self, setup: &Setup, expected: &Expected) -> Judgement {
        let Some(verdict) = &self.verdict else { return Judgement::Open };
        let wrong = |confidence: &str| if confidence == "high" { Judgement::SurelyWrong } else { Judgement::Wrong };
        if verdict.limit == super::grid::CANNOT_TELL {
            return Judgement::Open;
        }
        if !expected.allows(&verdict.limit, verdict.place.as_deref()) {
            return wrong(&verdict.confidence);
        }
        match setup.chain().zip(verdict.section.as_ref()) {
            Some((chain, section)) if !section.holds(chain.hops()) => wrong(&section.confidence),
            _ => Judgement::Right,
        }
    }

    fn figure(&self, setup: &Setup, expected: &Expected) -> Figure {
        let Some(figure) = self.figure else { return Figure::Unknown };
        if figure > expected.highest() * (1.0 + TOLERANCE) + self.allowance + Expected::in_flight(setup) {
            return Figure::AboveBound;
        }
        let Some(counted) = self.counted else { return Figure::Unknown };
        // More may arrive than the result counts: duplicate segments, datagrams that the host dropped, incomplete
        // fragments.
        let low = if setup.loss() > 0.0 { 0.0 } else { counted * (1.0 - TOLERANCE - self.surplus) - self.allowance };
        let high = counted * (1.0 + TOLERANCE) + self.allowance;
        if (low..=high).contains(&figure) { Figure::Agrees } else { Figure::Differs }
    }
}

/// Returns the start and the length, in nanoseconds, of the measured window at host `b` in the record's first trial with a load. The path is probed
/// alone before.
fn receiver_window(record: &Value) -> Option<(u64, u64)> {
    let trials = record["trials"].as_array()?;
    let trial = trials.iter().find(|trial| trial["trial"]["loads"][0]["task"]["kind"] != "hops")?;
    let series = &trial["series"].as_array()?.iter().find(|series| series["host"] == "b")?["series"];
    Some((series["opened_ns"].as_u64()?, series["window"].as_u64()?))
}

/// Returns the share of the data that arrived but is not in the result, by linerate's own counts of retransmits and
/// drops.
fn surplus(result: &Value) -> f64 {
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_f64);
    let retransmitted = number("/tcp/retransmits")
        .zip(number("/tcp/segments"))
        .map_or(0.0, |(retransmits, segments)| retransmits / segments.max(1.0));
    let at_receiver = ["receiver_queue", "receiver_filter", "reassembly", "socket_buffer"];
    let dropped: f64 = at_receiver.iter().filter_map(|place| number(&format!("/loss/places/{place}"))).sum();
    retransmitted + dropped / number("/loss/of").unwrap_or(1.0).max(1.0)
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Some(verdict) => write!(f, "-> {verdict}")?,
            None => f.write_str("-> no verdict")?,
        }
        write!(f, "; result {}, counted {}", rate(self.figure), rate(self.counted))
    }
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or("unknown".to_owned(), |rate| format!("{rate:.4e} bit/s"))
}

fn print_failure(seed: u64, setup: &Setup, problem: &str) {
    println!("{problem}\n  cargo xtask truth --seed {seed} --draw {}", setup.number);
    println!("  {}\n  {}", setup.command(), setup.bench().to_string().trim_end().replace('\n', "\n  "));
}

impl Counts {
    fn add(&mut self, seed: u64, setup: &Setup, drawn: &Drawn) {
        let expected = Expected::of(setup);
        let judgement = drawn.judge(setup, &expected);
        self.judged[judgement as usize] += 1;
        if matches!(judgement, Judgement::Wrong | Judgement::SurelyWrong) {
            let how = if judgement == Judgement::Wrong { "WRONG" } else { "SURELY WRONG" };
            print_failure(seed, setup, &format!("{how}: {drawn}; may bind: {}", expected.limits()));
        }
        let figure = drawn.figure(setup, &expected);
        self.figures += u32::from(figure != Figure::Unknown);
        if matches!(figure, Figure::AboveBound | Figure::Differs) {
            self.figures_wrong += 1;
            let how = if figure == Figure::Differs { "FIGURE DIFFERS" } else { "FIGURE ABOVE THE BOUND" };
            print_failure(seed, setup, &format!("{how}: {drawn}; may bind: {}", expected.limits()));
        }
    }

    fn of(&self, judgement: Judgement) -> u32 {
        self.judged[judgement as usize]
    }

    fn all(&self) -> u32 {
        self.judged.iter().sum::<u32>() + self.not_measured
    }

    /// Compares the counts with the goals.
    ///
    /// # Errors
    ///
    /// A goal is missed. With `by_chance`, only if it is missed by more than chance explains.
    fn judge(&self, by_chance: bool) -> Result<()> {
        let judged = self.judged.iter().sum();
        let counts = [
            ("verdicts are wrong with high confidence", self.of(Judgement::SurelyWrong), judged, 0.0, SURELY_WRONG),
            ("figures are wrong", self.figures_wrong, self.figures, WRONG_FIGURES, WRONG_FIGURES),
            ("draws could not be measured", self.not_measured, self.all(), 0.0, NOT_MEASURED),
        ];
        for (problem, count, all, goal, by_chance_share) in counts {
            let is_missed = f64::from(count) > goal * f64::from(all);
            if is_missed && (!by_chance || is_beyond_chance(count, all, by_chance_share)) {
                bail!("{count} of {all} {problem}; the goal is at most {} %", goal * 100.0);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judged = self.judged.iter().sum();
        let rows = [
            ("right", Judgement::Right),
            ("cannot tell", Judgement::Open),
            ("wrong", Judgement::Wrong),
            ("surely wrong", Judgement::SurelyWrong),
        ];
        for (name, judgement) in rows {
            let count = self.of(judgement);
            writeln!(f, "{name:<16} {}", share(count, judged))?;
        }
        let right = self.figures - self.figures_wrong;
        writeln!(f, "{:<16} {}", "figures right", share(right, self.figures))?;
        writeln!(f, "{:<16} {:>5}", "not measured", self.not_measured)
    }
}

/// Formats a count with its share of all and the 95 % interval of that share.
fn share(count: u32, all: u32) -> String {
    if all == 0 {
        return format!("{count:>5}");
    }
    let Interval { low, high } = Interval::clopper_pearson(count, all);
    let percent = 100.0 * f64::from(count) / f64::from(all);
    format!("{count:>5} of {all}, {percent:.1} % ({:.1} .. {:.1} %)", 100.0 * low, 100.0 * high)
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Section;
    use super::*;
    use serde_json::json;
    use space::{Chain, Extent, Path, Plant, Transport};

    /// UDP at full speed through a path of 10 Mbit/s: 9.6 Mbit/s of payload in datagrams of 1,472 bytes.
    fn slow_path() -> Setup {
        let task = Task::Stream { transport: Transport::Udp, size: 1_472, rate: None, extent: Extent::Seconds(1.0) };
        let path = Path { delay: 1e-3, rate: Some(10e6), queue: 64_000, loss: 0.0, burst: 1, chain: None };
        Setup { number: 5, task, ipv6: false, flows: 1, line: None, path: Some(path), plant: Plant::Nothing }
    }

    fn drawn(limit: &str, place: &str, confidence: &str) -> Drawn {
        let verdict = json!({ "limit": limit, "confidence": confidence, "place": place, "also": [] });
        let record = json!({ "results": [{ "main": { "median": 9.5e6 }, "verdict": verdict }] });
        Drawn::of(&slow_path(), &record, &Samples::default()).unwrap()
    }

    #[test]
    fn right_limit_at_a_wrong_place_is_wrong() {
        let (setup, expected) = (slow_path(), Expected::of(&slow_path()));
        let judge = |limit, place, confidence| drawn(limit, place, confidence).judge(&setup, &expected);
        assert_eq!(judge("shaper", "forward-path", "high"), Judgement::Right);
        assert_eq!(judge("shaper", "sender-queue", "high"), Judgement::SurelyWrong);
        assert_eq!(judge("path-loss", "forward-path", "medium"), Judgement::Wrong);
        assert_eq!(judge("cannot-tell", "forward-path", "low"), Judgement::Open);
    }

    #[test]
    fn section_without_the_link_is_wrong() {
        let mut setup = slow_path();
        setup.path.as_mut().unwrap().chain = Some(Chain { routers: 4, link: 2, answers_all: true });
        let expected = Expected::of(&setup);
        let judge = |after: u64, before: u64, confidence: &str| {
            let mut drawn = drawn("shaper", "forward-path", "high");
            let section = Section { after, before, confidence: confidence.to_owned() };
            drawn.verdict.as_mut().unwrap().section = Some(section);
            drawn.judge(&setup, &expected)
        };
        assert_eq!(judge(2, 3, "high"), Judgement::Right);
        assert_eq!(judge(1, 5, "medium"), Judgement::Right);
        assert_eq!(judge(3, 4, "high"), Judgement::SurelyWrong);
        assert_eq!(judge(0, 2, "medium"), Judgement::Wrong);
        assert_eq!(drawn("shaper", "forward-path", "high").judge(&setup, &expected), Judgement::Right);
    }

    #[test]
    fn figure_is_checked_against_the_bound_and_the_interface() {
        let setup = slow_path();
        let expected = Expected::of(&setup);
        let figure = |figure, counted| {
            let drawn = Drawn { figure: Some(figure), counted, ..drawn("shaper", "forward-path", "high") };
            drawn.figure(&setup, &expected)
        };
        assert_eq!(figure(9.5e6, Some(9.55e6)), Figure::Agrees);
        assert_eq!(figure(9.0e6, Some(9.55e6)), Figure::Differs);
        assert_eq!(figure(0.0, Some(9.55e6)), Figure::Differs, "a figure that was lost is wrong");
        assert_eq!(figure(10.1e6, Some(10.1e6)), Figure::AboveBound);
        assert_eq!(figure(9.5e6, None), Figure::Unknown);
    }

    #[test]
    fn window_is_that_of_the_load() {
        let trial = |kind: &str, opened: u64| {
            let loads = json!([{ "task": { "kind": kind } }]);
            let series = json!([{ "host": "b", "series": { "opened_ns": opened, "window": 9 } }]);
            json!({ "trial": { "loads": loads }, "series": series })
        };
        let record = json!({ "trials": [trial("hops", 5), trial("stream", 700)] });
        assert_eq!(receiver_window(&record), Some((700, 9)));
    }

    #[test]
    fn surely_wrong_verdicts_fail_the_run() {
        let mut counts = Counts::default();
        counts.add(1, &slow_path(), &drawn("shaper", "forward-path", "high"));
        assert!(counts.judge(false).is_ok());
        counts.add(1, &slow_path(), &drawn("window", "forward-path", "high"));
        assert!(counts.judge(false).is_err() && counts.judge(true).is_ok());
        counts.add(1, &slow_path(), &drawn("window", "forward-path", "high"));
        assert!(counts.judge(true).is_err());
        assert!(counts.to_string().contains("surely wrong         2 of 3, 66.7 %"), "{counts}");
    }
}
