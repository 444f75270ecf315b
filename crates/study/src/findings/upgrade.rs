//! A faster medium that brings little.

use super::data::{Data, Pair};
use super::words::{listed, times, times_range, with_semicolons};
use super::{bound, finding};
use crate::finding::{Finding, FindingKind};
use linerate_report::parts::values::{extremes, value};
use linerate_report::said;

/// Minimum ratio of the limits for a faster medium.
const FASTER: f64 = 2.0;
/// A gain below this share of the possible gain, in every pair of cells, is little.
const LITTLE: f64 = 0.5;

/// Maximum number of pairs that are all given; of more, only the extremes are.
const MOST_NAMED: usize = 6;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let Some(factor) = data.medium_factor() else { return Vec::new() };
    let levels = &data.study.factors[factor].levels;
    let mut found = Vec::new();
    for slow in 0..levels.len() {
        // Interfaces of one medium are one upgrade.
        let mut upgrades: Vec<Upgrade> = Vec::new();
        for fast in 0..levels.len() {
            let Some(one) = Upgrade::of(data, measure, factor, slow, fast) else { continue };
            match upgrades.iter_mut().find(|known| levels[known.fast[0]].path.medium == levels[fast].path.medium) {
                Some(known) => known.join(one),
                None => upgrades.push(one),
            }
        }
        found.extend(upgrades.iter().filter_map(|upgrade| upgrade.finding(data, measure, factor)));
    }
    found
}

/// A slow level against faster ones of one medium, each of which brings little.
struct Upgrade {
    slow: usize,
    fast: Vec<usize>,
    pairs: Vec<Pair>,
    /// Lowest ratio of the limits.
    could: f64,
}

impl Upgrade {
    fn of(data: &Data<'_>, measure: usize, factor: usize, slow: usize, fast: usize) -> Option<Self> {
        let pairs = data.pairs(factor, fast, slow, measure).into_iter();
        let pairs: Vec<Pair> = pairs.filter(|pair| pair.b.1 > 0.0).collect();
        let mut could = Vec::new();
        for pair in &pairs {
            let (fast, slow) = (data.limit(pair.a.0, measure)?, data.limit(pair.b.0, measure)?);
            // What is above its limit, or at the tester limit, says nothing of the medium.
            if fast.share > 1.0 || slow.share > 1.0 || data.is_tester(pair.a.0) {
                return None;
            }
            could.push(fast.low / slow.high);
        }
        let (could, _) = extremes(could)?;
        let (_, most) = extremes(pairs.iter().map(gain))?;
        (could >= FASTER && most < LITTLE * could).then_some(Self { slow, fast: vec![fast], pairs, could })
    }

    fn join(&mut self, other: Self) {
        self.fast.extend(other.fast);
        self.pairs.extend(other.pairs);
        self.could = self.could.min(other.could);
    }

    fn finding(&self, data: &Data<'_>, measure: usize, factor: usize) -> Option<Finding> {
        let unit = data.study.measures[measure].unit;
        let slow = data.name_of(factor, self.slow);
        let fast: Vec<String> = self.fast.iter().map(|level| data.name_of(factor, *level)).collect();
        let mut pairs = self.pairs.clone();
        pairs.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
        // The level of a pair need not be named if it is the only one.
        let but: &[usize] = if self.fast.len() == 1 { &[factor] } else { &[] };
        let (least, most) = extremes(pairs.iter().map(gain))?;
        let is_short = (2..=MOST_NAMED).contains(&pairs.len());
        let gains = if is_short {
            let clause = |pair: &Pair| {
                let name = data.cell_name(pair.a.0, but);
                said!(
                    data.lang,
                    "findings-upgrade-times-with",
                    "{times} with {name}",
                    times = times(data.lang, gain(pair)),
                    name = name
                )
            };
            with_semicolons(data.lang, &pairs.iter().map(clause).collect::<Vec<_>>())
        } else {
            times_range(data.lang, least, most)
        };
        let text = said!(
            data.lang,
            "findings-upgrade-brings-little",
            if count == 1 {
                "{fast} brings little over {slow}: it can carry {could} as much, but {title} becomes {range}. So the \
                 wire is not the limit there."
            } else {
                "{fast} bring little over {slow}: they can carry {could} as much, but {title} becomes {range}. So the \
                 wire is not the limit there."
            },
            fast = listed(data.lang, &fast),
            count = fast.len(),
            slow = slow,
            could = times(data.lang, self.could),
            title = data.study.measures[measure].title,
            range = gains
        );
        let each: Vec<String> = pairs
            .iter()
            .map(|pair| {
                let name = data.cell_name(pair.a.0, but);
                let (fast, slow) = (value(pair.a.1, unit), value(pair.b.1, unit));
                said!(
                    data.lang,
                    "findings-upgrade-against",
                    "{name}: {fast} against {slow}",
                    name = name,
                    fast = fast,
                    slow = slow
                )
            })
            .collect();
        let each = with_semicolons(data.lang, &each);
        let evidence = match pairs.len() {
            1 => said!(
                data.lang,
                "findings-upgrade-the-one-pair",
                "The one pair of cells that agree in all else: {each}; less than half of what the medium allows.",
                each = each
            ),
            count => said!(
                data.lang,
                "findings-upgrade-all-pairs",
                "All {count} pairs of cells that agree in all else: {each}; less than half of what the medium allows.",
                count = count,
                each = each
            ),
        };
        Some(finding(FindingKind::Upgrade, text, vec![bound(evidence)]))
    }
}

/// Returns the faster result as a multiple of the slower one.
fn gain(pair: &Pair) -> f64 {
    pair.a.1 / pair.b.1
}
