//! The conclusions of a study's author, each checked by the results: confirmed, contradicted, or untestable.
//!
//! The tests of all conclusions are one family of their own (Holm), because they were stated before the report.

use super::data::{Data, Group, Pair};
use super::ranking::{Ahead, Match, blocks};
use super::stated::is_above;
use super::words::{listed, p_value, share, times};
use crate::finding::{Finding, FindingKind};
use crate::study::{Answer, Claim, Conclusion, Study, Verdict};
use linerate_method::statistics::{Holm, SIGNIFICANT, Tested, separation_test};
use linerate_report::parts::figures;
use linerate_report::parts::values::{extremes, range};
use linerate_report::parts::wording::{in_a_row, sentence};
use linerate_report::{Language, said};

/// Ratio in every pair from which on results too few for a test still confirm a conclusion about themselves, if the
/// study states no tolerance.
const CLEAR: f64 = 2.0;
/// Minimum number of cells of a level that is compared without pairs.
const FEWEST: usize = 3;

/// Returns the answers to a study's conclusions, in the order of its file.
pub(crate) fn answers(lang: Language, study: &Study, findings: &[Finding]) -> Vec<Answer> {
    if study.conclusions.is_empty() {
        return Vec::new();
    }
    let firm = study.firm_only();
    let data = Data::with_bounds(lang, &firm, study);
    let checks: Vec<Check> = study.conclusions.iter().map(|one| Check::of(&data, one, findings)).collect();
    let family = Holm::over(checks.iter().flat_map(Check::tests));
    let answer = |(conclusion, check): (&Conclusion, &Check)| {
        let (verdict, reason) = check.answer(&data, &family);
        Answer { text: conclusion.text.clone(), verdict, reason: sentence(&reason) }
    };
    study.conclusions.iter().zip(&checks).map(answer).collect()
}

/// A conclusion against the results.
enum Check {
    /// Needs no test, or allows none.
    Settled(Verdict, String),
    /// Pairs of cells of two levels.
    Pairs { one: Match, least_ratio: f64, names: [String; 2] },
    /// Cells of two levels without pairs.
    Groups { tested: Tested, order: Verdict, ratio: f64, text: String },
    /// Cost of a unit: the cheap level against the dear one, with prices in favour of the dear one, and against it.
    Price { at_best: Match, at_worst: Match, names: [String; 2] },
}

impl Check {
    fn of(data: &Data<'_>, conclusion: &Conclusion, findings: &[Finding]) -> Self {
        for (factor, levels) in &conclusion.only {
            let known = &data.study.factors[*factor].levels;
            if let Some(missing) = levels.iter().find(|name| known.iter().all(|level| level.name != **name)) {
                return never_ran(data, missing);
            }
        }
        match &conclusion.claim {
            Claim::Ahead { ahead, of } => Self::ahead(data, conclusion, ahead, of),
            Claim::DoesNotPay { dear, cheap } => Self::does_not_pay(data, conclusion, dear, cheap),
            Claim::Share { at_least, at_most } => of_share(data, conclusion, *at_least, *at_most),
            Claim::Value { at_least, at_most } => of_value(data, conclusion, *at_least, *at_most),
            Claim::Finding { kind, names } => of_finding(data, *kind, names, findings),
            Claim::Needs { needs } => {
                untestable(said!(data.lang, "conclusions-needs", "The study has no results of {needs}.", needs = needs))
            }
        }
    }

    fn ahead(data: &Data<'_>, conclusion: &Conclusion, ahead: &str, of: &str) -> Self {
        let measure = conclusion.measure;
        let (factor, a, b) = match levels(data, ahead, of) {
            Ok(levels) => levels,
            Err(missing) => return never_ran(data, &missing),
        };
        for (level, name) in [(a, ahead), (b, of)] {
            if cells(data, conclusion, factor, level).is_empty() {
                return never_ran(data, name);
            }
        }
        let names = [data.name_of(factor, a), data.name_of(factor, b)];
        let stated: Vec<(usize, usize)> = data
            .pairs_with_stated(factor, a, b, measure)
            .into_iter()
            .filter(|(cell, other)| is_in(data, conclusion, *cell) && is_in(data, conclusion, *other))
            .collect();
        if stated.iter().any(|pair| data.has_stated(*pair, measure)) {
            return of_bounds(data, measure, &stated, &names);
        }
        let pairs: Vec<Pair> = data
            .pairs(factor, a, b, measure)
            .into_iter()
            .filter(|pair| is_in(data, conclusion, pair.a.0) && is_in(data, conclusion, pair.b.0))
            .collect();
        let way = Ahead::of(data, measure);
        match Match::of(way, a, b, 0, &pairs) {
            None => Self::groups(data, conclusion, (factor, a, b)),
            Some(one) => Self::Pairs {
                one: one.with_repeats(data, measure, way, &pairs),
                least_ratio: least_ratio(pairs.iter().map(|pair| (pair.a.1, pair.b.1))),
                names,
            },
        }
    }

