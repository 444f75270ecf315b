//! What a tester limit depends on of a task: transport, sizes, flows and sockets. It does not depend on who takes part, which is
//! compared for itself, nor on the load that is offered: a calibration looks for the most.

use linerate_model::Task;
use serde_json::Value;

/// Returns what the tester limit of `task` depends on, as a task of no hosts. None where there is no such limit: requests at a set
/// rate wait for one another, NFS has a limit of its own, and frames, copies and probes are no flows.
pub(super) fn settings(task: &Task) -> Option<Task> {
    let at_set_rate = task.requests_per_s().is_some();
    let mut task = task.clone();
    match &mut task {
        Task::Stream(stream) => stream.offered = None,
        Task::Transact(_) | Task::Rpc(_) if !at_set_rate => {}
        Task::Transact(_) | Task::Rpc(_) | Task::Nfs(_) | Task::Frames(_) | Task::Copy(_) | Task::Hops(_) => {
            return None;
        }
    }
    task.paths_mut()?.clear();
    let socket = &mut task.net_mut()?.socket;
    // The interface is compared for itself, and a code point costs nothing.
    (socket.bind_address, socket.bind_device, socket.dscp) = (None, None, None);
    Some(task)
}

/// Returns in what `then` and `now` differ, as in `flows 1, not 4`.
pub(super) fn differences(then: &Task, now: &Task) -> Vec<String> {
    let json = |task: &Task| serde_json::to_value(task).expect("a task has no map with keys that are no text");
    let mut all = Vec::new();
    differ("", &json(then), &json(now), &mut all);
    all
}

fn differ(name: &str, then: &Value, now: &Value, all: &mut Vec<String>) {
    if let (Value::Object(then), Value::Object(now)) = (then, now) {
        let names = then.keys().chain(now.keys().filter(|name| !then.contains_key(*name)));
        let of = |fields: &serde_json::Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or_default();
        names.for_each(|name| differ(name, &of(then, name), &of(now, name), all));
    } else if then != now {
        all.push(format!("{} {}, not {}", name.replace('_', " "), shown(then), shown(now)));
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::from("unset"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
