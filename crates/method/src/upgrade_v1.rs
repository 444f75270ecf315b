//! Records of the first format, `linerate.record/1`, which no release wrote. To be deleted before 1.0.
//!
//! The first format had trials of three shapes, each in a list of its own, and kept neither failed attempts nor the calibration. What
//! it had counted becomes trials of the second format, and the results are worked out anew.

mod plan;
mod trials;

use crate::read_record::BadRecord;
use crate::replay::replay;
use linerate_model::{Caveat, CaveatKind, Record};
use serde_json::{Value, json};

/// The format's name.
const SCHEMA: &str = "linerate.record/1";

/// Turns a record of the first format into one of the second, and works out its results.
///
/// A record in which the demonstration joined several runs keeps the streams and the ladder: its other runs have no place in one plan.
///
/// # Errors
/// Something in it is missing or cannot be.
pub fn upgrade_v1(value: Value) -> Result<Record, BadRecord> {
    let mut record = upgraded(value).map_err(|why| BadRecord::invalid(SCHEMA, why))?;
    replay(&mut record);
    Ok(record)
}

/// Why something is no part of a record.
type Upgraded<T> = Result<T, String>;

fn upgraded(mut value: Value) -> Upgraded<Record> {
    let plan = plan::of(&value)?;
    let trials = trials::of(&value, &plan)?;
    let caveats: Vec<Caveat> = read(take(&mut value, "caveats"), "caveats")?;
    // What is doubted of copies was a doubt about the whole run, and follows from the trials.
    let is_copy = value["plan"].get("copy").is_some();
    let caveats = caveats.into_iter().filter(|caveat| !is_copy || caveat.kind == CaveatKind::Interrupted).collect();
    let mut member = |key: &str| take(&mut value, key);
    Ok(Record {
        schema: linerate_model::SCHEMA.to_owned(),
        id: read(member("id"), "id")?,
        version: read(member("version"), "version")?,
        command: read(member("command"), "command")?,
        study: read(member("study"), "study")?,
        group: None,
        started_unix_ns: read(member("started_unix_ns"), "started_unix_ns")?,
        hosts: read(member("hosts"), "hosts")?,
        plan,
        results: Vec::new(),
        trials,
        outcome: Default::default(),
        caveats,
    })
}

/// The member of an object, which is gone from it then; null where it has none.
fn take(object: &mut Value, key: &str) -> Value {
    object.get_mut(key).map_or(Value::Null, Value::take)
}

/// The member of an object; null where it has none.
fn get<'a>(object: &'a Value, key: &str) -> &'a Value {
    object.get(key).unwrap_or(&Value::Null)
}

/// Sets a member of an object, which `what` names.
fn set(object: &mut Value, key: &str, member: impl Into<Value>, what: &str) -> Upgraded<()> {
    let members = object.as_object_mut().ok_or_else(|| format!("{what}: it is not an object"))?;
    members.insert(key.to_owned(), member.into());
    Ok(())
}

/// The entries of a list; none where it is missing.
fn entries(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value of the second format. It is read out of text, as records are, so that no second reader of each type is compiled.
fn read<T: serde::de::DeserializeOwned>(value: Value, what: &str) -> Upgraded<T> {
    serde_json::from_str(&value.to_string()).map_err(|error| format!("{what}: {error}"))
}

/// A path: its listener may have been a server that runs no agent, where the workload said how that is reached.
fn path(path: &Value, foreign: bool) -> Value {
    let kind = if foreign { "foreign" } else { "agent" };
    json!({"client": path["opener"], "server": {kind: path["listener"]}})
}

/// What streams, transactions, RPC and NFS had in common.
const NET: [&str; 4] = ["transport", "ip", "flows", "socket"];

/// The task of a workload between `paths`.
fn task(workload: &Value, paths: &[Value]) -> Value {
    let mut task = workload.clone();
    let foreign = workload["kind"] == "nfs" && !get(workload, "server").is_null();
    let net: Value = NET.map(|key| (key.to_owned(), take(&mut task, key))).into_iter().collect();
    if let Some(members) = task.as_object_mut() {
        NET.iter().for_each(|key| drop(members.remove(*key)));
        members.insert("net".to_owned(), net);
        members.insert("paths".to_owned(), paths.iter().map(|one| path(one, foreign)).collect());
    }
    task
}