    /// Compares all cells of two levels that have no pairs.
    fn groups(data: &Data<'_>, conclusion: &Conclusion, (factor, a, b): (usize, usize, usize)) -> Self {
        let measure = conclusion.measure;
        let (of_a, of_b) = (cells(data, conclusion, factor, a), cells(data, conclusion, factor, b));
        let names = [data.name_of(factor, a), data.name_of(factor, b)];
        let values = |cells: &[usize]| extremes(cells.iter().filter_map(|cell| data.value(*cell, measure)));
        let is_alone = super::unpaired::is_all_that_differs(data, factor, &of_a, &of_b);
        let is_alone = is_alone && of_a.len().min(of_b.len()) >= FEWEST;
        let (Some(one), Some(other), true) = (values(&of_a), values(&of_b), is_alone) else {
            return untestable(said!(
                data.lang,
                "conclusions-confounded",
                "No cell of {a} agrees with one of {b} in all else, so that other factors may make the difference.",
                a = names[0],
                b = names[1]
            ));
        };
        let is_ahead = |one: (f64, f64), other: (f64, f64)| match Ahead::of(data, measure) {
            Ahead::More => one.0 > other.1,
            Ahead::Less => one.1 < other.0,
        };
        let order = if is_ahead(one, other) {
            Verdict::Confirmed
        } else if is_ahead(other, one) {
            Verdict::Contradicted
        } else {
            Verdict::Untestable
        };
        let unit = data.study.measures[measure].unit;
        let least = separation_test(&[of_a.len(), of_b.len()]);
        let apart = order != Verdict::Untestable;
        let text = said!(
            data.lang,
            "conclusions-groups",
            "{a}: {one}; {b}: {other}",
            a = names[0],
            one = range(data.lang, one.0, one.1, unit),
            b = names[1],
            other = range(data.lang, other.0, other.1, unit)
        );
        Self::Groups {
            tested: Tested { p: if apart { least } else { 1.0 }, least },
            order,
            ratio: (one.0 / other.1).max(other.0 / one.1),
            text,
        }
    }

    fn does_not_pay(data: &Data<'_>, conclusion: &Conclusion, dear: &str, cheap: &str) -> Self {
        let measure = conclusion.measure;
        let (factor, dear, cheap) = match levels(data, dear, cheap) {
            Ok(levels) => levels,
            Err(missing) => return never_ran(data, &missing),
        };
        let names = [data.name_of(factor, dear), data.name_of(factor, cheap)];
        let price = |level: usize| data.study.factors[factor].levels[level].price;
        let (Some(dear_price), Some(cheap_price)) = (price(dear), price(cheap)) else {
            return untestable(said!(
                data.lang,
                "conclusions-no-price",
                "The study does not have the prices of {a} and {b}.",
                a = names[0],
                b = names[1]
            ));
        };
        let pairs: Vec<Pair> = data
            .pairs(factor, cheap, dear, measure)
            .into_iter()
            .filter(|pair| is_in(data, conclusion, pair.a.0) && is_in(data, conclusion, pair.b.0))
            .collect();
        let per_price = |cheap_price: f64, dear_price: f64| {
            let (of_cheap, of_dear) = (1.0 / cheap_price, 1.0 / dear_price);
            let scaled: Vec<Pair> = pairs
                .iter()
                .map(|pair| Pair { a: (pair.a.0, pair.a.1 * of_cheap), b: (pair.b.0, pair.b.1 * of_dear) })
                .collect();
            let found = Match::of(Ahead::More, cheap, dear, 0, &scaled)?;
            Some(found.with_blocks(&blocks(data, measure, &pairs, (of_cheap, of_dear))))
        };
        match (per_price(cheap_price.high, dear_price.low), per_price(cheap_price.low, dear_price.high)) {
            (Some(at_best), Some(at_worst)) => Self::Price { at_best, at_worst, names },
            _ => untestable(said!(
                data.lang,
                "conclusions-no-pairs",
                "No cell of {a} agrees with one of {b} in all else.",
                a = names[0],
                b = names[1]
            )),
        }
    }

