//! The trials of a ladder that are no cells of its plan: raw frames, what times them, and copies.

use super::{copy, frames};
use crate::copy::{CELL, is_complete};
use crate::repeat::{Need, need};
use crate::task::figure;
use linerate_model::{
    Caveat, CaveatKind, LadderPlan, LayerName, Measurement, Message, Planned, Trial, TrialResult, message,
};
use std::collections::BTreeMap;

/// What became of those trials.
pub(super) struct Beside<'a> {
    plan: &'a LadderPlan,
    /// Runs of raw frames whose figures count.
    pub(super) frames: Vec<&'a TrialResult>,
    /// Runs of the echo requests.
    pub(super) echoes: Vec<&'a TrialResult>,
    /// Why there are no echoes any more.
    untimed: Option<Message>,
    /// Copies that came to their end.
    pub(super) copies: Vec<&'a TrialResult>,
    /// Layers that cannot be measured, and why.
    pub(super) without: BTreeMap<LayerName, Message>,
}

impl<'a> Beside<'a> {
    /// Those among `trials`, which are all attempts of the run.
    pub(super) fn of(plan: &'a LadderPlan, trials: &'a [TrialResult]) -> Self {
        let (frames, echoes, copies, without) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        let mut all = Self { plan, frames, echoes, untimed: None, copies, without };
        if let Planned::Missing(why) = &plan.frames {
            all.without.insert(LayerName::Frames, Message::untranslated(why));
        }
        trials.iter().for_each(|result| all.take(result));
        all
    }

    /// Whether `trial` is one of them.
    pub(super) fn has(plan: &LadderPlan, trial: &Trial) -> bool {
        let full = matches!(&plan.frames, Planned::Trial(full) if full.name == trial.name);
        full || plan.echoes.as_ref().is_some_and(|echoes| echoes.name == trial.name) || trial.name == CELL
    }

    fn take(&mut self, result: &'a TrialResult) {
        let named = |trial: &Trial| trial.name == result.trial.name;
        let full = matches!(&self.plan.frames, Planned::Trial(full) if named(full));
        let echoes = self.plan.echoes.as_ref().is_some_and(named);
        let failure = result.failure().map(Message::untranslated);
        match (full, echoes, failure) {
            (true, _, Some(why)) => drop(self.without.insert(LayerName::Frames, why)),
            (_, true, Some(why)) => self.untimed = Some(why),
            (false, false, Some(why)) if result.trial.name == CELL => {
                self.without.insert(LayerName::Copy, why);
            }
            (_, _, None) if !result.is_counted() => {}
            (true, _, None) => self.frames.push(result),
            (_, true, None) => {
                let answered = result.frames().is_some_and(|run| run.counts.streams.iter().any(|s| s.received > 0));
                if !answered {
                    self.untimed = Some(message!("ladder-no-echo", "the receiving host answers no echo requests"));
                }
                self.echoes.push(result);
            }
            (false, false, None) => self.take_copy(result),
            (false, false, Some(_)) => {}
        }
    }

    /// Takes what may be a copy. One that did not come to its end has no figure.
    fn take_copy(&mut self, result: &'a TrialResult) {
        let Some(parts) = result.copy() else { return };
        if is_complete([parts]) {
            self.copies.push(result);
            return;
        }
        let all = parts.sources.iter().chain(&parts.destinations);
        let fault = all.flat_map(|part| &part.counted.faults).next();
        let why = match fault {
            Some(fault) => Message::untranslated(&fault.reason),
            None => message!("ladder-copy-incomplete", "it did not come to its end"),
        };
        self.without.insert(LayerName::Copy, why);
    }

    /// Whether echo requests time the raw frames.
    pub(super) fn times(&self) -> bool {
        self.plan.echoes.is_some() && self.untimed.is_none()
    }

    /// The next trial of the raw-frame layer; none when there are enough, or none is asked for.
    pub(super) fn next_frames(&self) -> Option<&'a Trial> {
        let Planned::Trial(full) = &self.plan.frames else { return None };
        if self.without.contains_key(&LayerName::Frames) {
            return None;
        }
        let rates: Vec<f64> =
            self.frames.iter().map(|run| frames::payload_bps(run, self.plan.ip, self.plan.mtu)).collect();
        // Each is timed after its rate was measured, as often as that.
        let untimed = self.plan.echoes.as_ref().filter(|_| self.times() && self.echoes.len() < rates.len());
        untimed.or_else(|| (need(&self.plan.repeats, &rates) == Need::More).then_some(full))
    }

    /// The next copy, whose size follows from the `results`; none when there are enough, or none can be made.
    pub(super) fn next_copy(&self, results: &[Measurement]) -> Option<Trial> {
        if self.without.contains_key(&LayerName::Copy) {
            return None;
        }
        let Some(first) = self.copies.first() else { return copy::trial(self.plan, results) };
        let rates: Vec<f64> = self.copies.iter().map(|run| figure(run)).collect();
        (need(&self.plan.repeats, &rates) == Need::More).then(|| first.trial.clone())
    }

    /// Doubts about raw frames, each kind once.
    pub(super) fn doubts(&self) -> Vec<Caveat> {
        let runs = self.frames.iter().chain(&self.echoes);
        let of_frames = |caveat: &Caveat| {
            Caveat::new(
                caveat.kind,
                message!("caveat-of-raw-frames", "raw frames: {caveat}", caveat = caveat.text.clone()),
            )
        };
        let mut all: Vec<Caveat> = runs.flat_map(|run| &run.caveats).map(of_frames).collect();
        if let Some(why) = &self.untimed {
            let text = message!(
                "caveat-raw-frames-untimed",
                "raw frames: how long they take there and back is not known: {why}",
                why = why.clone()
            );
            all.push(Caveat::new(CaveatKind::NotMeasured, text));
        }
        all.sort();
        all.dedup_by_key(|caveat| caveat.kind);
        all
    }
}
