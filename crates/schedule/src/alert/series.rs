//! Results of one pair, and whether their level changed.

use linerate_method::statistics::{FEWEST, change_points, median};
use linerate_model::{Headline, MeasureUnit};

/// Results that are kept of a pair.
const KEPT: usize = 40;
/// Fewest results at a new level.
const AFTER: usize = 4;
/// Least distance of two levels, in median absolute deviations from their medians.
const DISTANCE: f64 = 6.0;
/// Results after which a new level is taken as normal.
const NORMAL_AFTER: usize = 24;

/// Results of one pair of a mesh, the newest last.
#[derive(Debug, Clone)]
pub(super) struct Series {
    values: Vec<f64>,
    unit: MeasureUnit,
    pub(super) change: Option<LevelChange>,
}

/// A change for the worse that lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LevelChange {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) since: u64,
    results: usize,
}

impl Series {
    pub(super) fn new(unit: MeasureUnit) -> Self {
        Self { values: Vec::new(), unit, change: None }
    }

    pub(super) fn unit(&self) -> MeasureUnit {
        self.unit
    }

    pub(super) fn newest(&self) -> Option<f64> {
        self.values.last().copied()
    }

    /// Adds a result. Returns whether it shows that the level changed for the worse.
    ///
    /// A change has to pass the test of the trend ([`change_points`], with false alarms in 1 % of series), to be
    /// larger than the change that lists of results mark, and larger than the scatter: a series is tested again with each result,
    /// and a mesh has many series.
    pub(super) fn add(&mut self, value: f64, unit: MeasureUnit, at: u64) -> bool {
        if !value.is_finite() {
            return false;
        }
        if unit != self.unit {
            *self = Self::new(unit);
        }
        self.values.push(value);
        if self.values.len() > KEPT {
            self.values.remove(0);
        }
        if let Some(change) = &mut self.change {
            change.results += 1;
            let recent = recent_median(&self.values, 3);
            let is_back = (recent - change.before).abs() < (change.after - change.before).abs() / 2.0;
            if is_back || change.results > NORMAL_AFTER {
                let kept = if is_back { 3 } else { NORMAL_AFTER };
                let first = self.values.len().saturating_sub(kept);
                self.values.drain(..first);
                self.change = None;
            }
            return false;
        }
        self.change = self.worse_level(at);
        self.change.is_some()
    }

    fn worse_level(&self, at: u64) -> Option<LevelChange> {
        let count = self.values.len();
        // Most series are steady: the test with its random orders is for those that do not look so.
        if count < FEWEST || !self.is_worse(&self.values[..count - AFTER], &self.values[count - AFTER..]) {
            return None;
        }
        let changes = change_points(&self.values);
        let place = changes.last()?.at;
        let first = changes.iter().rev().nth(1).map_or(0, |change| change.at);
        let (before, after) = (&self.values[first..place], &self.values[place..]);
        if after.len() < AFTER || before.len() < AFTER || !self.is_worse(before, after) {
            return None;
        }
        Some(LevelChange { before: level(before), after: level(after), since: at, results: 0 })
    }

    fn is_worse(&self, before: &[f64], after: &[f64]) -> bool {
        let (old, new) = (level(before), level(after));
        let is_worse = if self.unit.more_is_better() { new < old } else { new > old };
        let mut scatter: Vec<f64> = before.iter().map(|value| (value - old).abs()).collect();
        scatter.extend(after.iter().map(|value| (value - new).abs()));
        is_worse && (new - old).abs() > (old.abs() * Headline::CHANGED).max(level(&scatter) * DISTANCE)
    }
}

fn level(values: &[f64]) -> f64 {
    median(values.to_vec()).unwrap_or_default()
}

fn recent_median(values: &[f64], count: usize) -> f64 {
    level(&values[values.len().saturating_sub(count)..])
}