    fn tests(&self) -> Vec<Tested> {
        match self {
            Self::Settled(..) => Vec::new(),
            Self::Pairs { one, .. } => vec![one.tested()],
            Self::Groups { tested, .. } => vec![*tested],
            Self::Price { at_best, at_worst, .. } => vec![at_best.tested(), at_worst.tested()],
        }
    }

    fn answer(&self, data: &Data<'_>, family: &Holm) -> (Verdict, String) {
        match self {
            Self::Settled(verdict, reason) => (*verdict, reason.clone()),
            Self::Pairs { one, least_ratio, names } => {
                let adjusted = one.adjusted_in(family);
                of_match(data, &adjusted, *least_ratio, names)
            }
            Self::Groups { tested, order, ratio, text } => {
                let p = family.adjusted(*tested);
                let said = format!("{text}; {}", p_value(p));
                match order {
                    Verdict::Untestable => (
                        Verdict::Untestable,
                        with_note(&said, said!(data.lang, "conclusions-overlap", "They overlap.")),
                    ),
                    order if p < SIGNIFICANT => (*order, said),
                    order if *ratio >= clear(data) => (*order, with_note(&said, these_only(data.lang))),
                    _ => (Verdict::Untestable, with_note(&said, too_few(data))),
                }
            }
            Self::Price { at_best, at_worst, names } => {
                let (best, worst) = (at_best.adjusted_in(family), at_worst.adjusted_in(family));
                let counts = |one: &Match| (one.wins, one.losses, one.all);
                let ((dearer, cheaper, all), (_, worst_cheaper, _)) = (counts(&best), counts(&worst));
                let text = said!(
                    data.lang,
                    "conclusions-price",
                    "With the prices in favour of {dear}, a unit of the result costs more than with {cheap} in {more} \
                     of {all} pairs of cells; {p}",
                    dear = names[0],
                    cheap = names[1],
                    more = dearer,
                    all = all,
                    p = p_value(best.p)
                );
                if best.winner() == Some(best.a) {
                    (Verdict::Confirmed, text)
                } else if worst.winner() == Some(worst.b) {
                    let text = said!(
                        data.lang,
                        "conclusions-price-pays",
                        "Even with the prices against {dear}, a unit of the result costs less than with {cheap} in \
                         {less} of {all} pairs of cells; {p}",
                        dear = names[0],
                        cheap = names[1],
                        less = worst_cheaper,
                        all = all,
                        p = p_value(worst.p)
                    );
                    (Verdict::Contradicted, text)
                } else if dearer == all && best.lead().1 >= clear(data) {
                    (Verdict::Confirmed, with_note(&text, these_only(data.lang)))
                } else if cheaper == all || dearer == all {
                    (Verdict::Untestable, with_note(&text, too_few(data)))
                } else {
                    (Verdict::Untestable, with_note(&text, undecided(data.lang)))
                }
            }
        }
    }
}

/// Judges a conclusion by the pairs of cells of two levels.
fn of_match(data: &Data<'_>, one: &Match, least_ratio: f64, names: &[String; 2]) -> (Verdict, String) {
    let said = one.said(data.lang, &names[0], &names[1]);
    if one.is_tied() {
        return (Verdict::Contradicted, said);
    }
    // Repeats that overlap, or that could have decided and did not, leave it open.
    let tested = one.tested();
    let is_few = !one.has_repeats() || (tested.least >= SIGNIFICANT && tested.p <= tested.least);
    match one.winner() {
        Some(winner) if winner == one.a => (Verdict::Confirmed, said),
        Some(_) => (Verdict::Contradicted, said),
        None if is_few && one.wins == one.all && least_ratio >= clear(data) => {
            (Verdict::Confirmed, with_note(&said, these_only(data.lang)))
        }
        None if is_few && one.losses == one.all && least_ratio >= clear(data) => {
            (Verdict::Contradicted, with_note(&said, these_only(data.lang)))
        }
        None if is_few && one.wins.max(one.losses) == one.all => (Verdict::Untestable, with_note(&said, too_few(data))),
        None => (Verdict::Untestable, with_note(&said, undecided(data.lang))),
    }
}

