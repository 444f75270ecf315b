//! Which level of a factor is ahead, in cells that agree in all else.

use super::data::{Data, Group, Pair};
use super::words::{listed, multiple, p_value};
use super::{finding, sign_tested, test};
use crate::language::Language;
use crate::said;
use crate::sentences::sentence;
use linerate_method::statistics::{SIGNIFICANT, Tested, median};
use linerate_model::{Evidence, Finding, FindingKind};

/// At most so many levels are compared pair by pair; of more, the order is given.
const MOST_PAIRED: usize = 3;

/// The test behind a match.
pub(super) fn sign_test_of(lang: Language) -> String {
    said!(lang, "findings-ranking-sign-test")
}

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    factors(data, measure).flat_map(|factor| of_factor(data, measure, factor)).collect()
}

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    let strata = |factor| strata(data, measure, factor);
    factors(data, measure)
        .flat_map(|factor| matches(data, measure, factor, &strata(factor)))
        .map(|one| one.tested())
        .collect()
}

/// The factors whose levels are ranked.
fn factors<'a>(data: &'a Data<'_>, measure: usize) -> impl Iterator<Item = usize> + 'a {
    // Of rates there is a rule of its own for transports.
    let told = data.transport_factor().filter(|_| data.study.measures[measure].unit.is_rate());
    data.unordered().filter(move |factor| Some(*factor) != told)
}

/// Which of two values of a measure is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// The higher: of rates.
    More,
    /// The lower: of latency and of what was lost.
    Less,
}

impl Ahead {
    pub(super) fn of(data: &Data<'_>, measure: usize) -> Self {
        if data.study.measures[measure].unit.is_rate() { Self::More } else { Self::Less }
    }

    /// The message for this one, of two that hold the same.
    pub(super) fn either(self, more: &'static str, lower: &'static str) -> &'static str {
        match self {
            Self::More => more,
            Self::Less => lower,
        }
    }

    /// Whether `one` is ahead of `other`.
    pub(super) fn is(self, one: f64, other: f64) -> bool {
        match self {
            Self::More => one > other,
            Self::Less => one < other,
        }
    }
}

/// Two levels of a factor, in the cells of one group.
pub(super) struct Match {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) stratum: usize,
    /// Pairs in which `a` is ahead, in which `b` is, and all.
    pub(super) wins: usize,
    pub(super) losses: usize,
    pub(super) all: usize,
    /// The value of `a` as a multiple of that of `b`, in the middle; infinite where `b` has none.
    pub(super) ratio: f64,
    /// The p-value, adjusted for the tests of the study ([`adjusted`]).
    pub(super) p: f64,
}

impl Match {
    /// The match of these pairs, whose p-value still stands by itself.
    pub(super) fn of(ahead: Ahead, a: usize, b: usize, stratum: usize, pairs: &[Pair]) -> Option<Self> {
        let wins = pairs.iter().filter(|pair| ahead.is(pair.a.1, pair.b.1)).count();
        let losses = pairs.iter().filter(|pair| ahead.is(pair.b.1, pair.a.1)).count();
        let some = pairs.iter().filter(|pair| pair.a.1 > 0.0 || pair.b.1 > 0.0);
        let ratio = median(some.map(|pair| pair.a.1 / pair.b.1).collect())?;
        Some(Self { a, b, stratum, wins, losses, all: pairs.len(), ratio, p: sign_tested(wins, losses).p })
    }

    /// Its test by itself.
    pub(super) fn tested(&self) -> Tested {
        sign_tested(self.wins, self.losses)
    }

    /// The level ahead, where one surely is.
    pub(super) fn winner(&self) -> Option<usize> {
        (self.p < SIGNIFICANT).then_some(if self.wins > self.losses { self.a } else { self.b })
    }

    /// The match in words, the level that is ahead in more pairs first.
    pub(super) fn said(&self, lang: Language, a: &str, b: &str) -> String {
        let (first, second) = if self.wins >= self.losses { (a, b) } else { (b, a) };
        let (ahead, ratio) = self.lead();
        said!(
            lang,
            "findings-ranking-is-ahead",
            first = first,
            second = second,
            ahead = ahead,
            all = self.all,
            behind = self.wins.min(self.losses),
            median = multiple(lang, ratio),
            p = p_value(self.p)
        )
    }

    /// Pairs that the level ahead wins, and how many times as much it has.
    pub(super) fn lead(&self) -> (usize, f64) {
        if self.wins >= self.losses { (self.wins, self.ratio) } else { (self.losses, 1.0 / self.ratio) }
    }
}

/// Adjusts the p-values for all tests of the study.
pub(super) fn adjusted(data: &Data<'_>, mut matches: Vec<Match>) -> Vec<Match> {
    matches.iter_mut().for_each(|one| one.p = data.adjusted(one.tested()));
    matches
}

