//! Ranking of the levels of a factor, in cells that differ in nothing else.

use super::data::{Data, Group, Pair};
use super::rank_sum::{Block, RankSum};
use super::words::{listed, multiple, p_value, with_semicolons};
use super::{bound, finding, sign_tested, test};
use crate::finding::{Evidence, Finding, FindingKind};
use linerate_method::statistics::{Holm, SIGNIFICANT, Tested, median};
use linerate_model::text;
use linerate_report::parts::wording::sentence;
use linerate_report::{Language, said};

/// Maximum number of levels compared as a pair; of more, the order is given.
const PAIR: usize = 2;

/// Returns the name of the sign test.
pub(super) fn sign_test_of(lang: Language) -> String {
    said!(lang, "findings-ranking-sign-test", "sign test, exact, two-sided, Holm-adjusted over the study")
}

/// Returns the name of the test of repeats.
pub(super) fn rank_sum_test_of(lang: Language, test: &RankSum) -> String {
    if test.is_exact {
        said!(
            lang,
            "findings-ranking-rank-sum-test",
            "rank-sum test of the repeats within pairs of cells, exact, two-sided, Holm-adjusted over the study"
        )
    } else {
        said!(
            lang,
            "findings-ranking-rank-sum-test-normal",
            "rank-sum test of the repeats within pairs of cells, normal approximation, two-sided, Holm-adjusted over \
             the study"
        )
    }
}

/// Returns what the test of repeats does not show; `None` if no match has repeats.
pub(super) fn repeats_note<'a>(
    data: &Data<'_>,
    measure: usize,
    matches: impl IntoIterator<Item = &'a Match>,
) -> Option<Evidence> {
    let repeats: Vec<(usize, usize)> =
        matches.into_iter().filter_map(|one| Some(one.ranks.as_ref()?.repeats)).collect();
    let low = repeats.iter().map(|(low, _)| *low).min()?;
    let high = repeats.iter().map(|(_, high)| *high).max()?;
    let count = if low == high {
        said!(data.lang, "findings-ranking-repeats-each", "{count} repeats in each cell", count = high)
    } else {
        said!(data.lang, "findings-ranking-repeats-range", "{low} to {high} repeats in a cell", low = low, high = high)
    };
    // Studies that linerate runs state their order; of others it is not known.
    let key = if data.study.measures[measure].metric.is_some() {
        text!(
            "findings-ranking-repeats-run",
            "The test ranks the repeats within each pair of cells ({count}) and takes them for independent runs. The \
             method states their order, and which factors a person set only once."
        )
    } else {
        text!(
            "findings-ranking-repeats-note",
            "The test ranks the repeats within each pair of cells ({count}) and takes them for independent runs. It \
             does not include what changes when a level is set up again, or from session to session."
        )
    };
    Some(bound(said!(data.lang, key, count = count)))
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

/// Returns the factors whose levels are ranked.
fn factors<'a>(data: &'a Data<'_>, measure: usize) -> impl Iterator<Item = usize> + 'a {
    // Of rates there is a rule of its own for transports.
    let told = data.transport_factor().filter(|_| data.study.measures[measure].unit.is_rate());
    data.unordered().filter(move |factor| Some(*factor) != told)
}

/// Rule for which of two values of a measure is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// The higher value: rates and capacities.
    More,
    /// The lower value: times and losses.
    Less,
}

impl Ahead {
    pub(super) fn of(data: &Data<'_>, measure: usize) -> Self {
        if data.study.measures[measure].unit.more_is_better() { Self::More } else { Self::Less }
    }

    /// Chooses between two messages with the same values.
    pub(super) fn either<T>(self, more: T, lower: T) -> T {
        match self {
            Self::More => more,
            Self::Less => lower,
        }
    }

    /// Returns whether `one` is ahead of `other`.
    pub(super) fn is(self, one: f64, other: f64) -> bool {
        match self {
            Self::More => one > other,
            Self::Less => one < other,
        }
    }
}

