//! What the agent on a server counted while its clients waited: its disks and its cores.

use super::words::percent;
use crate::statistics::median;
use linerate_model::{DeviceLoad, Message, MessageValue, TrialResult, message};
use std::collections::BTreeMap;

/// A server's own load: medians over the runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerLoad {
    /// The busiest disk, and the share of the time that it had work.
    pub(crate) disk: Option<(String, f64)>,
    /// Busy share of the busiest core.
    pub(crate) core: Option<f64>,
    /// Its machine is that of a client, whose work is in these figures.
    pub(crate) shared: bool,
}

impl ServerLoad {
    /// The server's load in `runs`; none if no agent on it was asked, or none told anything.
    pub(crate) fn of(runs: &[&TrialResult]) -> Option<Self> {
        let loads: Vec<&DeviceLoad> = runs.iter().filter_map(|run| run.device_load.as_ref()).collect();
        let mut disks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for load in &loads {
            let window = load.window.get().max(1) as f64;
            for disk in &load.disks {
                disks.entry(&disk.name).or_default().push((disk.busy.get() as f64 / window).min(1.0));
            }
        }
        let busy = disks.into_iter().filter_map(|(name, shares)| Some((name.to_owned(), median(shares)?)));
        let disk = busy.max_by(|l, r| l.1.total_cmp(&r.1));
        let core = median(loads.iter().filter_map(|load| load.busiest_cpu).collect());
        let shared = loads.iter().any(|load| load.shares_machine);
        (disk.is_some() || core.is_some()).then_some(Self { disk, core, shared })
    }

    /// How much of its time the fullest part was busy.
    pub(crate) fn fullest(&self) -> f64 {
        self.disk.as_ref().map_or(0.0, |(_, share)| *share).max(self.core.unwrap_or_default())
    }

    /// The server's load in words.
    pub(crate) fn in_words(&self) -> Message {
        let core = self.core.map(percent);
        let disk = self.disk.as_ref().map(|(name, share)| (MessageValue::Name(name.clone()), percent(*share)));
        let seen = match (disk, core) {
            (Some((disk, busy)), Some(core)) => Some(message!(
                "server-agent-disk-core",
                "By the server's agent, its disk {disk} was busy for {busy} and its busiest core for {core} of the time.",
                disk,
                busy,
                core
            )),
            (Some((disk, busy)), None) => Some(message!(
                "server-agent-disk",
                "By the server's agent, its disk {disk} was busy for {busy} of the time.",
                disk,
                busy
            )),
            (None, Some(core)) => Some(message!(
                "server-agent-core",
                "By the server's agent, its busiest core was busy for {core} of the time.",
                core
            )),
            (None, None) => None,
        };
        let shared = self.shared.then(|| {
            message!(
                "server-agent-shared",
                "The server shares its machine with a client, whose work is in these figures."
            )
        });
        seen.unwrap_or_default().and(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::tests::{cell, made, part, plan};
    use linerate_model::{CopyParts, DiskUse};
    use linerate_units::Nanos;

    #[test]
    fn the_busiest_disk_and_core_of_the_middle_run_count() {
        let cell = cell(plan(&["b"]));
        let run = |load: Option<DeviceLoad>| {
            let parts = CopyParts { sources: vec![part("a", vec![])], destinations: vec![], servers: vec![] };
            TrialResult { device_load: load, ..made(&cell, parts) }
        };
        let load = |busiest: f64, sda: u64| {
            let disk =
                |name: &str, ms| DiskUse { name: name.into(), busy: Nanos::from_millis(ms), ..DiskUse::default() };
            let disks = vec![disk("sda", sda), disk("sdb", 100)];
            let window = Nanos::from_secs(1);
            run(Some(DeviceLoad { busiest_cpu: Some(busiest), window, disks, ..DeviceLoad::default() }))
        };
        let runs = [load(0.2, 900), load(0.4, 950), load(0.3, 2_000)];
        let of = |runs: &[TrialResult]| ServerLoad::of(&runs.iter().collect::<Vec<_>>());
        let found = ServerLoad { disk: Some(("sda".into(), 0.95)), core: Some(0.3), shared: false };
        assert_eq!(of(&runs), Some(found));
        assert_eq!(of(&[run(None), run(Some(DeviceLoad::default()))]), None, "nobody told anything");
    }
}