/// Returns a reason with a note after it.
fn with_note(reason: &str, note: String) -> String {
    in_a_row(&[sentence(reason), note])
}

fn these_only(lang: Language) -> String {
    said!(lang, "conclusions-these-only", "Too few for a test, so this holds for these results only.")
}

fn too_few(data: &Data<'_>) -> String {
    said!(
        data.lang,
        "conclusions-too-few",
        "Too few for a test, and less than {times} apart.",
        times = times(data.lang, clear(data))
    )
}

/// Returns the ratio from which on results differ, whatever their spread: beyond the tolerance of the study.
fn clear(data: &Data<'_>) -> f64 {
    data.study.tolerance.map_or(CLEAR, |tolerance| 1.0 / (1.0 - tolerance))
}

fn undecided(lang: Language) -> String {
    said!(lang, "conclusions-undecided", "The results do not decide.")
}

/// Judges a conclusion by the ranges and bounds that the author states.
fn of_bounds(data: &Data<'_>, measure: usize, pairs: &[(usize, usize)], names: &[String; 2]) -> Check {
    let above = pairs.iter().filter(|(cell, other)| is_above(data, measure, *cell, *other)).count();
    let below = pairs.iter().filter(|(cell, other)| is_above(data, measure, *other, *cell)).count();
    let is_equal = |(cell, other): &&(usize, usize)| data.span(*cell, measure) == data.span(*other, measure);
    let equal = pairs.iter().filter(is_equal).count();
    let each: Vec<String> = pairs
        .iter()
        .filter_map(|(cell, other)| {
            Some(said!(
                data.lang,
                "conclusions-against",
                "{one} against {other}",
                one = data.shown(*cell, measure)?,
                other = data.shown(*other, measure)?
            ))
        })
        .collect();
    let text = said!(
        data.lang,
        "conclusions-stated",
        "As stated, {a} is above {b} in {above} of {all} pairs of cells and below in {below}: {each}",
        a = names[0],
        b = names[1],
        above = above,
        all = pairs.len(),
        below = below,
        each = listed(data.lang, &each)
    );
    // A number that both share leaves the others to decide.
    let verdict = match (above, below) {
        (1.., 0) if above + equal == pairs.len() => Verdict::Confirmed,
        (0, 1..) if below + equal == pairs.len() => Verdict::Contradicted,
        _ => Verdict::Untestable,
    };
    Check::Settled(verdict, text)
}

/// Judges a conclusion about shares of the limit.
fn of_share(data: &Data<'_>, conclusion: &Conclusion, at_least: Option<f64>, at_most: Option<f64>) -> Check {
    let measure = conclusion.measure;
    let cells: Vec<usize> = data.cells(measure).into_iter().filter(|cell| is_in(data, conclusion, *cell)).collect();
    let shares: Option<Vec<f64>> =
        cells.iter().map(|cell| data.limit(*cell, measure).map(|limit| limit.share)).collect();
    let Some((low, high)) = shares.and_then(extremes) else {
        return untestable(said!(
            data.lang,
            "conclusions-no-limit",
            "There are no such results, or their limit is not known."
        ));
    };
    let (least, most) = (share(low), share(high));
    let is_stated = cells.iter().any(|cell| data.stated(*cell, measure).is_some());
    let mut shares: Vec<String> = Vec::new();
    if is_stated {
        for cell in &cells {
            shares.extend(data.shown_share(*cell, measure).filter(|share| !shares.contains(share)));
        }
    } else if least == most {
        shares.push(most);
    } else {
        shares.push(figures::range(data.lang, &least, &most));
    }
    let text = said!(
        data.lang,
        "conclusions-share",
        if results == 1 {
            "1 result: {shares} of what the medium can carry"
        } else {
            "{results} results: {shares} of what the medium can carry"
        },
        results = cells.len(),
        shares = listed(data.lang, &shares)
    );
    let holds = at_least.is_none_or(|least| low >= least) && at_most.is_none_or(|most| high <= most);
    Check::Settled(if holds { Verdict::Confirmed } else { Verdict::Contradicted }, text)
}