/// Two levels of a factor, in the cells of one group.
#[derive(Clone)]
pub(super) struct Match {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) stratum: usize,
    /// Pairs in which `a` is ahead, in which `b` is, and all.
    pub(super) wins: usize,
    pub(super) losses: usize,
    pub(super) all: usize,
    /// Pairs that figures which are not firm leave open. They count against whoever is ahead.
    open: usize,
    /// Whether a figure of them is not firm, so that `lead` is a lower bound.
    bounded: bool,
    /// Median over the pairs of the value of the level ahead as a multiple of the other's, of `a` if neither is ahead;
    /// infinite if the other has none.
    lead: f64,
    /// Test of the repeats; `None` if no cell has repeats that differ, so that the signs of the pairs are tested.
    ranks: Option<RankSum>,
    /// The p-value, adjusted for the tests of the study ([`adjusted`]).
    pub(super) p: f64,
}

impl Match {
    /// Returns the match of these pairs, with a p-value that is not adjusted.
    pub(super) fn of(ahead: Ahead, a: usize, b: usize, stratum: usize, pairs: &[Pair]) -> Option<Self> {
        Self::of_known(ahead, a, b, stratum, pairs, |_| true)
    }

    /// Returns the match of pairs that may be lower bounds. `decides` returns whether a pair shows which level is
    /// ahead.
    fn of_known(
        ahead: Ahead,
        a: usize,
        b: usize,
        stratum: usize,
        pairs: &[Pair],
        decides: impl Fn(&Pair) -> bool,
    ) -> Option<Self> {
        let (decided, open): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(|pair| decides(pair));
        let wins = decided.iter().filter(|pair| ahead.is(pair.a.1, pair.b.1)).count();
        let losses = decided.iter().filter(|pair| ahead.is(pair.b.1, pair.a.1)).count();
        let mut leads = Vec::new();
        for pair in decided {
            let (first, second) = if wins >= losses { (pair.a.1, pair.b.1) } else { (pair.b.1, pair.a.1) };
            if first > 0.0 || second > 0.0 {
                leads.push(first / second);
            }
        }
        // What is open may be anything: it is taken as the least for whoever is ahead.
        leads.extend(open.iter().map(|_| 0.0));
        let lead = median(leads)?;
        let (all, open) = (pairs.len(), open.len());
        let found = Self { a, b, stratum, wins, losses, all, open, bounded: open > 0, lead, ranks: None, p: 1.0 };
        Some(Self { p: found.tested().p, ..found })
    }

    /// Returns the match with the test of the repeats in these pairs, if all figures are firm.
    pub(super) fn with_repeats(self, data: &Data<'_>, measure: usize, ahead: Ahead, pairs: &[Pair]) -> Self {
        if self.bounded {
            return self;
        }
        let sign = match ahead {
            Ahead::More => 1.0,
            Ahead::Less => -1.0,
        };
        self.with_blocks(&blocks(data, measure, pairs, (sign, sign)))
    }

    /// Returns the match with the test of these repeats, of which the higher are ahead.
    pub(super) fn with_blocks(self, blocks: &[Block]) -> Self {
        let ranks = RankSum::of(blocks);
        let found = Self { ranks, ..self };
        Self { p: found.tested().p, ..found }
    }

    /// Returns the match with its p-value adjusted in a family of tests.
    pub(super) fn adjusted_in(&self, family: &Holm) -> Self {
        Self { p: family.adjusted(self.tested()), ..self.clone() }
    }

    /// Returns whether the repeats of its cells are tested.
    pub(super) fn has_repeats(&self) -> bool {
        self.ranks.is_some()
    }

    /// Returns the name of its test.
    pub(super) fn test_name(&self, lang: Language) -> String {
        self.ranks.as_ref().map_or_else(|| sign_test_of(lang), |test| rank_sum_test_of(lang, test))
    }

    /// Formats its adjusted p-value, with the values that were tested.
    pub(super) fn p_in_words(&self, lang: Language) -> String {
        let p = p_value(self.p);
        if self.ranks.is_some() {
            return said!(lang, "findings-ranking-repeats-ranked", "repeats ranked within each pair, {p}", p = p);
        }
        p
    }

    /// Returns its test, not adjusted.
    pub(super) fn tested(&self) -> Tested {
        if let Some(ranks) = &self.ranks {
            return ranks.tested;
        }
        let (more, fewer) = (self.wins.max(self.losses), self.wins.min(self.losses) + self.open);
        match self.open {
            0 => sign_tested(self.wins, self.losses),
            // The other level may be ahead as well.
            _ if more <= fewer => Tested { p: 1.0, least: sign_tested(self.all, 0).p },
            _ => sign_tested(more, fewer),
        }
    }

