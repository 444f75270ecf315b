//! What was asked.

use super::{Upgraded, entries, get, read, set, task};
use crate::copy::CELL;
use crate::frames::PlainFrames;
use crate::ladder::echoes;
use linerate_model::{
    Bypass, Calibrated, CalibratedSubject, CopyTask, CurvePlan, DevicePlan, FrameEngine, FrameForm, FramesTask, Goal,
    HostName, LadderPlan, PairPart, Plan, Planned, PortName, PortPair, Repeats, SweepPlan, Task, Timing, Trial,
};
use linerate_units::{FrameRate, FrameSize, Nanos};
use serde::Deserialize;
use serde_json::{Value, json};

/// The plan of a record. What a method chose as it went was written into it, and stands in the trials now.
pub(super) fn of(record: &Value) -> Upgraded<Plan> {
    let plan = &record["plan"];
    let asked = entries(get(plan, "cells")).iter().filter(|cell| get(cell, "proves").is_null());
    let cells = asked.map(trial).collect::<Upgraded<Vec<Trial>>>()?;
    let repeats: Repeats = read(plan["repeats"].clone(), "plan.repeats")?;
    let goal = match ["ladder", "curve", "copy", "device"].map(|key| get(plan, key)) {
        [ladder @ Value::Object(_), ..] => Goal::Ladder(ladder_plan(ladder, cells, repeats)?),
        [_, curve @ Value::Object(_), ..] => Goal::Curve(curve_plan(curve, cells, repeats)?),
        [_, _, copy @ Value::Object(_), _] => {
            Goal::Sweep(SweepPlan { cells: vec![copy_trial(CELL, read(copy.clone(), "plan.copy")?)], repeats })
        }
        [_, _, _, device @ Value::Object(_)] if device["test"]["name"] == "frames" => {
            Goal::Sweep(SweepPlan { cells: plain_frames(device)?, repeats: Repeats::Times(1) })
        }
        [_, _, _, device @ Value::Object(_)] => Goal::Device(read::<DevicePlan>(device.clone(), "plan.device")?),
        _ => Goal::Sweep(SweepPlan { cells, repeats }),
    };
    let tests = entries(get(plan, "cells")).iter().any(|cell| !get(cell, "proves").is_null());
    let prove = tests || !entries(get(record, "copy_tests")).is_empty();
    Ok(Plan { prove, calibrated: calibrated(record)?, ..Plan::of(goal) })
}

/// The trial of a cell. Its probe becomes a second load.
pub(super) fn trial(cell: &Value) -> Upgraded<Trial> {
    let name: String = read(cell["name"].clone(), "a trial's name")?;
    let paths = entries(&cell["paths"]);
    let what = |part: &str| format!("trial `{name}`: {part}");
    let measured: Task = read(task(&cell["workload"], paths), &what("workload"))?;
    let timing: Timing = read(json!({"window": cell["timing"]}), &what("timing"))?;
    let mut trial = Trial::new(name.clone(), measured, timing);
    let probe = get(cell, "probe");
    if !probe.is_null() {
        let mut workload = probe.clone();
        set(&mut workload, "kind", "transact", &what("probe"))?;
        if let Task::Transact(probe) = read(task(&workload, paths), &what("probe"))? {
            trial = crate::probed(trial, probe);
        }
    }
    // A test was the changed measurement alone.
    let mut proves = get(cell, "proves").clone();
    if let Some(test) = proves.as_object_mut() {
        test.insert("part".to_owned(), json!(PairPart::Changed));
    }
    trial.proves = read(proves, &what("proves"))?;
    Ok(trial)
}

/// The trial of a copy.
pub(super) fn copy_trial(name: impl Into<String>, task: CopyTask) -> Trial {
    Trial::new(name, Task::Copy(task), Timing::UntilDone)
}

/// The trial of raw frames, whose ports without a host are those of `home`.
pub(super) fn frames_trial(trial: &Value, home: &HostName) -> Upgraded<Trial> {
    let name: String = read(trial["name"].clone(), "the name of a trial with frames")?;
    let mut task = trial.clone();
    let what = format!("trial `{name}`");
    set(&mut task, "home", home.0.clone(), &what)?;
    let task: FramesTask = read(task, &what)?;
    Ok(Trial::new(name, Task::Frames(task), Timing::UntilDone))
}

