//! Results compared with the tester limit: a result that reaches it does not measure the device.

use super::data::Data;
use super::words::{listed, p_value, share, with_semicolons};
use super::{bound, finding, sign_tested, test};
use crate::finding::{Finding, FindingKind};
use linerate_method::statistics::{SIGNIFICANT, Tested};
use linerate_report::parts::values::{extremes, value};
use linerate_report::said;

/// Lowest share of the tester limit at which a single result counts as at the limit.
const AT: f64 = 0.9;

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    (0..data.study.factors.len()).flat_map(|factor| compared(data, measure, factor)).map(|one| one.tested()).collect()
}

/// Returns the devices of a factor against the tester alone, with p-values that are not adjusted.
fn compared(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Compared> {
    let levels = &data.study.factors[factor].levels;
    let Some(tester) = levels.iter().position(|level| level.tester) else { return Vec::new() };
    let devices = (0..levels.len()).filter(|level| *level != tester);
    devices.filter_map(|level| Compared::of(data, measure, factor, level, tester)).collect()
}

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    for factor in 0..data.study.factors.len() {
        let mut compared = compared(data, measure, factor);
        compared.iter_mut().for_each(|one| one.p = data.adjusted(one.tested()));
        let (at, below): (Vec<Compared>, Vec<Compared>) = compared.into_iter().partition(Compared::is_at);
        found.extend(at_limit(data, factor, &at));
        found.extend(below.iter().filter_map(|one| below_limit(data, factor, one)));
    }
    found
}

/// A device against the tester alone, in cells that differ in nothing else.
struct Compared {
    level: usize,
    /// The lowest and the highest share of the tester limit.
    least: f64,
    most: f64,
    above: usize,
    below: usize,
    all: usize,
    /// The p-value of the sign test, adjusted for the tests of the study.
    p: f64,
    said: String,
}

impl Compared {
    /// Returns whether it is near the tester limit in all cells, and not significantly below it.
    fn is_at(&self) -> bool {
        self.least >= AT && (self.above >= self.below || self.p >= SIGNIFICANT)
    }

    /// Returns its test, not adjusted.
    fn tested(&self) -> Tested {
        sign_tested(self.above, self.below)
    }

    fn of(data: &Data<'_>, measure: usize, factor: usize, level: usize, tester: usize) -> Option<Self> {
        let pairs = data.pairs(factor, level, tester, measure);
        let pairs: Vec<_> = pairs.into_iter().filter(|pair| pair.b.1 > 0.0).collect();
        let (least, most) = extremes(pairs.iter().map(|pair| pair.a.1 / pair.b.1))?;
        let unit = data.study.measures[measure].unit;
        let said: Vec<String> = pairs
            .iter()
            .map(|pair| {
                said!(
                    data.lang,
                    "findings-words-reached-of",
                    "{name}: {reached} of {most}",
                    name = data.cell_name(pair.a.0, &[factor]),
                    reached = value(pair.a.1, unit),
                    most = value(pair.b.1, unit)
                )
            })
            .collect();
        let above = pairs.iter().filter(|pair| pair.a.1 > pair.b.1).count();
        let below = pairs.iter().filter(|pair| pair.a.1 < pair.b.1).count();
        Some(Self {
            level,
            least,
            most,
            above,
            below,
            all: pairs.len(),
            p: sign_tested(above, below).p,
            said: with_semicolons(data.lang, &said),
        })
    }
}

fn at_limit(data: &Data<'_>, factor: usize, at: &[Compared]) -> Option<Finding> {
    if at.is_empty() {
        return None;
    }
    let names: Vec<String> = at.iter().map(|one| data.name_of(factor, one.level)).collect();
    let least = at.iter().map(|one| one.least).fold(f64::INFINITY, f64::min);
    let names = listed(data.lang, &names);
    let text = said!(
        data.lang,
        "findings-tester-limit-at",
        "The results of {names} are at the tester limit: they reach at least {share} of what the tester reaches without \
         a device. So the device carries at least as much, and maybe more.",
        names = names,
        share = share(least)
    );
    let evidence = at.iter().flat_map(|one| {
        let p = one.p;
        let name = data.name_of(factor, one.level);
        [
            bound(said!(
                data.lang,
                "findings-tester-limit-reaches", "{name} reaches from {least} to {most} of the tester limit: {each}.",
                name = name,
                least = share(one.least),
                most = share(one.most),
                each = one.said
            )),
            test(
                &said!(data.lang, "findings-tester-limit-sign-test", "sign test, exact, two-sided, Holm-adjusted over the study"),
                p,
                said!(
                    data.lang,
                    "findings-tester-limit-not-shown-to-be-below", "{name} is above the tester limit in {above} of {all} pairs and below it in {below}, {p}: it is not \
                     shown to be below.",
                    name = name,
                    above = one.above,
                    all = one.all,
                    below = one.below,
                    p = p_value(p)
                ),
            ),
        ]
    });
    Some(finding(FindingKind::TesterLimit, text, evidence.collect()))
}

fn below_limit(data: &Data<'_>, factor: usize, one: &Compared) -> Option<Finding> {
    (one.most < AT).then(|| {
        let name = data.name_of(factor, one.level);
        let text = said!(
            data.lang,
            "findings-tester-limit-below",
            "The results of {name} are below the tester limit: they reach at most {share} of it, so the device \
             makes a difference.",
            name = name,
            share = share(one.most)
        );
        let evidence = bound(said!(
            data.lang,
            "findings-tester-limit-from-to",
            "From {least} to {most} of the tester limit: {each}.",
            least = share(one.least),
            most = share(one.most),
            each = one.said
        ));
        finding(FindingKind::BelowTesterLimit, text, vec![evidence])
    })
}