    /// Formats the lead of the level ahead.
    fn lead_in_words(&self, lang: Language) -> String {
        let words = multiple(lang, self.lead().1);
        if self.bounded { said!(lang, "firmness-at-least-so-much", "at least {times}", times = words) } else { words }
    }

    /// Returns the level that is significantly ahead, if any. Where repeats are tested, it must also be ahead in more
    /// pairs than the other, which may be clearly ahead in hardly any.
    pub(super) fn winner(&self) -> Option<usize> {
        if self.p >= SIGNIFICANT {
            return None;
        }
        let a_leads = self.wins > self.losses;
        if let Some(ranks) = &self.ranks {
            let agrees = if a_leads { ranks.is_a_higher() } else { self.losses > self.wins && ranks.is_b_higher() };
            if !agrees {
                return None;
            }
        }
        Some(if a_leads { self.a } else { self.b })
    }

    /// Formats the match, with the level ahead in more pairs first.
    pub(super) fn said(&self, lang: Language, a: &str, b: &str) -> String {
        if self.is_tied() {
            return said!(
                lang,
                "findings-ranking-tied",
                if all == 1 {
                    "{a} and {b} are equal in the one pair of cells that agree in all else."
                } else {
                    "{a} and {b} are equal in all {all} pairs of cells that agree in all else."
                },
                a = a,
                b = b,
                all = self.all
            );
        }
        let ties = match self.all - self.wins - self.losses - self.open {
            0 => String::new(),
            ties => said!(lang, "findings-ranking-ties", ", equal in {ties}", ties = ties),
        };
        if self.wins == self.losses && self.open == 0 {
            let each = self.wins;
            return said!(
                lang,
                "findings-ranking-even",
                "Of {a} and {b} each is ahead in {each} of {all} pairs of cells that agree in all else{ties}.",
                a = a,
                b = b,
                each = each,
                all = self.all,
                ties = ties
            );
        }
        let (first, second) = if self.wins >= self.losses { (a, b) } else { (b, a) };
        let (ahead, _) = self.lead();
        let said = said!(
            lang,
            "findings-ranking-is-ahead",
            "{first} is ahead of {second} in {ahead} of {all} pairs of cells that agree in all else, behind in \
             {behind}{ties}; median {median}; {p}.",
            first = first,
            second = second,
            ahead = ahead,
            all = self.all,
            behind = self.wins.min(self.losses),
            ties = ties,
            median = self.lead_in_words(lang),
            p = self.p_in_words(lang)
        );
        match self.open {
            0 if self.bounded => format!(
                "{said} {}",
                said!(lang, "findings-ranking-lower-bounds", "Some figures are not firm: they are lower bounds.")
            ),
            0 => said,
            open => format!(
                "{said} {}",
                said!(
                    lang,
                    "findings-ranking-left-open",
                    if open == 1 {
                        "1 pair is left open by a figure that is not firm, and counts against it."
                    } else {
                        "{open} pairs are left open by figures that are not firm, and count against it."
                    },
                    open = open
                )
            ),
        }
    }

    /// Returns whether the two are equal in every pair.
    pub(super) fn is_tied(&self) -> bool {
        self.wins == 0 && self.losses == 0 && self.open == 0
    }

    /// Returns the number of pairs that the level ahead wins, and its lead.
    pub(super) fn lead(&self) -> (usize, f64) {
        (self.wins.max(self.losses), self.lead)
    }
}

/// Returns the repeats of these pairs of cells, each level's values multiplied by its scale.
pub(super) fn blocks(data: &Data<'_>, measure: usize, pairs: &[Pair], (of_a, of_b): (f64, f64)) -> Vec<Block> {
    let scaled = |cell: usize, scale: f64| -> Vec<f64> {
        data.study.cells[cell].values[measure].iter().map(|value| value * scale).collect()
    };
    pairs.iter().map(|pair| Block { a: scaled(pair.a.0, of_a), b: scaled(pair.b.0, of_b) }).collect()
}