/// Judges a conclusion about the values themselves, which may be ranges or bounds.
fn of_value(data: &Data<'_>, conclusion: &Conclusion, at_least: Option<f64>, at_most: Option<f64>) -> Check {
    let measure = conclusion.measure;
    let cells: Vec<usize> = data
        .groups_with_stated(None, measure)
        .into_iter()
        .flat_map(|group| group.cells)
        .filter(|cell| is_in(data, conclusion, *cell))
        .collect();
    let spans: Vec<(f64, f64)> = cells.iter().filter_map(|cell| data.span(*cell, measure)).collect();
    let (Some(low), Some(high)) =
        (spans.iter().map(|(low, _)| *low).reduce(f64::min), spans.iter().map(|(_, high)| *high).reduce(f64::max))
    else {
        return untestable(said!(data.lang, "conclusions-no-results", "There are no such results."));
    };
    let mut shown: Vec<String> = Vec::new();
    for cell in cells {
        shown.extend(data.shown(cell, measure).filter(|text| !shown.contains(text)));
    }
    let text = said!(
        data.lang,
        "conclusions-values",
        "{title}: {values}",
        title = data.study.measures[measure].title,
        values = listed(data.lang, &shown)
    );
    let holds = at_least.is_none_or(|least| low >= least) && at_most.is_none_or(|most| high <= most);
    let fails = spans
        .iter()
        .any(|(low, high)| at_least.is_some_and(|least| *high < least) || at_most.is_some_and(|most| *low > most));
    let verdict = match (holds, fails) {
        (true, _) => Verdict::Confirmed,
        (false, true) => Verdict::Contradicted,
        (false, false) => Verdict::Untestable,
    };
    Check::Settled(verdict, text)
}

/// Judges a conclusion by the findings of a kind.
fn of_finding(data: &Data<'_>, kind: FindingKind, names: &[String], findings: &[Finding]) -> Check {
    let known = |name: &String| data.study.factors.iter().flat_map(|factor| &factor.levels).any(|it| it.name == *name);
    if let Some(missing) = names.iter().find(|name| !known(name)) {
        return never_ran(data, missing);
    }
    let says = |finding: &&Finding| finding.kind == kind && names.iter().all(|name| finding.text.contains(name));
    match findings.iter().find(says) {
        Some(finding) => Check::Settled(Verdict::Confirmed, finding.text.clone()),
        None => untestable(said!(
            data.lang,
            "conclusions-no-finding",
            "No finding of the kind {kind} about {names}: the results do not show it.",
            kind = data.lang.text(kind.text()),
            names = listed(data.lang, names)
        )),
    }
}

fn untestable(reason: String) -> Check {
    Check::Settled(Verdict::Untestable, reason)
}

fn never_ran(data: &Data<'_>, level: &str) -> Check {
    untestable(said!(data.lang, "conclusions-never-ran", "{level} has no result.", level = level))
}

/// Returns the factor that has both levels, and the levels. The error is the name of a level that no factor has.
fn levels(data: &Data<'_>, one: &str, other: &str) -> Result<(usize, usize, usize), String> {
    let at = |factor: usize, name: &str| data.study.factors[factor].levels.iter().position(|level| level.name == name);
    let of = |factor: usize| Some((factor, at(factor, one)?, at(factor, other)?));
    let mut factors = 0..data.study.factors.len();
    factors.find_map(of).ok_or_else(|| {
        let is_known = (0..data.study.factors.len()).any(|factor| at(factor, one).is_some());
        if is_known { other } else { one }.to_owned()
    })
}

/// Returns whether a cell is among those that a conclusion is about.
fn is_in(data: &Data<'_>, conclusion: &Conclusion, cell: usize) -> bool {
    conclusion.only.iter().all(|(factor, levels)| data.level(cell, *factor).is_some_and(|it| levels.contains(&it.name)))
}

/// Returns the cells of a level with a result that a conclusion is about.
fn cells(data: &Data<'_>, conclusion: &Conclusion, factor: usize, level: usize) -> Vec<usize> {
    let groups: Vec<Group> = data.groups_with_stated(None, conclusion.measure);
    let is = |cell: &usize| data.study.cells[*cell].levels[factor] == Some(level) && is_in(data, conclusion, *cell);
    groups.into_iter().flat_map(|group| group.cells).filter(is).collect()
}

/// Returns the smallest ratio of the larger to the smaller value of a pair.
fn least_ratio(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    pairs
        .map(|(one, other)| one.max(other) / one.min(other))
        .filter(|ratio| !ratio.is_nan())
        .fold(f64::INFINITY, f64::min)
}
