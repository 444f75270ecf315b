//! `--resume`: goes on with a run that ended early.
//!
//! The same command is typed again, because a record holds neither agent URLs nor passwords. What it asks for must be what the run was
//! asked for.

use crate::exit::Failure;
use linerate_model::{Goal, HostName, Plan, Record, shell_command};
use linerate_runner::Resumed;
use linerate_store::{State, Store, StoreError};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the run called `name`, if it can be resumed.
///
/// # Errors
/// There is none, it has finished, or another program measures it.
pub(crate) fn find(store: &Store, name: &str) -> Result<Record, Failure> {
    let refused = |error| Failure::usage(format!("--resume {name}: {error}"));
    let row = store.row(name).map_err(refused)?;
    match row.state {
        State::Finished => Err(refused(StoreError::Finished { store: store.name(), id: row.id })),
        State::Running => Err(refused(StoreError::Running { store: store.name(), id: row.id })),
        State::Interrupted | State::Failed | State::Killed => store.load(&row.id.0).map_err(refused),
    }
}

/// Takes up `stored` to go on with it.
///
/// # Errors
/// `typed` asks for something else than the run was asked for, or the run cannot be taken up any more.
pub(crate) fn take_up<'a>(store: &'a Store, stored: &Record, typed: &Plan) -> Result<Resumed<'a>, Failure> {
    if let Some(difference) = difference(&stored.plan, typed) {
        return Err(Failure::usage(format!(
            "--resume {}: {difference}; type the command of that run again: {}",
            stored.id,
            shell_command(&stored.command)
        )));
    }
    let (record, live) = store.resume(&stored.id.0).map_err(Failure::usage)?;
    Ok(Resumed { record, live: Box::new(live) })
}

/// Says in what `typed` differs from the plan of a run; none if it asks for the same.
fn difference(stored: &Plan, typed: &Plan) -> Option<String> {
    if stored == typed {
        return None;
    }
    let (before, now) = (kind(&stored.goal), kind(&typed.goal));
    if before != now {
        return Some(format!("that run was {before}, this command is {now}"));
    }
    let (before, now) = (hosts(stored), hosts(typed));
    if before != now {
        return Some(format!("that run was between other hosts: {}, not {}", listed(&before), listed(&now)));
    }
    let json = |plan| serde_json::to_value(plan).expect("a plan has no map with keys that are no text");
    let found = first_difference("", &json(stored), &json(typed));
    Some(match found {
        Some((place, before, now)) => {
            format!("that run was asked for something else: {place} was {before}, and is {now}")
        }
        // Equal as text, so they differ in nothing that a record can tell.
        None => String::from("that run was asked for something else"),
    })
}

fn kind(goal: &Goal) -> String {
    let tasks = |cells: &[linerate_model::Trial]| {
        let kinds: BTreeSet<&str> = cells.iter().map(|cell| cell.task().kind().name()).collect();
        kinds.into_iter().collect::<Vec<_>>().join(" and ")
    };
    match goal {
        Goal::Sweep(sweep) => format!("a measurement of {}", tasks(&sweep.cells)),
        Goal::Curve(_) => String::from("an NFS curve"),
        Goal::Device(_) => String::from("a device test"),
        Goal::Ladder(_) => String::from("a ladder"),
    }
}

fn hosts(plan: &Plan) -> BTreeSet<HostName> {
    let ports = plan
        .device()
        .into_iter()
        .flat_map(|device| device.ports.iter().map(|port| port.host.clone().unwrap_or_else(|| device.host.clone())));
    let paths = plan.cells().iter().flat_map(|cell| cell.paths()).map(|path| path.server.name().clone());
    plan.cells().iter().flat_map(|cell| cell.hosts()).cloned().chain(paths).chain(ports).collect()
}

fn listed(hosts: &BTreeSet<HostName>) -> String {
    hosts.iter().map(|host| host.0.as_str()).collect::<Vec<_>>().join(", ")
}

/// The first place where two values differ, and what they hold there.
fn first_difference(place: &str, before: &Value, now: &Value) -> Option<(String, Value, Value)> {
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            let at =
                |fields: &serde_json::Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or_default();
            names.into_iter().find_map(|name| first_difference(&below(name), &at(before, name), &at(now, name)))
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            let mut pairs = before.iter().zip(now).enumerate();
            pairs.find_map(|(index, (before, now))| first_difference(&format!("{place}[{index}]"), before, now))
        }
        (Value::Array(before), Value::Array(now)) => {
            let count = |list: &[Value]| Value::from(format!("a list of {}", list.len()));
            Some((place.to_owned(), count(before), count(now)))
        }
        _ => (before != now).then(|| (place.to_owned(), before.clone(), now.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Path, Repeats, StreamTask, Task, Timing, TransactTask, Transport, Trial};
    use linerate_units::{ByteCount, Nanos};

    fn plan(server: &str, task: fn(Vec<Path>) -> Task, time: Nanos) -> Plan {
        let trial = Trial::new("cell", task(vec![Path::between("a", server)]), Timing::of(Nanos::default(), time));
        Plan::sweep(vec![trial], Repeats::Times(2))
    }

    fn stream(paths: Vec<Path>) -> Task {
        Task::Stream(StreamTask { paths, ..StreamTask::plain(Transport::Tcp, ByteCount::new(64)) })
    }

    fn transact(paths: Vec<Path>) -> Task {
        Task::Transact(TransactTask { paths, ..TransactTask::plain(Transport::Tcp) })
    }

    #[test]
    fn the_same_plan_is_resumed_and_another_is_named() {
        let second = Nanos::from_secs(1);
        let stored = plan("b", stream, second);
        assert_eq!(difference(&stored, &plan("b", stream, second)), None);
        for (typed, words) in [
            (plan("c", stream, second), "other hosts: a, b, not a, c"),
            (plan("b", transact, second), "a measurement of stream, this command is a measurement of transact"),
            (plan("b", stream, Nanos::from_secs(2)), "goal.cells[0].loads[0].timing.window.measure was 1000000000"),
            (Plan { prove: true, ..stored.clone() }, "prove"),
        ] {
            let said = difference(&stored, &typed).expect(words);
            assert!(said.contains(words), "{said}");
        }
    }
}