/// The host of ports that name none.
pub(super) fn home(plan: &Value) -> HostName {
    let of = |host: &Value| host.as_str().map(HostName::from);
    of(&plan["device"]["host"]).or_else(|| of(&plan["ladder"]["path"]["opener"])).unwrap_or_else(|| "".into())
}

fn curve_plan(curve: &Value, cells: Vec<Trial>, repeats: Repeats) -> Upgraded<CurvePlan> {
    let named = cells.into_iter().find(|cell| curve["probe"] == cell.name.as_str());
    let cell = named.ok_or("the curve's closed loop is no cell of the plan")?;
    let mut plan = curve.clone();
    let what = "plan.curve";
    set(&mut plan, "cell", serde_json::to_value(cell).map_err(|error| error.to_string())?, what)?;
    set(&mut plan, "repeats", serde_json::to_value(repeats).map_err(|error| error.to_string())?, what)?;
    read(plan, what)
}

fn ladder_plan(ladder: &Value, cells: Vec<Trial>, repeats: Repeats) -> Upgraded<LadderPlan> {
    let home: HostName = read(ladder["path"]["opener"].clone(), "plan.ladder.path")?;
    let full = get(ladder, "frames");
    let frames = if full.is_null() {
        let why = get(ladder, "without")["frames"].as_str();
        Planned::Missing(why.unwrap_or("none was asked for").to_owned())
    } else {
        Planned::Trial(Box::new(frames_trial(full, &home)?))
    };
    // Where echoes failed they were taken out of the plan.
    let echoes = if let Planned::Trial(full) = &frames { echoes(full) } else { None };
    Ok(LadderPlan {
        cells,
        repeats,
        path: read(super::path(&ladder["path"], false), "plan.ladder.path")?,
        ip: read(ladder["ip"].clone(), "plan.ladder.ip")?,
        mtu: read(ladder["mtu"].clone(), "plan.ladder.mtu")?,
        calls_over: linerate_model::Transport::Tcp,
        frames,
        echoes,
    })
}

/// Plain frames were a device test of one trial for each size.
fn plain_frames(device: &Value) -> Upgraded<Vec<Trial>> {
    #[derive(Deserialize)]
    struct DeviceRequest {
        test: Test,
        host: HostName,
        ports: Vec<PortName>,
        directions: Vec<PortPair>,
        sizes: Vec<FrameSize>,
        final_time: Nanos,
        settle: Nanos,
        engine: FrameEngine,
    }
    #[derive(Deserialize)]
    struct Test {
        rate: Option<FrameRate>,
        count: Option<u64>,
        form: FrameForm,
    }
    let DeviceRequest { test, host, ports, directions, sizes, final_time: time, settle, engine } =
        read(device.clone(), "plan.device")?;
    let Test { rate, count, form } = test;
    let frames = PlainFrames { host, ports, directions, rate, count, form, time, settle, engine };
    Ok(sizes.into_iter().map(|size| frames.trial(size)).collect())
}

/// What the tester reached without the device, as far as the results were held against it.
fn calibrated(record: &Value) -> Upgraded<Vec<Calibrated>> {
    let mut all: Vec<Calibrated> = Vec::new();
    for result in entries(&record["results"]).iter().filter(|result| !get(result, "ceiling").is_null()) {
        let limit = &result["ceiling"];
        all.push(Calibrated {
            record: read(limit["record"].clone(), "a tester limit's record")?,
            bypass: Bypass::Cable,
            age: Nanos::default(),
            interleaved: false,
            subject: CalibratedSubject::Result(read(result["name"].clone(), "a result's name")?),
            reached: read(limit["reached"].clone(), "a tester limit's figure")?,
        });
    }
    for size in entries(get(get(record, "outcome"), "throughput")) {
        let (limit, bytes) = (get(size, "ceiling"), read::<u32>(size["frame_bytes"].clone(), "a frame size")?);
        let subject = CalibratedSubject::FrameBytes(bytes);
        if limit.is_null() || all.iter().any(|known| known.subject == subject) {
            continue;
        }
        let rate: f64 = read(limit["frames_per_s"].clone(), "a tester limit's figure")?;
        all.push(Calibrated {
            record: read(limit["record"].clone(), "a tester limit's record")?,
            bypass: Bypass::Cable,
            age: Nanos::default(),
            interleaved: false,
            subject,
            reached: crate::calibration::one(rate),
        });
    }
    Ok(all)
}