/// Adjusts the p-values for all tests of the study.
pub(super) fn adjusted(data: &Data<'_>, mut matches: Vec<Match>) -> Vec<Match> {
    matches.iter_mut().for_each(|one| one.p = data.adjusted(one.tested()));
    matches
}

/// Returns the groups within which levels of `factor` are compared.
pub(super) fn strata(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Group> {
    // What a medium can carry hides what a host could: each medium by itself, unless media are what is ranked.
    data.groups_with_bounds(data.medium_factor().filter(|by| *by != factor), measure)
}

/// Returns the levels of `factor` that are compared: all but the tester.
pub(super) fn contestants(data: &Data<'_>, factor: usize) -> Vec<usize> {
    let levels = &data.study.factors[factor].levels;
    (0..levels.len()).filter(|level| !levels[*level].tester).collect()
}

/// Returns the matches of every two levels of `factor` in each group, with p-values that are not adjusted.
fn matches(data: &Data<'_>, measure: usize, factor: usize, strata: &[Group]) -> Vec<Match> {
    let ahead = Ahead::of(data, measure);
    let levels = contestants(data, factor);
    let mut matches = Vec::new();
    for (index, a) in levels.iter().enumerate() {
        for b in &levels[index + 1..] {
            let pairs = data.pairs_with_bounds(factor, *a, *b, measure);
            for (stratum, group) in strata.iter().enumerate() {
                let within: Vec<Pair> = pairs.iter().copied().filter(|pair| group.cells.contains(&pair.a.0)).collect();
                let is_bound =
                    |pair: &Pair| [pair.a.0, pair.b.0].iter().any(|cell| !data.firmness(*cell, measure).is_firm());
                let found = Match::of_known(ahead, *a, *b, stratum, &within, |pair| data.decides(pair, measure));
                matches.extend(found.map(|found| {
                    let known = Match { bounded: within.iter().any(is_bound), ..found };
                    known.with_repeats(data, measure, ahead, &within)
                }));
            }
        }
    }
    matches
}

fn of_factor(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Finding> {
    let (strata, levels) = (strata(data, measure, factor), contestants(data, factor));
    let matches = adjusted(data, matches(data, measure, factor, &strata));
    let is_matched = |level: &usize| matches.iter().any(|one| one.a == *level || one.b == *level);
    let is_order = strata.len() == 1 || levels.iter().copied().filter(is_matched).count() > PAIR;
    let mut found = Vec::new();
    if is_order {
        found.extend(orders(data, measure, factor, &strata, &matches));
    }
    for (index, a) in levels.iter().enumerate() {
        for b in &levels[index + 1..] {
            let of_both: Vec<&Match> = matches.iter().filter(|one| (one.a, one.b) == (*a, *b)).collect();
            if !is_order {
                found.extend(over_strata(data, measure, factor, &strata, &of_both));
            } else if same_medium(data, measure, factor, *a, *b) {
                found.extend(of_both.iter().filter_map(|one| same_wire(data, measure, factor, one)));
            }
        }
    }
    found
}

/// Returns the order of the levels in each group. Groups with the same order are one finding.
fn orders(data: &Data<'_>, measure: usize, factor: usize, strata: &[Group], matches: &[Match]) -> Vec<Finding> {
    let mut orders: Vec<(String, Vec<usize>)> = Vec::new();
    let mut without = Vec::new();
    for (stratum, group) in strata.iter().enumerate() {
        let within: Vec<&Match> = matches.iter().filter(|one| one.stratum == stratum).collect();
        match order(data, measure, factor, &within) {
            None if within.is_empty() => {}
            None => without.push(group.name.clone()),
            Some(text) => match orders.iter_mut().find(|(known, _)| *known == text) {
                Some((_, groups)) => groups.push(stratum),
                None => orders.push((text, vec![stratum])),
            },
        }
    }
    let last = orders.len().saturating_sub(1);
    let mut found = Vec::new();
    for (at, (order, groups)) in orders.iter().enumerate() {
        let of_groups: Vec<&Match> = matches.iter().filter(|one| groups.contains(&one.stratum)).collect();
        if strata.len() == 1 {
            found.push(finding(FindingKind::Ranking, sentence(order), evidence_of(data, measure, factor, &of_groups)));
            continue;
        }
        let names: Vec<String> = groups.iter().map(|stratum| strata[*stratum].name.clone()).collect();
        let names = listed(data.lang, &names);
        let mut text =
            sentence(&said!(data.lang, "findings-ranking-on-one", "on {group}, {order}", group = names, order = order));
        if at == last && !without.is_empty() {
            text.push_str(&said!(
                data.lang,
                "findings-ranking-no-order-on",
                " On {groups} no order is shown.",
                groups = listed(data.lang, &without)
            ));
        }
        let tests = of_groups.iter().map(|one| evidence(data, factor, one, &strata[one.stratum].name));
        let evidence = tests.chain(repeats_note(data, measure, of_groups.iter().copied())).collect();
        found.push(finding(FindingKind::Ranking, text, evidence));
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
    test(&one.test_name(data.lang), one.p, format!("{on}{}", one.said(data.lang, &a, &b)))
}

/// Returns the evidence of several matches, and what their tests do not show.
fn evidence_of(data: &Data<'_>, measure: usize, factor: usize, matches: &[&Match]) -> Vec<Evidence> {
    let tests = matches.iter().map(|one| evidence(data, factor, one, ""));
    tests.chain(repeats_note(data, measure, matches.iter().copied())).collect()
}

/// Returns the finding of one level against another, on each medium.
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
            let (ahead, _) = one.lead();
            said!(
                data.lang,
                "findings-ranking-on",
                "on {group} in {ahead} of {all} pairs of cells (median {median})",
                group = strata[one.stratum].name,
                ahead = ahead,
                all = one.all,
                median = one.lead_in_words(data.lang)
            )
        })
        .collect();
    let (more, clauses) = (Ahead::of(data, measure) == Ahead::More, listed(data.lang, &clauses));
    let mut text = if more {
        said!(
            data.lang,
            "findings-ranking-more",
            "{winner} has more {title} than {loser} {clauses}.",
            winner = winner,
            title = title,
            loser = loser,
            clauses = clauses
        )
    } else {
        said!(
            data.lang,
            "findings-ranking-lower",
            "{winner} has lower {title} than {loser} {clauses}.",
            winner = winner,
            title = title,
            loser = loser,
            clauses = clauses
        )
    };
    if !against.is_empty() {
        text.push_str(&if more {
            said!(data.lang, "findings-ranking-less-on", " On {groups} it has less.", groups = on(&against))
        } else {
            said!(
                data.lang,
                "findings-ranking-higher-on",
                " On {groups} its {title} is higher.",
                groups = on(&against),
                title = title
            )
        });
    }
    let (tied, undecided): (Vec<&&Match>, Vec<&&Match>) =
        matches.iter().filter(|one| one.winner().is_none()).partition(|one| one.is_tied());
    if !tied.is_empty() {
        text.push_str(&said!(
            data.lang,
            "findings-ranking-tied-on",
            " On {groups} they are equal in every pair.",
            groups = on(&tied)
        ));
    }
    if !undecided.is_empty() {
        text.push_str(&said!(
            data.lang,
            "findings-ranking-neither-on",
            " On {groups} neither is shown to be ahead.",
            groups = on(&undecided)
        ));
    }
    let tests = matches.iter().map(|one| evidence(data, factor, one, &strata[one.stratum].name));
    let evidence = tests.chain(repeats_note(data, measure, matches.iter().copied())).collect();
    Some(finding(FindingKind::Ranking, text, evidence))
}

