//! The limit of a group of results: the wire, the hosts, or something other than the wire.

use super::data::{Data, Group};
use super::growth::{Course, FULL, courses};
use super::words::{listed, p_value, share, some_of, with_commas};
use super::{bound, finding, test};
use crate::finding::{Evidence, Finding, FindingKind};
use crate::study::{CellLimit, FactorOf};
use linerate_report::parts::figures;
use linerate_report::parts::values::{extremes, value};
use linerate_report::parts::wording::sentence;
use linerate_report::said;

/// Maximum number of results named in a sentence.
const MOST_NAMED: usize = 4;
/// From this share of its limit in all results on, the wire is named as the limit: what is left is less than rounding,
/// clocks and pauses between runs take. From [`FULL`] to here the wire is near, and what else limits is bounded.
pub(super) const WIRE: f64 = 0.97;
/// Shares above this round to the whole limit.
const ALL: f64 = 0.999_5;
/// A wire does not limit results that are all below this share of its limit.
pub(super) const IDLE: f64 = 0.5;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let groups: Vec<(Group, Vec<CellLimit>)> = data
        .groups(data.gathered_by(), measure)
        .into_iter()
        .filter(|group| !data.has_open(data.gathered_by(), group, measure))
        // What a source states without a number has a rule of its own.
        .filter(|group| group.cells.iter().all(|cell| data.stated(*cell, measure).is_none()))
        .filter_map(|group| {
            let limits: Option<Vec<CellLimit>> = group.cells.iter().map(|cell| data.limit(*cell, measure)).collect();
            let limits = limits.filter(|limits| limits.iter().all(|limit| limit.share <= 1.0))?;
            Some((group, limits))
        })
        .collect();
    let (mut wire, mut near, mut hosts, mut other, mut part) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    let by_host = data.ordered().filter(|factor| data.study.factors[*factor].of == Some(FactorOf::Host));
    let growing: Vec<(usize, Course)> = by_host
        .flat_map(|factor| courses(data, measure, factor).into_iter().map(move |course| (factor, course)))
        .filter(|(_, course)| course.grows())
        .collect();
    for (group, limits) in &groups {
        let Some((least, most)) = extremes(limits.iter().map(|limit| limit.share)) else { continue };
        let grown = growing.iter().find(|(_, course)| course.group.name == group.name);
        match grown {
            _ if least >= WIRE => wire.push((group, limits, least)),
            _ if least >= FULL => near.push((group, limits, least)),
            Some((factor, course)) if stays_below(data, measure, *factor, group) => {
                hosts.push((group, *factor, course));
            }
            _ if most < IDLE => other.push((group, limits, most)),
            _ => {
                if let Some(one) = Part::of(data, group, limits) {
                    match part.iter_mut().find(|known: &&mut Part<'_>| known.is_like(&one)) {
                        Some(known) => known.join(one),
                        None => part.push(one),
                    }
                }
            }
        }
    }

    let unit = data.study.measures[measure].unit;
    let title = &data.study.measures[measure].title;
    let names = |groups: Vec<&Group>| match data.gathered_by() {
        Some(_) => on(data, &groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>()),
        None => said!(data.lang, "findings-limiter-in-all-results", "in all results"),
    };
    if !wire.is_empty() {
        let least = wire.iter().map(|(_, _, least)| *least).fold(1.0, f64::min);
        let on = names(wire.iter().map(|(group, ..)| *group).collect());
        let text = if least >= ALL {
            said!(
                data.lang,
                "findings-limiter-wire-all",
                "The wire limits {title} {on}: every result is all of what it can carry.",
                title = title,
                on = on
            )
        } else {
            said!(
                data.lang,
                "findings-limiter-wire",
                "The wire limits {title} {on}: every result is at least {share} of what it can carry.",
                title = title,
                on = on,
                share = share(least)
            )
        };
        let evidence = wire.iter().map(|(group, limits, _)| shares_of(data, group, limits));
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    if !hosts.is_empty() {
        let factor = &data.study.factors[hosts[0].1].title;
        let on = names(hosts.iter().map(|(group, ..)| *group).collect());
        let text = said!(
            data.lang,
            "findings-limiter-hosts",
            "The hosts, not the wire, limit {title} {on}: it grows with the {factor} and stays below what the wire can \
             carry.",
            title = title,
            on = on,
            factor = factor
        );
        let evidence = hosts.iter().flat_map(|(group, factor_at, course)| {
            let shares: Vec<f64> = with_factor(data, measure, *factor_at, group).collect();
            let (lowest, highest) = course.ends();
            [
                test(
                    &course.test(data.lang),
                    course.p(),
                    said!(
                        data.lang,
                        "findings-limiter-grows",
                        "{group}: grows with the {factor} from {low} to {high}, {p}.",
                        group = group.name,
                        factor = factor,
                        low = data.name_of(*factor_at, lowest),
                        high = data.name_of(*factor_at, highest),
                        p = p_value(course.p())
                    ),
                ),
                bound(said!(
                    data.lang,
                    "findings-limiter-are-below",
                    "{group}: the highest of {count} results is {most} of the limit.",
                    group = group.name,
                    count = shares.len(),
                    most = share(shares.iter().copied().fold(0.0, f64::max))
                )),
            ]
        });
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    if !near.is_empty() {
        let least = near.iter().map(|(_, _, least)| *least).fold(1.0, f64::min);
        let on = names(near.iter().map(|(group, ..)| *group).collect());
        let text = said!(
            data.lang,
            "findings-limiter-near",
            "{title} {on} comes near what the wire can carry: every result is at least {share} of it. What else limits \
             them costs at most {rest}.",
            title = title,
            on = on,
            share = share(least),
            rest = share(1.0 - least)
        );
        let evidence = near.iter().map(|(group, limits, _)| shares_of(data, group, limits));
        found.push(finding(FindingKind::Limiter, sentence(&text), evidence.collect()));
    }
    if !other.is_empty() {
        let on = names(other.iter().map(|(group, ..)| *group).collect());
        let highest = other.iter().map(|(_, _, most)| *most).fold(0.0, f64::max);
        let most = share(highest);
        let text = if highest == 0.0 {
            said!(
                data.lang,
                "findings-limiter-nothing-at-all",
                "Nothing arrives {on}: something other than the wire limits {title} there.",
                title = title,
                on = on
            )
        } else {
            said!(
                data.lang,
                "findings-limiter-not-the-wire",
                "Something other than the wire limits {title} {on}: no result is more than {most} of what it can carry.",
                title = title,
                on = on,
                most = most
            )
        };
        let evidence = other.iter().filter_map(|(group, limits, most)| {
            let best = limits.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
            Some(bound(said!(
                data.lang,
                "findings-limiter-the-best",
                "{group}: the best result, {best}, is {share} of {limit}.",
                group = group.name,
                best = value(data.value(best.cell, measure)?, unit),
                share = share(*most),
                limit = value(best.high, unit)
            )))
        });
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    found.extend(part.iter().map(|part| part.finding(data, measure)));
    found
}

/// Returns the shares of the limit in the cells of a group that have a level of the factor.
fn with_factor<'a>(
    data: &'a Data<'_>,
    measure: usize,
    factor: usize,
    group: &'a Group,
) -> impl Iterator<Item = f64> + 'a {
    let has = move |cell: &&usize| data.study.cells[**cell].levels[factor].is_some();
    group.cells.iter().filter(has).filter_map(move |cell| Some(data.limit(*cell, measure)?.share))
}

