//! `--calibration`: the tester limits that a run is compared with, from the calibration that was named or from the newest that fits.

use crate::exit::Failure;
use crate::hosts::ReachedAgents;
use crate::measure::RunRequest;
use crate::output::say;
use linerate_method::calibration::{Fit, Found, Search, Uncalibrated, age_in_words, fit};
use linerate_model::{Bypass, Calibrated, CalibratedSubject, HostName, Plan, Record, RecordId, shell_command};
use linerate_runner::Agents as _;
use linerate_store::{Query, State, Store, StoreError};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::str::FromStr;

/// The command that makes calibrations, which is the kind of run that a store finds them by.
const KIND: &str = "calibrate";
/// So many calibrations are looked through, the newest first.
const MOST: usize = 50;

/// Which calibration.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CalibrationOption {
    /// Compare results with the tester limit of this calibration (see `linerate calibrate`): its record's id or the start of it,
    /// auto (the newest of these hosts with the same settings), or none
    #[arg(long, value_name = "RECORD|auto|none", default_value = "auto", hide_short_help = true)]
    calibration: CalibrationChoice,
}

/// Which calibration a run is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CalibrationChoice {
    /// The newest that fits.
    #[default]
    Auto,
    /// None.
    None,
    /// The one of this name.
    Record(String),
}

impl FromStr for CalibrationChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            name => Self::Record(name.to_owned()),
        })
    }
}

impl CalibrationOption {
    /// Whether it was left as it is.
    pub(crate) fn is_usual(&self) -> bool {
        self.calibration == CalibrationChoice::default()
    }

    /// Returns the calibration that is named, before any host is reached; none if none is.
    ///
    /// # Errors
    /// There is no such record, it is no calibration, or it did not run to its end.
    pub(crate) fn named(&self, store: Option<&Store>) -> Result<Option<Record>, Failure> {
        let CalibrationChoice::Record(name) = &self.calibration else { return Ok(None) };
        let refused = |why: String| {
            Failure::usage(format!(
                "--calibration {name}: {why}; `linerate calibrate` makes a calibration, and `linerate results list --filter {KIND}` lists them"
            ))
        };
        let store = store
            .ok_or_else(|| refused(String::from("it is read from the store, and this run has none (--no-store)")))?;
        let unread = |error: StoreError| match error {
            StoreError::Unknown { .. } | StoreError::Ambiguous { .. } => refused(error.to_string()),
            error => Failure::measure(error),
        };
        let row = store.row(name).map_err(unread)?;
        let record = store.load(&row.id.0).map_err(unread)?;
        if record.plan.calibration.is_none() {
            let command = shell_command(&record.command);
            return Err(refused(format!("{} is no calibration, but a record of `{command}`", record.id)));
        }
        match row.state {
            State::Finished => Ok(Some(record)),
            state => Err(refused(format!("{} is {state}, and only a whole calibration counts", record.id))),
        }
    }

    /// Returns the tester limits of `plan`, whose hosts are reached, and says which calibrations they are of. `named` is what
    /// [`Self::named`] returned.
    ///
    /// # Errors
    /// The calibration that is named does not fit, or the store cannot be read.
    pub(crate) fn limits(
        &self,
        named: Option<&Record>,
        plan: &Plan,
        asked: &RunRequest,
        agents: &ReachedAgents,
    ) -> Result<Vec<Calibrated>, Failure> {
        if asked.resumes() || self.calibration == CalibrationChoice::None {
            return Ok(Vec::new());
        }
        let (hosts, interfaces) = (agents.control.hosts(), interfaces(plan, agents));
        let now_unix_ns = u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default();
        let run = Uncalibrated { plan, hosts: &hosts, interfaces: &interfaces, now_unix_ns };
        match (named, &asked.store) {
            (Some(record), _) => of_named(record, &run),
            (None, Some(store)) => found(store, run),
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// The interface of each host that the data of `plan` go through, as far as addresses tell.
pub(crate) fn interfaces(plan: &Plan, agents: &ReachedAgents) -> BTreeMap<HostName, String> {
    let mut all = BTreeMap::new();
    for cell in plan.cells() {
        let Some(net) = cell.net() else { continue };
        for path in cell.paths() {
            let Some(server) = path.server.agent() else { continue };
            for (at, other) in [(&path.client, server), (server, &path.client)] {
                if let Some(nic) = agents.control.nic_towards(at, other, net.ip) {
                    all.entry(at.clone()).or_insert_with(|| nic.name.clone());
                }
            }
        }
    }
    all
}

/// The limits of the calibration that was named.
fn of_named(record: &Record, run: &Uncalibrated<'_>) -> Result<Vec<Calibrated>, Failure> {
    let Fit { limits, missing } = fit(record, run).map_err(|misfit| {
        Failure::usage(format!(
            "--calibration {}: {misfit}; calibrate anew with `linerate calibrate -- ` and this command, or leave the option out",
            record.id
        ))
    })?;
    for (name, why) in missing {
        say(&format!("linerate: the calibration {} has no tester limit of {name}: {why}", record.id));
    }
    tell(&limits);
    Ok(limits)
}

/// The limits of the newest calibrations in `store` that fit.
fn found(store: &Store, run: Uncalibrated<'_>) -> Result<Vec<Calibrated>, Failure> {
    let query = Query { kind: Some(KIND.to_owned()), states: vec![State::Finished], ..Query::default() };
    let mut search = Search::new(run);
    let mut records = store.newest(&query, MOST).map_err(Failure::measure)?;
    while !search.is_complete() {
        let Some(record) = records.next() else { break };
        search.take(&record.map_err(Failure::measure)?);
    }
    let Found { limits, missing, misfit } = search.found();
    let remedy = "`linerate calibrate -- ` and this command measures the tester limit";
    match (misfit, missing.is_empty()) {
        (Some((id, misfit)), false) => {
            say(&format!("linerate: the calibration {id} is not used for {}: {misfit}; {remedy}", missing.join(", ")));
        }
        (None, false) if !limits.is_empty() => {
            say(&format!("linerate: no tester limit is known of {}; {remedy}", missing.join(", ")));
        }
        _ => {}
    }
    tell(&limits);
    Ok(limits)
}

/// Says which calibrations the limits are of, and how old these are.
fn tell(limits: &[Calibrated]) {
    let mut of: BTreeMap<&RecordId, (&Calibrated, Vec<&str>)> = BTreeMap::new();
    for limit in limits {
        if let CalibratedSubject::Result(name) = &limit.subject {
            of.entry(&limit.record).or_insert_with(|| (limit, Vec::new())).1.push(name);
        }
    }
    for (id, (limit, names)) in of {
        let how = match limit.bypass {
            Bypass::Cable => "",
            Bypass::Loopback => ", loopback of each host: an upper estimate",
        };
        let age = age_in_words(limit.age);
        say(&format!("linerate: tester limit of {}: calibration {id}, {age} old{how}", names.join(", ")));
    }
}
