//! The calibration for a run, out of those that there are.

use super::fit::{Misfit, Uncalibrated, fit};
use linerate_model::{Bypass, Calibrated, CalibratedSubject, Record, RecordId};
use std::collections::BTreeMap;

/// Looks at one calibration after the other, the newest first. For each result the newest that fits counts; one by cable goes before
/// one by loopback.
pub struct Search<'a> {
    run: Uncalibrated<'a>,
    limits: BTreeMap<String, Calibrated>,
    misfit: Option<(RecordId, Misfit)>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The tester limits.
    pub limits: Vec<Calibrated>,
    /// Results for which there is none.
    pub missing: Vec<String>,
    /// The newest calibration of these hosts that does not fit, and why.
    pub misfit: Option<(RecordId, Misfit)>,
}

impl<'a> Search<'a> {
    /// A search for the tester limits of `run`, nothing looked at yet.
    pub fn new(run: Uncalibrated<'a>) -> Self {
        Self { run, limits: BTreeMap::new(), misfit: None }
    }

    /// Takes the next older calibration.
    pub fn take(&mut self, calibration: &Record) {
        match fit(calibration, &self.run) {
            Ok(fit) => {
                for limit in fit.limits {
                    let CalibratedSubject::Result(name) = &limit.subject else { continue };
                    let better = |known: &Calibrated| known.bypass == Bypass::Cable || limit.bypass == Bypass::Loopback;
                    if !self.limits.get(name).is_some_and(better) {
                        self.limits.insert(name.clone(), limit);
                    }
                }
            }
            Err(misfit @ (Misfit::Changed { .. } | Misfit::OtherSettings(_))) => {
                self.misfit.get_or_insert((calibration.id.clone(), misfit));
            }
            // Those of other hosts are nothing to tell of.
            Err(Misfit::OtherHosts { .. } | Misfit::NotACalibration | Misfit::NothingToCompare) => {}
        }
    }

    /// Whether older calibrations can add nothing.
    pub fn is_complete(&self) -> bool {
        let by_cable = |name: &str| self.limits.get(name).is_some_and(|limit| limit.bypass == Bypass::Cable);
        self.run.subjects().iter().all(|subject| by_cable(subject.name))
    }

    /// Returns what was found.
    pub fn found(self) -> Found {
        let subjects = self.run.subjects();
        let missing = subjects.iter().filter(|subject| !self.limits.contains_key(subject.name));
        Found {
            missing: missing.map(|subject| subject.name.to_owned()).collect(),
            limits: self.limits.into_values().collect(),
            misfit: self.misfit,
        }
    }
}