/// Returns the finding that two levels differ over the same medium.
fn same_wire(data: &Data<'_>, measure: usize, factor: usize, one: &Match) -> Option<Finding> {
    let winner = one.winner()?;
    let (ahead, _) = one.lead();
    let medium = data.study.factors[factor].levels[winner].path.medium?;
    let (a, b, winner) = (data.name_of(factor, one.a), data.name_of(factor, one.b), data.name_of(factor, winner));
    let (title, median) = (&data.study.measures[measure].title, one.lead_in_words(data.lang));
    let text = said!(
        data.lang,
        Ahead::of(data, measure).either(text!("findings-ranking-same-medium-more", "{a} and {b} differ though the medium is the same, {medium}: {winner} has more {title} in {ahead} of \
                 {all} pairs of cells (median {median}). So the wire does not make the difference."), text!("findings-ranking-same-medium-lower", "{a} and {b} differ though the medium is the same, {medium}: {winner} has lower {title} in {ahead} of {all} \
             pairs of cells (median {median}). So the wire does not make the difference.")),
        a = a,
        b = b,
        medium = medium,
        winner = winner,
        title = title,
        ahead = ahead,
        all = one.all,
        median = median
    );
    Some(finding(FindingKind::Ranking, text, evidence_of(data, measure, factor, &[one])))
}

