//! The search agrees with the reference implementation of MLRsearch, the package of that name, version 1.2.1: on the same
//! simulated devices and for the same goals, both find the same relevant bounds and the same conditional throughput.
//!
//! Both know a bound only to within the goal's width, so two bounds are the same when they are no further apart than that.

mod device;

use device::{Device, Overload};
use linerate_search::{Counted, Goal, GoalResult, Mlr, Search};
use linerate_testsuite::server_test;
use linerate_units::{FrameRate, Nanos, Ratio};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PACKAGE: &str = "MLRsearch==1.2.1";

/// How many devices; each kind comes equally often.
const DEVICES: usize = 270;

/// A device, a range of loads and some goals.
struct Case {
    kind: Kind,
    device: Device,
    minimum: u64,
    maximum: u64,
    goals: Vec<Goal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    HardLimit,
    FallsUnderOverload,
    CollapsesUnderOverload,
    LosesALittle,
    LosesALittleAndFalls,
    /// Loses more at some loads far below what it forwards under overload.
    InversionAside,
    /// Loses more at the very loads at which overload points.
    InversionAhead,
    AlwaysLossy,
    NeverLossy,
}

const KINDS: [Kind; 9] = [
    Kind::HardLimit,
    Kind::FallsUnderOverload,
    Kind::CollapsesUnderOverload,
    Kind::LosesALittle,
    Kind::LosesALittleAndFalls,
    Kind::InversionAside,
    Kind::InversionAhead,
    Kind::AlwaysLossy,
    Kind::NeverLossy,
];

/// A case as the script reads it; the names of a goal's fields are those of the package.
#[derive(Serialize)]
struct CaseForScript<'a> {
    device: &'a Device,
    minimum: u64,
    maximum: u64,
    goals: Vec<GoalForScript>,
}

#[derive(Serialize)]
struct GoalForScript {
    loss_ratio: f64,
    exceed_ratio: f64,
    relative_width: f64,
    initial_trial_duration: f64,
    final_trial_duration: f64,
    duration_sum: f64,
}

/// Lower bound, upper bound and conditional throughput.
type Found = [Option<u64>; 3];