/// Returns whether all results with a level of the factor are far below the limit of the wire.
fn stays_below(data: &Data<'_>, measure: usize, factor: usize, group: &Group) -> bool {
    with_factor(data, measure, factor, group).all(|share| share < FULL)
}

/// Returns the shares of the limit in a group as evidence.
fn shares_of(data: &Data<'_>, group: &Group, limits: &[CellLimit]) -> Evidence {
    let (least, most) = extremes(limits.iter().map(|limit| limit.share)).unwrap_or_default();
    let (least, most) = (share(least), share(most));
    let shares = if least == most { most } else { figures::range(data.lang, &least, &most) };
    let results = said!(
        data.lang,
        "findings-limiter-results",
        if results == 1 { "1 result" } else { "{results} results" },
        results = limits.len()
    );
    bound(said!(
        data.lang,
        "findings-limiter-shares",
        "{group}: {results}, {shares} of the limit.",
        group = group.name,
        results = results,
        shares = shares
    ))
}

/// Results of one medium that are far below its limit, while others are not: the wire does not limit these.
struct Part<'a> {
    groups: Vec<&'a Group>,
    /// Description of the results.
    which: String,
    /// Limits of these results.
    low: Vec<&'a CellLimit>,
    /// Highest share of these results, and of the others.
    most: f64,
    best: f64,
}

impl<'a> Part<'a> {
    fn of(data: &Data<'_>, group: &'a Group, limits: &'a [CellLimit]) -> Option<Self> {
        let low: Vec<&CellLimit> = limits.iter().filter(|limit| limit.share < IDLE).collect();
        let (_, most) = extremes(low.iter().map(|limit| limit.share))?;
        let best = limits.iter().map(|limit| limit.share).fold(0.0, f64::max);
        let cells: Vec<usize> = low.iter().map(|limit| limit.cell).collect();
        Some(Self { groups: vec![group], which: described(data, group, &cells), low, most, best })
    }

