//! Conditions under which the order of two levels is reversed.

use super::data::{Data, Pair};
use super::ranking::Ahead;
use super::words::{listed, p_value};
use super::{finding, test};
use crate::finding::{Finding, FindingKind};
use linerate_method::statistics::{SIGNIFICANT, Tested, fisher_test, median};
use linerate_model::text;
use linerate_report::said;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of pairs that show an order.
const FEWEST_PAIRS: usize = 3;
/// Minimum share of pairs that the level won where the order is reversed.
const CLEAR: f64 = 0.8;

/// Minimum median ratio where the order is reversed.
const WORTH_SAYING: f64 = 1.05;
/// Maximum number of levels that describe where the order is reversed.
const MOST_CONDITIONS: usize = 3;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    data.unordered().flat_map(|factor| of_factor(data, measure, factor)).collect()
}

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    let of_factor = |factor| {
        let turn = move |contest: Contest| contest.turn(data, factor).tested;
        contests(data, measure, factor).into_iter().map(turn)
    };
    data.unordered().flat_map(of_factor).collect()
}

fn of_factor(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Finding> {
    let told = |contest: &Contest| contest.told(data, measure, factor);
    contests(data, measure, factor).iter().filter_map(told).collect()
}

/// Returns the contests of every two levels of a factor.
fn contests(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Contest> {
    let levels = &data.study.factors[factor].levels;
    let kept: Vec<usize> = (0..levels.len()).filter(|level| !levels[*level].tester).collect();
    let contests = kept.iter().enumerate().flat_map(|(index, a)| kept[index + 1..].iter().map(move |b| (*a, *b)));
    contests.filter_map(|(a, b)| Contest::of(data, measure, factor, a, b)).collect()
}

/// Two levels in cells that differ in nothing else but the result.
struct Contest {
    /// Level that is ahead in most pairs.
    first: usize,
    second: usize,
    /// Ratio of the second result to the first in each pair, and the levels of its cells.
    pairs: Vec<(f64, Vec<Option<usize>>)>,
    /// Number of pairs with equal results, which `pairs` leaves out.
    ties: usize,
}

/// A level of a factor.
type Condition = (usize, usize);

/// Pairs of cells that have certain levels.
struct Subset {
    conditions: Vec<Condition>,
    members: Vec<usize>,
}

/// Part of a contest in which the order is reversed.
struct Turn {
    /// `None` if there are no parts.
    part: Option<Subset>,
    /// Test, adjusted for the number of parts.
    tested: Tested,
    looked_at: usize,
}

impl Contest {
    fn of(data: &Data<'_>, measure: usize, factor: usize, a: usize, b: usize) -> Option<Self> {
        let (pairs, ties): (Vec<Pair>, Vec<Pair>) =
            data.pairs(factor, a, b, measure).into_iter().partition(|pair| pair.a.1 != pair.b.1);
        let ahead = Ahead::of(data, measure);
        let wins = pairs.iter().filter(|pair| ahead.is(pair.a.1, pair.b.1)).count();
        let swapped = wins * 2 < pairs.len();
        let of = |pair: &Pair| {
            let (first, second) = if swapped { (pair.b.1, pair.a.1) } else { (pair.a.1, pair.b.1) };
            let times = match ahead {
                Ahead::More => second / first,
                Ahead::Less => first / second,
            };
            (times, data.study.cells[pair.a.0].levels.clone())
        };
        (pairs.len() > FEWEST_PAIRS).then(|| Self {
            first: if swapped { b } else { a },
            second: if swapped { a } else { b },
            pairs: pairs.iter().map(of).collect(),
            ties: ties.len(),
        })
    }

    /// Returns the number of these pairs in which the second is ahead.
    fn turned(&self, members: &[usize]) -> usize {
        members.iter().filter(|member| self.pairs[**member].0 > 1.0).count()
    }

    /// Where the order turns round most surely. The p-value is adjusted for the parts that were looked at (Bonferroni),
    /// so that a contest counts as one test of the study.
    fn turn(&self, data: &Data<'_>, factor: usize) -> Turn {
        let all: Vec<usize> = (0..self.pairs.len()).collect();
        let behind = self.turned(&all);
        let parts = self.parts(data, factor);
        let looked_at = parts.len();
        let clear = |part: &Subset| {
            let ratios = part.members.iter().map(|member| self.pairs[*member].0).collect();
            self.turned(&part.members) as f64 >= CLEAR * part.members.len() as f64
                && median(ratios).is_some_and(|ratio| ratio >= WORTH_SAYING)
        };
        let chance = |part: &Subset| {
            let p = |turned: usize| {
                let p = fisher_test(all.len(), behind, part.members.len(), turned);
                (p * looked_at as f64).min(1.0)
            };
            let least = p(behind.min(part.members.len()));
            Tested { p: if clear(part) { p(self.turned(&part.members)) } else { 1.0 }, least }
        };
        let tested: Vec<Tested> = parts.iter().map(chance).collect();
        let least = tested.iter().map(|test| test.least).fold(1.0, f64::min);
        let surest = parts.into_iter().zip(tested).min_by(|(_, one), (_, other)| one.p.total_cmp(&other.p));
        let (part, p) = surest.map_or((None, 1.0), |(part, test)| (Some(part), test.p));
        Turn { part, tested: Tested { p, least }, looked_at }
    }

    /// Returns the finding if the reversal is significant.
    fn told(&self, data: &Data<'_>, measure: usize, factor: usize) -> Option<Finding> {
        let Turn { part, tested, looked_at } = self.turn(data, factor);
        let (part, p) = (part?, data.adjusted(tested));
        if p >= SIGNIFICANT {
            return None;
        }
        let all: Vec<usize> = (0..self.pairs.len()).collect();
        let behind = self.turned(&all);
        // Elsewhere the first must be ahead, else nothing turns round.
        let (here, turned) = (part.members.len(), self.turned(&part.members));
        let elsewhere = all.len() - here;
        let ahead_elsewhere = elsewhere - (behind - turned);
        if ahead_elsewhere * 2 <= elsewhere {
            return None;
        }
        let (first, second) = (data.name_of(factor, self.first), data.name_of(factor, self.second));
        let title = &data.study.measures[measure].title;
        let with: Vec<String> = part.conditions.iter().map(|(factor, level)| data.name_of(*factor, *level)).collect();
        let with = listed(data.lang, &with);
        let text = said!(
            data.lang,
            Ahead::of(data, measure).either(
                text!("findings-crossover-more", "{first} is not always ahead of {second}: with {with} it is {second} that has more {title}, in {turned} \
                 of {here} pairs of cells; elsewhere {first} has more, in {ahead} of {elsewhere}."),
                text!(
                    "findings-crossover-lower",
                    "{first} is not always ahead of {second}: with {with} it is {second} that has lower {title}, in \
                 {turned} of {here} pairs of cells; elsewhere that of {first} is lower, in {ahead} of {elsewhere}."
                )
            ),
            first = first,
            second = second,
            with = with,
            title = title,
            turned = turned,
            here = here,
            ahead = ahead_elsewhere,
            elsewhere = elsewhere
        );
        let ties = match self.ties {
            0 => String::new(),
            ties => {
                said!(data.lang, "findings-crossover-ties", " {ties} pairs of equal results are left out.", ties = ties)
            }
        };
        let evidence = test(
            &said!(
                data.lang,
                "findings-crossover-fishers-test",
                "Fisher's exact test, one-sided, Bonferroni-adjusted for parts, Holm-adjusted over the study"
            ),
            p,
            said!(
                data.lang,
                "findings-crossover-ahead-in",
                "{second} is ahead in {turned} of {here} such pairs and in {others} of {elsewhere} others; {p}, \
                 adjusted for the {parts} parts that were looked at and for all tests of the study.{ties}",
                second = second,
                turned = turned,
                here = here,
                others = behind - turned,
                elsewhere = elsewhere,
                p = p_value(p),
                parts = looked_at,
                ties = ties
            ),
        );
        Some(finding(FindingKind::Crossover, text, vec![evidence]))
    }

    /// Returns the parts with neither too few pairs nor all of them; of several descriptions of a part, the shortest.
    /// Numeric levels are not combined with others: with more conditions they would leave too few pairs to show anything.
    fn parts(&self, data: &Data<'_>, but: usize) -> Vec<Subset> {
        let mut ways: BTreeMap<(usize, Vec<Condition>), Vec<usize>> = BTreeMap::new();
        for (index, (_, levels)) in self.pairs.iter().enumerate() {
            let of = |factor: usize| Some((factor, levels[factor]?));
            let others = (0..levels.len()).filter(|factor| *factor != but).filter_map(of);
            let (numbers, words): (Vec<_>, Vec<_>) =
                others.partition(|(factor, _)| data.study.factors[*factor].unit.is_some());
            let mut conditions: Vec<Vec<Condition>> = vec![Vec::new()];
            for one in words {
                let with: Vec<_> = conditions
                    .iter()
                    .filter(|some| some.len() < MOST_CONDITIONS)
                    .map(|some| [&some[..], &[one]].concat())
                    .collect();
                conditions.extend(with);
            }
            conditions.extend(numbers.into_iter().map(|one| vec![one]));
            for some in conditions.into_iter().filter(|some| !some.is_empty()) {
                ways.entry((some.len(), some)).or_default().push(index);
            }
        }
        let mut known = BTreeSet::new();
        ways.into_iter()
            .filter(|(_, members)| {
                (FEWEST_PAIRS..self.pairs.len()).contains(&members.len()) && known.insert(members.clone())
            })
            .map(|((_, conditions), members)| Subset { conditions, members })
            .collect()
    }
}
