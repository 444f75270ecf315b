//! Hosts in the plan of a run. A program of another version may have written the plan in another way.

use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the names of the hosts, in the order of the plan. Empty if the plan is damaged.
pub(crate) fn names(plan: &str) -> Vec<String> {
    let plan: Value = serde_json::from_str(plan).unwrap_or_default();
    hosts(&plan).map(|(name, _)| name.to_owned()).collect()
}

/// Returns the version of linerate, empty if it is not known, and the operating system of each host, by the name of the host.
pub(crate) fn version_and_systems(plan: &str) -> (String, BTreeMap<String, String>) {
    let plan: Value = serde_json::from_str(plan).unwrap_or_default();
    let version = plan.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
    let systems =
        hosts(&plan).filter_map(|(name, host)| Some((name.to_owned(), host.get("system")?.as_str()?.to_owned())));
    (version, systems.collect())
}

fn hosts(plan: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let hosts = plan.get("hosts").and_then(Value::as_array);
    hosts.into_iter().flatten().filter_map(|host| Some((host.get("name")?.as_str()?, host)))
}