    /// Returns whether both are said in one sentence.
    fn is_like(&self, other: &Self) -> bool {
        self.which == other.which && (self.most == 0.0) == (other.most == 0.0)
    }

    fn join(&mut self, other: Self) {
        self.groups.extend(other.groups);
        self.low.extend(other.low);
        (self.most, self.best) = (self.most.max(other.most), self.best.min(other.best));
    }

    fn finding(&self, data: &Data<'_>, measure: usize) -> Finding {
        let by: Vec<usize> = data.gathered_by().into_iter().collect();
        let unit = data.study.measures[measure].unit;
        let groups: Vec<String> = self.groups.iter().map(|group| group.name.clone()).collect();
        let (title, on) = (&data.study.measures[measure].title, on(data, &groups));
        let text = if self.most == 0.0 {
            said!(
                data.lang,
                "findings-limiter-nothing-arrives",
                "Nothing arrives {on} with {which}, while another result is {best} of what the wire can carry: \
                 something other than the wire limits {title} there.",
                on = on,
                which = self.which,
                best = share(self.best),
                title = title
            )
        } else {
            said!(
                data.lang,
                "findings-limiter-partly",
                "Something other than the wire limits {title} {on} with {which}: at most {most} of what it can carry, \
                 where another result is {best} of it.",
                title = title,
                on = on,
                which = self.which,
                most = share(self.most),
                best = share(self.best)
            )
        };
        // Groups of one finding have the same levels otherwise.
        let but: &[usize] = if self.groups.len() == 1 { &by } else { &[] };
        let each = self.low.iter().filter_map(|limit| {
            Some(said!(
                data.lang,
                "findings-words-reached-of",
                "{name}: {reached} of {most}",
                name = data.cell_name(limit.cell, but),
                reached = value(data.value(limit.cell, measure)?, unit),
                most = value(limit.high, unit)
            ))
        });
        let each = some_of(data.lang, MOST_NAMED, &each.collect::<Vec<_>>());
        finding(FindingKind::Limiter, text, vec![bound(each)])
    }
}

/// Describes some cells of a group: by the levels that they alone have, one by one if they are few, or by their number.
fn described(data: &Data<'_>, group: &Group, cells: &[usize]) -> String {
    let by = data.gathered_by();
    let levels_of = |cells: &[usize], factor: usize| {
        let mut levels: Vec<Option<usize>> = cells.iter().map(|cell| data.study.cells[*cell].levels[factor]).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    };
    let factors: Vec<usize> = (0..data.study.factors.len()).filter(|factor| Some(*factor) != by).collect();
    let mut shared = Vec::new();
    for factor in factors {
        let of_some = levels_of(cells, factor);
        if of_some != levels_of(&group.cells, factor) {
            shared.push((factor, of_some));
        }
    }
    let has = |cell: &&usize| {
        shared.iter().all(|(factor, levels)| levels.contains(&data.study.cells[**cell].levels[*factor]))
    };
    let is_block = group.cells.iter().filter(has).count() == cells.len() && !shared.is_empty();
    let is_named = shared.iter().all(|(_, levels)| levels.iter().all(Option::is_some));
    if is_block && is_named && cells.len() > 1 {
        let names: Vec<String> = shared.iter().map(|(factor, levels)| names_of(data, *factor, levels)).collect();
        return with_commas(data.lang, &names);
    }
    if cells.len() <= MOST_NAMED {
        let but: Vec<usize> = by.into_iter().collect();
        return listed(data.lang, &cells.iter().map(|cell| data.cell_name(*cell, &but)).collect::<Vec<_>>());
    }
    said!(
        data.lang,
        "findings-limiter-combinations",
        "{count} of {all} combinations",
        count = cells.len(),
        all = group.cells.len()
    )
}

/// Names levels of a factor; a row of numbers by its ends.
fn names_of(data: &Data<'_>, factor: usize, levels: &[Option<usize>]) -> String {
    let levels: Vec<usize> = levels.iter().copied().flatten().collect();
    let is_row = data.study.factors[factor].unit.is_some() && levels.windows(2).all(|two| two[0] + 1 == two[1]);
    if let (true, [first, .., last]) = (is_row && levels.len() > 2, &levels[..]) {
        let low = &data.study.factors[factor].levels[*first].name;
        return figures::range(data.lang, low, &data.name_of(factor, *last));
    }
    listed(data.lang, &levels.iter().map(|level| data.name_of(factor, *level)).collect::<Vec<_>>())
}

/// Returns the phrase for the place of results: on a medium, or of anything else.
pub(super) fn on(data: &Data<'_>, groups: &[String]) -> String {
    let names = listed(data.lang, groups);
    match data.medium_factor() {
        Some(_) => said!(data.lang, "findings-limiter-on", "on {names}", names = names),
        None => said!(data.lang, "findings-limiter-of", "of {names}", names = names),
    }
}