/// The groups within which levels of `factor` are compared.
fn strata(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Group> {
    // What a medium can carry hides what a host could: each medium by itself, unless media are what is ranked.
    data.groups(data.medium_factor().filter(|by| *by != factor), measure)
}

/// The levels of `factor` that are compared: all but the tester.
fn contestants(data: &Data<'_>, factor: usize) -> Vec<usize> {
    let levels = &data.study.factors[factor].levels;
    (0..levels.len()).filter(|level| !levels[*level].tester).collect()
}

/// Every two levels of `factor` in each group, p-values not adjusted yet.
fn matches(data: &Data<'_>, measure: usize, factor: usize, strata: &[Group]) -> Vec<Match> {
    let ahead = Ahead::of(data, measure);
    let levels = contestants(data, factor);
    let mut matches = Vec::new();
    for (index, a) in levels.iter().enumerate() {
        for b in &levels[index + 1..] {
            let pairs = data.pairs(factor, *a, *b, measure);
            for (stratum, group) in strata.iter().enumerate() {
                let within: Vec<Pair> = pairs.iter().copied().filter(|pair| group.cells.contains(&pair.a.0)).collect();
                matches.extend(Match::of(ahead, *a, *b, stratum, &within));
            }
        }
    }
    matches
}

fn of_factor(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Finding> {
    let (strata, levels) = (strata(data, measure, factor), contestants(data, factor));
    let matches = adjusted(data, matches(data, measure, factor, &strata));
    // A few levels are compared pair by pair; of many the order is given.
    let many = levels.len() > MOST_PAIRED;
    let mut found = Vec::new();
    if strata.len() == 1 || many {
        for (stratum, group) in strata.iter().enumerate() {
            let within: Vec<&Match> = matches.iter().filter(|one| one.stratum == stratum).collect();
            let on = (strata.len() > 1).then_some(group.name.as_str());
            found.extend(order(data, measure, factor, &levels, &within, on));
        }
    }
    for (index, a) in levels.iter().enumerate() {
        for b in &levels[index + 1..] {
            let of_both: Vec<&Match> = matches.iter().filter(|one| (one.a, one.b) == (*a, *b)).collect();
            if strata.len() > 1 && !many {
                found.extend(over_strata(data, measure, factor, &strata, &of_both));
            } else if same_medium(data, measure, factor, *a, *b) {
                found.extend(of_both.iter().filter_map(|one| same_wire(data, measure, factor, one)));
            }
        }
    }
    found
}

fn same_medium(data: &Data<'_>, measure: usize, factor: usize, a: usize, b: usize) -> bool {
    let pairs = data.pairs(factor, a, b, measure);
    let media = |pair: &Pair| (data.medium(pair.a.0, measure), data.medium(pair.b.0, measure));
    data.medium_factor() == Some(factor)
        && !pairs.is_empty()
        && pairs.iter().all(|pair| matches!(media(pair), (Some(a), Some(b)) if a == b))
}

fn evidence(data: &Data<'_>, factor: usize, one: &Match, on: &str) -> Evidence {
    let on = if on.is_empty() { String::new() } else { format!("{on}: ") };
    let (a, b) = (data.name_of(factor, one.a), data.name_of(factor, one.b));
    test(&sign_test_of(data.lang), one.p, format!("{on}{}", one.said(data.lang, &a, &b)))
}

/// One level against another, on each medium.
fn over_strata(
    data: &Data<'_>,
    measure: usize,
    factor: usize,
    strata: &[Group],
    matches: &[&Match],
) -> Option<Finding> {
    let decided: Vec<&&Match> = matches.iter().filter(|one| one.winner().is_some()).collect();
    let winner = decided.first()?.winner()?;
    let (same, against): (Vec<&&Match>, Vec<&&Match>) =
        decided.into_iter().partition(|one| one.winner() == Some(winner));
    let first = same.first()?;
    let loser = if first.a == winner { first.b } else { first.a };
    let on = |matches: &[&&Match]| {
        listed(data.lang, &matches.iter().map(|one| strata[one.stratum].name.clone()).collect::<Vec<_>>())
    };
    let (winner, loser) = (data.name_of(factor, winner), data.name_of(factor, loser));
    let title = &data.study.measures[measure].title;
    let clauses: Vec<String> = same
        .iter()
        .map(|one| {
            let (ahead, ratio) = one.lead();
            said!(
                data.lang,
                "findings-ranking-on",
                group = strata[one.stratum].name,
                ahead = ahead,
                all = one.all,
                median = multiple(data.lang, ratio)
            )
        })
        .collect();
    let (more, clauses) = (Ahead::of(data, measure) == Ahead::More, listed(data.lang, &clauses));
    let mut text = if more {
        said!(data.lang, "findings-ranking-more", winner = winner, title = title, loser = loser, clauses = clauses)
    } else {
        said!(data.lang, "findings-ranking-lower", winner = winner, title = title, loser = loser, clauses = clauses)
    };
    if !against.is_empty() {
        text.push_str(&if more {
            said!(data.lang, "findings-ranking-less-on", groups = on(&against))
        } else {
            said!(data.lang, "findings-ranking-higher-on", groups = on(&against), title = title)
        });
    }
    let undecided: Vec<&&Match> = matches.iter().filter(|one| one.winner().is_none()).collect();
    if !undecided.is_empty() {
        text.push_str(&said!(data.lang, "findings-ranking-neither-on", groups = on(&undecided)));
    }
    let evidence = matches.iter().map(|one| evidence(data, factor, one, &strata[one.stratum].name)).collect();
    Some(finding(FindingKind::Ranking, text, evidence))
}

/// Two levels that differ over one and the same medium.
fn same_wire(data: &Data<'_>, measure: usize, factor: usize, one: &Match) -> Option<Finding> {
    let winner = one.winner()?;
    let (ahead, ratio) = one.lead();
    let medium = data.study.factors[factor].levels[winner].path.medium?;
    let (a, b, winner) = (data.name_of(factor, one.a), data.name_of(factor, one.b), data.name_of(factor, winner));
    let (title, median) = (&data.study.measures[measure].title, multiple(data.lang, ratio));
    let text = said!(
        data.lang,
        Ahead::of(data, measure).either("findings-ranking-same-medium-more", "findings-ranking-same-medium-lower"),
        a = a,
        b = b,
        medium = medium,
        winner = winner,
        title = title,
        ahead = ahead,
        all = one.all,
        median = median
    );
    Some(finding(FindingKind::Ranking, text, vec![evidence(data, factor, one, "")]))
}

/// All levels of a factor in order, as far as tests separate them, in one group or in all results.
fn order(
    data: &Data<'_>,
    measure: usize,
    factor: usize,
    levels: &[usize],
    matches: &[&Match],
    on: Option<&str>,
) -> Option<Finding> {
    let decided = |a: usize, b: usize| {
        let one = matches.iter().find(|one| (one.a, one.b) == (a.min(b), a.max(b)))?;
        one.winner()
    };
    let matched: Vec<usize> =
        levels.iter().copied().filter(|level| matches.iter().any(|one| one.a == *level || one.b == *level)).collect();
    let score = |level: usize| {
        let of = |other: usize| decided(level, other).map_or(0i64, |winner| if winner == level { 1 } else { -1 });
        matched.iter().filter(|other| **other != level).map(|other| of(*other)).sum::<i64>()
    };
    let mut sorted = matched.clone();
    sorted.sort_by_key(|level| std::cmp::Reverse(score(*level)));
    // Levels of which none is surely ahead of another stand together.
    let mut places: Vec<Vec<usize>> = Vec::new();
    for level in sorted {
        match places.last_mut() {
            Some(place) if place.iter().all(|other| decided(*other, level).is_none()) => place.push(level),
            _ => places.push(vec![level]),
        }
    }
    // Only where each place is surely ahead of the next is this an order.
    let ahead = |pair: &[Vec<usize>]| pair[0].iter().any(|a| pair[1].iter().any(|b| decided(*a, *b) == Some(*a)));
    if places.len() < 2 || !places.windows(2).all(ahead) {
        return None;
    }
    let said: Vec<String> = places
        .iter()
        .map(|place| {
            let names: Vec<String> = place.iter().map(|level| data.name_of(factor, *level)).collect();
            match place.len() {
                1 => names[0].clone(),
                2 => said!(data.lang, "findings-ranking-neither-ahead", names = listed(data.lang, &names)),
                _ => said!(data.lang, "findings-ranking-none-ahead", names = listed(data.lang, &names)),
            }
        })
        .collect();
    let (title, named) = (&data.study.measures[measure].title, &data.study.factors[factor].title);
    let places = said.join(&said!(data.lang, "findings-ranking-then"));
    let key = Ahead::of(data, measure).either("findings-ranking-most-first", "findings-ranking-lowest-first");
    let mut text = said!(data.lang, key, title = title, factor = named, places = places);
    if let Some(group) = on {
        text = said!(data.lang, "findings-ranking-on-one", group = group, order = text);
    }
    let evidence = matches.iter().map(|one| evidence(data, factor, one, "")).collect();
    Some(finding(FindingKind::Ranking, sentence(&text), evidence))
}