#[server_test(Program("python3"))]
fn finds_what_the_reference_implementation_finds() {
    let python = virtual_environment().expect("a Python environment with the package");
    let mut draw = Draw(20_261_121);
    let cases: Vec<Case> = (0..DEVICES).map(|index| case(KINDS[index % KINDS.len()], &mut draw)).collect();
    let theirs = reference(&python, &cases);
    assert_eq!(theirs.len(), cases.len());

    let mut differences = Vec::new();
    for (case, theirs) in cases.iter().zip(theirs) {
        let results = search(case);
        assert_eq!(results.len(), theirs.len());
        for (result, theirs) in results.iter().zip(theirs) {
            if let Err(what) = compare(case, result, theirs) {
                let (kind, goal, device) = (case.kind, &result.goal.name, &case.device);
                differences.push(format!("{kind:?}, goal {goal}: {what}; {device:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

/// Our search.
fn search(case: &Case) -> Vec<GoalResult> {
    let rate = FrameRate::per_second;
    let mut search = Mlr::new(&case.goals, rate(case.minimum), rate(case.maximum)).expect("sound goals");
    let mut trials = 0;
    while let Some(probe) = search.next() {
        let (intended, forwarded) = case.device.forwarded(probe.load.get(), probe.time.get());
        search.record(&Counted { probe, intended, unsent: 0, forwarded });
        trials += 1;
        assert!(trials < 1000, "{:?} does not end", case.kind);
    }
    search.results()
}

/// Whether both found the same, to within the goal's width.
fn compare(case: &Case, ours: &GoalResult, theirs: Found) -> Result<(), String> {
    let get = |load: Option<FrameRate>| load.map(FrameRate::get);
    let ours_found = [get(ours.bounds.lower), get(ours.bounds.upper), get(ours.conditional_throughput)];
    let kinds = ["lower bound", "upper bound", "conditional throughput"];
    for ((what, ours_load), theirs_load) in kinds.into_iter().zip(ours_found).zip(theirs) {
        let (Some(a), Some(b)) = (ours_load, theirs_load) else {
            if ours_load == theirs_load {
                continue;
            }
            return Err(format!("{what} {ours_load:?}, theirs {theirs_load:?}"));
        };
        // One frame for rounding a load down. Where loss differs from load to load, so does what is left of the load.
        let jitter = if what == "conditional throughput" { 2e-6 * case.device.jitter_ppm as f64 } else { 0.0 };
        let allowed = (ours.goal.width.as_f64() + jitter) * a.max(b) as f64 + 1.0;
        if a.abs_diff(b) as f64 > allowed {
            return Err(format!("{what} {a}, theirs {b}; ours {ours_found:?}, theirs {theirs:?}"));
        }
    }
    Ok(())
}

/// A case of a kind, its numbers drawn. No device loses anything near the ratios that goals allow except where its
/// capacity ends, so that every goal has one answer wherever the kind says so.
fn case(kind: Kind, draw: &mut Draw) -> Case {
    let minimum = draw.within(1_000, 20_000);
    let maximum = draw.within(1_000_000, 20_000_000);
    let capacity = draw.within(maximum / 10, maximum * 8 / 10);
    let with = |overload| Device::with_capacity(capacity, overload);
    let mut little = |device: Device| {
        let lossy_ppm = draw.within(20, 400);
        let lossy_from = draw.within(capacity / 5, capacity * 9 / 10);
        Device { lossy_from, lossy_ppm, jitter_ppm: lossy_ppm / 10, seed: draw.within(0, 1 << 40), ..device }
    };
    let device = match kind {
        Kind::HardLimit => with(Overload::Steady),
        Kind::FallsUnderOverload => with(Overload::Falling),
        Kind::CollapsesUnderOverload => with(Overload::Collapse),
        Kind::LosesALittle => little(with(Overload::Steady)),
        Kind::LosesALittleAndFalls => little(with(Overload::Falling)),
        Kind::InversionAside => {
            let dip_from = draw.within(capacity / 5, capacity / 2);
            let dip_to = dip_from + draw.within(capacity / 10, capacity / 4);
            Device { dip_from, dip_to, dip_ppm: draw.within(20_000, 500_000), ..with(Overload::Steady) }
        }
        Kind::InversionAhead => {
            let ahead = capacity * capacity / maximum;
            let (dip_from, dip_to) = (ahead - ahead / draw.within(8, 20), ahead + ahead / draw.within(10, 20));
            Device { dip_from, dip_to, dip_ppm: draw.within(20_000, 500_000), ..with(Overload::Falling) }
        }
        Kind::AlwaysLossy => {
            Device { lossy_from: 0, lossy_ppm: draw.within(15_000, 600_000), ..with(Overload::Steady) }
        }
        Kind::NeverLossy => Device::with_capacity(maximum + draw.within(0, maximum), Overload::Steady),
    };
    let named = Goal::NAMES.map(|name| Goal::named(name).expect("a known name"));
    Case { kind, device, minimum, maximum, goals: named.into_iter().chain([any_goal(draw)]).collect() }
}

/// A goal that has no name.
fn any_goal(draw: &mut Draw) -> Goal {
    let final_time = Nanos::from_secs(draw.within(1, 30));
    Goal {
        name: "drawn".to_owned(),
        final_time,
        duration_sum: Nanos::new(final_time.get() * draw.within(1, 9)),
        loss: Ratio::new(draw.within(10, 90), 10_000),
        exceed: Ratio::new(draw.within(0, 8), 10),
        width: Ratio::new(draw.within(2, 20), 1_000),
        initial_time: Nanos::from_secs(1),
    }
}

/// What the package finds, by the script beside this file.
fn reference(python: &Path, cases: &[Case]) -> Vec<Vec<Found>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mlrsearch/oracle.py");
    let cases: Vec<_> = cases.iter().map(for_script).collect();
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mlrsearch-cases.json");
    std::fs::write(&input, serde_json::to_vec(&cases).expect("plain data")).expect("writes the cases");
    let cases = std::fs::File::open(&input).expect("reads the cases");
    let output = Command::new(python).arg(script).stdin(cases).output().expect("runs the script");
    assert!(output.status.success(), "the script failed:\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the script writes JSON")
}

fn for_script(case: &Case) -> CaseForScript<'_> {
    let goal = |goal: &Goal| GoalForScript {
        loss_ratio: goal.loss.as_f64(),
        exceed_ratio: goal.exceed.as_f64(),
        relative_width: goal.width.as_f64(),
        initial_trial_duration: goal.initial_time.as_secs_f64(),
        final_trial_duration: goal.final_time.as_secs_f64(),
        duration_sum: goal.duration_sum.as_secs_f64(),
    };
    let goals = case.goals.iter().map(goal).collect();
    CaseForScript { device: &case.device, minimum: case.minimum, maximum: case.maximum, goals }
}

/// A Python that has the package, made once in the target directory; or why there is none.
fn virtual_environment() -> Result<PathBuf, String> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mlrsearch-1.2.1");
    let python = home.join("bin/python");
    if run(Command::new(&python).args(["-c", "import MLRsearch"])).is_err() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]))?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&said).trim()))
}

/// Numbers that look random and are the same each time (xorshift).
struct Draw(u64);

impl Draw {
    /// A number from `low` to `high`.
    fn within(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0 >> 11) % (high - low + 1)
    }
}