/// Returns the order of the levels of a factor as far as tests separate them.
fn order(data: &Data<'_>, measure: usize, factor: usize, matches: &[&Match]) -> Option<String> {
    let levels = contestants(data, factor);
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
    // A place ends only where every level up to there is surely ahead of every level after it.
    let mut places: Vec<Vec<usize>> = Vec::new();
    let mut begun = 0;
    for end in 1..=sorted.len() {
        let (before, after) = sorted.split_at(end);
        if before.iter().all(|a| after.iter().all(|b| decided(*a, *b) == Some(*a))) {
            places.push(sorted[begun..end].to_vec());
            begun = end;
        }
    }
    if places.len() < 2 {
        return some_ahead(data, measure, factor, matches);
    }
    let tied = |place: &[usize]| {
        let within = |one: &&&Match| place.contains(&one.a) && place.contains(&one.b);
        matches.iter().filter(within).all(|one| one.is_tied())
    };
    let said: Vec<String> = places
        .iter()
        .map(|place| {
            let names: Vec<String> = place.iter().map(|level| data.name_of(factor, *level)).collect();
            let names = listed(data.lang, &names);
            match place.len() {
                1 => names,
                _ if tied(place) => said!(data.lang, "findings-ranking-equal", "{names} (equal)", names = names),
                2 => {
                    said!(data.lang, "findings-ranking-neither-ahead", "{names} (neither surely ahead)", names = names)
                }
                _ => said!(data.lang, "findings-ranking-none-ahead", "{names} (none surely ahead)", names = names),
            }
        })
        .collect();
    let (title, named) = (&data.study.measures[measure].title, &data.study.factors[factor].title);
    let places = said.join(&said!(data.lang, "findings-ranking-then", "; then "));
    let key = Ahead::of(data, measure).either(
        text!("findings-ranking-most-first", "{title} by {factor}, most first: {places}."),
        text!("findings-ranking-lowest-first", "{title} by {factor}, lowest first: {places}."),
    );
    Some(said!(data.lang, key, title = title, factor = named, places = places))
}

/// Returns the pairs of levels with a winner, if there is no order of all.
fn some_ahead(data: &Data<'_>, measure: usize, factor: usize, matches: &[&Match]) -> Option<String> {
    let mut ahead: Vec<(usize, Vec<String>)> = Vec::new();
    for one in matches {
        let Some(winner) = one.winner() else { continue };
        let loser = data.name_of(factor, if winner == one.a { one.b } else { one.a });
        match ahead.iter_mut().find(|(known, _)| *known == winner) {
            Some((_, losers)) => losers.push(loser),
            None => ahead.push((winner, vec![loser])),
        }
    }
    let clause = |(winner, losers): &(usize, Vec<String>)| {
        let (first, others) = (data.name_of(factor, *winner), listed(data.lang, losers));
        said!(data.lang, "findings-ranking-before", "{first} is ahead of {others}", first = first, others = others)
    };
    let clauses: Vec<String> = ahead.iter().map(clause).collect();
    if clauses.is_empty() {
        return None;
    }
    let (title, named) = (&data.study.measures[measure].title, &data.study.factors[factor].title);
    let key = Ahead::of(data, measure).either(
        text!(
            "findings-ranking-some-more",
            "{title} by {factor}, where one is surely ahead: {clauses}. No order of all of them is shown."
        ),
        text!(
            "findings-ranking-some-lower",
            "{title} by {factor}, where one is surely lower: {clauses}. No order of all of them is shown."
        ),
    );
    Some(said!(data.lang, key, title = title, factor = named, clauses = with_semicolons(data.lang, &clauses)))
}
