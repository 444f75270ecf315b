//! What was done.

use super::plan::{copy_trial, frames_trial, home, trial};
use super::{Upgraded, entries, get, read, set, take};
use crate::copy::CELL;
use crate::ladder::copy_of;
use crate::loaded_latency::idle_trial;
use crate::proof::changed_name;
use linerate_model::{
    Caveat, CaveatKind, CopyTask, Counterproof, Counts, EndCounts, Expects, FrameCounts, Goal, HostName, Message,
    Observation, PairPart, PathCounts, Plan, Planned, Standing, Task, Transactions, Trial, TrialResult, message,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every attempt of a record. Attempts that were spoilt were not kept; those that failed were noted in the plan.
pub(super) fn of(record: &Value, plan: &Plan) -> Upgraded<Vec<TrialResult>> {
    let mut all = Vec::new();
    for result in entries(&record["trials"]) {
        all.extend(flows(result)?);
    }
    let home = home(&record["plan"]);
    for result in entries(get(record, "frame_trials")) {
        all.push(frames(result, &home)?);
    }
    let ladder = get(get(record, "plan"), "ladder");
    let copied = [get(get(record, "plan"), "copy"), get(ladder, "copy")].into_iter().find(|copy| !copy.is_null());
    if let Some(copied) = copied {
        let task: CopyTask = read(copied.clone(), "the copy that was asked for")?;
        let trial = copy_trial(CELL, task);
        for parts in entries(get(record, "copy_trials")) {
            all.push(copy(parts, &trial)?);
        }
    }
    for test in entries(get(record, "copy_tests")) {
        let change: Message = read(test["change"].clone(), "the change of a test")?;
        let expects: Expects = read(test["expects"].clone(), "what a test expects")?;
        let task: CopyTask = read(test["plan"].clone(), "the plan of a test")?;
        let name = changed_name(CELL, &change);
        let (otherwise, contrary, only_excludes) = (None, None, false);
        let of = CELL.to_owned();
        let part = PairPart::Changed;
        let proves = Some(Counterproof { of, change, part, expects, otherwise, contrary, only_excludes });
        let trial = Trial { proves, ..copy_trial(name, task) };
        for parts in entries(get(test, "trials")) {
            all.push(copy(parts, &trial)?);
        }
    }
    all.extend(failed(record, plan)?);
    Ok(all)
}

/// What each host saw; nothing where nobody was asked.
fn observations(hosts: &Value) -> Upgraded<BTreeMap<HostName, Observation>> {
    let mut all = BTreeMap::new();
    for (host, seen) in hosts.as_object().into_iter().flatten() {
        all.insert(read(Value::from(host.as_str()), "a host's name")?, observation(seen.clone())?);
    }
    Ok(all)
}

/// What a host saw: of the protocols' counters the first format had one.
fn observation(mut seen: Value) -> Upgraded<Observation> {
    let dropped = take(&mut seen, "udp_receive_buffer_errors");
    if let Some(members) = seen.as_object_mut() {
        members.insert("network".to_owned(), json!({"udp": {"receive_buffer_errors": dropped}}));
    }
    read(seen, "what a host saw")
}

/// A loss: the first format called what no counter explains `wire`, and knew fewer places.
fn loss(mut loss: Value) -> Upgraded<Value> {
    if let Some(places) = loss.get_mut("places") {
        rename(places, "wire", "unaccounted");
        for new in ["sender_filter", "corrupted", "receiver_filter", "reassembly"] {
            set(places, new, 0, "the places of a loss")?;
        }
    }
    Ok(loss)
}

/// A result in which nothing is counted yet.
fn empty(trial: Trial) -> TrialResult {
    TrialResult {
        trial,
        attempt: 0,
        standing: Standing::Counted,
        started_unix_ns: 0,
        span: None,
        counts: Vec::new(),
        hosts: BTreeMap::new(),
        series: Vec::new(),
        clocks: BTreeMap::new(),
        outages: Vec::new(),
        device_load: None,
        caveats: Vec::new(),
    }
}

/// A trial of streams, transactions, RPC or NFS; before it that of its probe alone.
fn flows(result: &Value) -> Upgraded<Vec<TrialResult>> {
    let trial = trial(&result["spec"])?;
    let (mut paths, mut caveats) = (Vec::new(), read::<Vec<Caveat>>(result["caveats"].clone(), "caveats")?);
    for path in entries(&result["paths"]) {
        let mut path = path.clone();
        let (mut client, mut server) = (take(&mut path, "opener"), take(&mut path, "listener"));
        for end in [&mut client, &mut server] {
            for way in ["sent", "received"] {
                if let Some(account) = end.get_mut(way) {
                    rename(account, "means", "io_method");
                }
            }
            if let Value::String(what) = take(end, "remains") {
                caveats.push(Caveat::new(CaveatKind::LeftBehind, message!("caveat-left-behind", "{what}", what)));
            }
        }
        let [forward, backward] = ["forward_loss", "backward_loss"].map(|way| loss(take(&mut path, way)));
        let (forward, backward) = (forward?, backward?);
        let ends = json!({"client": client, "server": server, "forward_loss": forward, "backward_loss": backward});
        paths.push(read::<PathCounts>(ends, &format!("counts of `{}`", trial.name))?);
    }
    let measured = TrialResult {
        started_unix_ns: read(result["started_unix_ns"].clone(), "a trial's time")?,
        counts: vec![Counts::Flows(paths)],
        hosts: observations(&result["hosts"])?,
        caveats,
        ..empty(trial.clone())
    };
    let probe = get(result, "probe");
    let Some(idle) = idle_trial(&trial).filter(|_| !probe.is_null()) else { return Ok(vec![measured]) };
    let asked = |when: &str| -> Upgraded<Counts> {
        let asked: Vec<Transactions> = read(probe[when].clone(), "a probe's counts")?;
        let paths = asked.into_iter().map(|asked| {
            let client = EndCounts { transactions: Some(asked), ..EndCounts::default() };
            PathCounts { client, server: EndCounts::default(), forward_loss: None, backward_loss: None }
        });
        Ok(Counts::Flows(paths.collect()))
    };
    let alone = TrialResult { counts: vec![asked("idle")?], ..empty(idle) };
    let mut beside = measured;
    beside.counts.push(asked("loaded")?);
    Ok(vec![alone, beside])
}

/// A trial with raw frames.
fn frames(result: &Value, home: &HostName) -> Upgraded<TrialResult> {
    let trial = frames_trial(&result["trial"], home)?;
    let Task::Frames(task) = trial.task() else { return Err("no frames".to_owned()) };
    let first = task.ports.first().map_or(home, |port| task.host(port)).clone();
    let mut hosts = observations(get(result, "other_hosts"))?;
    hosts.insert(first, observation(result["observation"].clone())?);
    let counts: FrameCounts = read(json!({"engine": result["engine"], "streams": result["streams"]}), "frames")?;
    Ok(TrialResult {
        started_unix_ns: read(result["started_unix_ns"].clone(), "a trial's time")?,
        counts: vec![Counts::Frames(counts)],
        hosts,
        device_load: read(get(result, "device_load").clone(), "the device's load")?,
        caveats: read(result["caveats"].clone(), "caveats")?,
        ..empty(trial)
    })
}

/// A copy.
fn copy(parts: &Value, trial: &Trial) -> Upgraded<TrialResult> {
    let mut result = empty(trial.clone());
    let mut parts = parts.clone();
    let mut started = Vec::new();
    for end in ["sources", "destinations", "servers"] {
        let Some(Value::Array(of_end)) = parts.get_mut(end) else { continue };
        for part in of_end {
            let host: HostName = read(part["host"].clone(), "a host of a copy")?;
            let counted = part.get_mut("counted").ok_or("a host of a copy counted nothing")?;
            started.push(read::<u64>(take(counted, "started_unix_ns"), "a copy's time")?);
            result.hosts.insert(host.clone(), observation(take(counted, "observation"))?);
            for caveat in read::<Vec<Caveat>>(take(counted, "caveats"), "caveats")? {
                result
                    .caveats
                    .push(Caveat::new(caveat.kind, Message::untranslated(format!("on {host}: {}", caveat.text))));
            }
        }
    }
    result.started_unix_ns = started.into_iter().filter(|time| *time > 0).min().unwrap_or_default();
    result.counts = vec![Counts::Copy(read(parts, "counts of a copy")?)];
    Ok(result)
}

/// What a ladder noted of trials that failed.
fn failed(record: &Value, plan: &Plan) -> Upgraded<Vec<TrialResult>> {
    const UNTIMED: &str = "raw frames: how long they take there and back is not known: ";
    let Goal::Ladder(ladder) = &plan.goal else { return Ok(Vec::new()) };
    let v1 = get(get(record, "plan"), "ladder");
    let why = |layer: &str| get(get(v1, "without"), layer).as_str();
    let mut all = Vec::new();
    if let (Planned::Trial(full), Some(why)) = (&ladder.frames, why("frames")) {
        all.push(TrialResult::failed((**full).clone(), 0, why));
    }
    if let Some(why) = why("copy") {
        let copied = get(v1, "copy");
        let trial = match copied {
            Value::Null => copy_of(ladder, 0),
            copied => copy_trial(CELL, read(copied.clone(), "plan.ladder.copy")?),
        };
        all.push(TrialResult::failed(trial, 0, why));
    }
    if let (Some(echoes), true) = (&ladder.echoes, get(v1, "echoes").is_null()) {
        let texts = entries(&record["caveats"]).iter().filter_map(|caveat| caveat["text"].as_str());
        let why = texts.filter_map(|text| text.strip_prefix(UNTIMED)).next();
        all.push(TrialResult::failed(echoes.clone(), 0, why.unwrap_or("they failed")));
    }
    Ok(all)
}

/// Renames a member of an object.
fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(members) = object.as_object_mut()
        && let Some(member) = members.remove(from)
    {
        members.insert(to.to_owned(), member);
    }
}
