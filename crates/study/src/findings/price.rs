//! The price of speed, and whether a dearer option pays.

use super::data::{Data, Pair};
use super::rank_sum::RankSum;
use super::ranking::{Ahead, Match, blocks, rank_sum_test_of, repeats_note, sign_test_of};
use super::words::{money, p_value, times, times_range, with_semicolons};
use super::{bound, finding, sign_tested, test};
use crate::finding::{Evidence, Finding, FindingKind};
use crate::study::Price;
use linerate_method::statistics::{SIGNIFICANT, Tested};
use linerate_model::MeasureUnit;
use linerate_report::parts::values::extremes;
use linerate_report::parts::wording::{in_a_row, sentence};
use linerate_report::{Language, said};
use std::cmp::Ordering;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    priced(data).filter_map(|factor| of_factor(data, measure, factor)).collect()
}

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    let offers = priced(data).flat_map(|factor| offers(data, measure, factor));
    offers
        .flat_map(|offer| {
            let (best, worst) = (offer.at_best(data, measure), offer.at_worst(data, measure));
            [offer.ahead.tested(), best.tested(), worst.tested()]
        })
        .collect()
}

/// Reports all dearer levels of a factor in one finding. A level that pays for no transport is one sentence.
fn of_factor(data: &Data<'_>, measure: usize, factor: usize) -> Option<Finding> {
    let judged: Vec<Judged> =
        offers(data, measure, factor).into_iter().filter_map(|offer| offer.judged(data, measure, factor)).collect();
    let mut sentences = Vec::new();
    let mut evidence = Vec::new();
    let mut said: Vec<usize> = Vec::new();
    for one in &judged {
        let alike: Vec<&Judged> = judged.iter().filter(|other| other.level == one.level).collect();
        let is_joined = alike.len() > 1 && alike.iter().all(|other| other.does_not_pay.is_some());
        if !is_joined {
            sentences.push(one.text.clone());
        } else if !said.contains(&one.level) {
            said.push(one.level);
            sentences.extend(does_not_pay(data.lang, &alike));
        }
        evidence.extend(one.evidence.iter().cloned());
    }
    (!sentences.is_empty()).then(|| finding(FindingKind::Price, in_a_row(&sentences), evidence))
}

/// Returns the sentence that a level does not pay for any transport.
fn does_not_pay(lang: Language, judged: &[&Judged]) -> Option<String> {
    let mut each = Vec::new();
    for one in judged {
        let why = one.does_not_pay.as_ref()?;
        each.push(said!(
            lang,
            "findings-price-for-one",
            "for {stratum}, {more}",
            stratum = why.stratum,
            more = why.more
        ));
    }
    let why = judged.first()?.does_not_pay.as_ref()?;
    let text = said!(
        lang,
        "findings-price-does-not-pay-at-all",
        "{dear} does not pay: it costs {costs} as much as {cheap}.",
        dear = why.dear,
        costs = why.costs,
        cheap = why.cheap
    );
    Some(in_a_row(&[text, sentence(&with_semicolons(lang, &each))]))
}

/// What is said of a dear level for one transport.
struct Judged {
    level: usize,
    text: String,
    evidence: Vec<Evidence>,
    /// Parts of the text, if the level does not pay.
    does_not_pay: Option<DoesNotPay>,
}

/// Parts of the sentence that a level does not pay.
struct DoesNotPay {
    dear: String,
    cheap: String,
    costs: String,
    stratum: String,
    more: String,
}

/// Returns the factors with several priced levels.
fn priced<'a>(data: &'a Data<'_>) -> impl Iterator<Item = usize> + 'a {
    let factors = &data.study.factors;
    let priced = |factor: &usize| factors[*factor].levels.iter().filter(|level| level.price.is_some()).count() > 1;
    (0..factors.len()).filter(priced)
}

/// A dearer level against the cheapest, for one transport: it may pay for only one of them.
struct Offer {
    /// Match of the dear level against the cheap one; its p-value is not adjusted.
    ahead: Match,
    pairs: Vec<Pair>,
    price: Price,
    cheap: Price,
    /// Transport; `None` if it was not varied.
    stratum: Option<String>,
}

fn offers(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Offer> {
    let levels = &data.study.factors[factor].levels;
    let mut priced: Vec<(usize, Price)> =
        levels.iter().enumerate().filter_map(|(level, named)| Some((level, named.price?))).collect();
    priced.sort_by(|(_, a), (_, b)| a.low.total_cmp(&b.low));
    let Some(((cheap, cheap_price), dearer)) = priced.split_first() else { return Vec::new() };
    let by = data.transport_factor().filter(|by| *by != factor);
    let mut offers = Vec::new();
    for (index, group) in data.groups(by, measure).into_iter().enumerate() {
        for (dear, price) in dearer {
            let pairs = data.pairs(factor, *dear, *cheap, measure).into_iter();
            let pairs: Vec<Pair> =
                pairs.filter(|pair| group.cells.contains(&pair.a.0) && pair.b.1 > 0.0 && pair.a.1 > 0.0).collect();
            let stratum = by.map(|_| group.name.clone());
            let ahead = Match::of(Ahead::More, *dear, *cheap, index, &pairs)
                .map(|found| found.with_repeats(data, measure, Ahead::More, &pairs));
            offers.extend(ahead.map(|ahead| Offer { ahead, pairs, price: *price, cheap: *cheap_price, stratum }));
        }
    }
    offers
}

/// Cost of a unit of the result with the dear level, against the cheap one.
#[derive(Clone, Copy)]
struct Costs {
    /// Pairs in which it costs less.
    less: usize,
    /// Pairs in which it costs more.
    more: usize,
    /// Test of the repeats, each divided by its price; `None` if no cell has repeats that differ.
    ranks: Option<RankSum>,
}

impl Costs {
    /// Returns its test, not adjusted.
    fn tested(&self) -> Tested {
        self.ranks.map_or_else(|| sign_tested(self.less, self.more), |ranks| ranks.tested)
    }

    fn is_less(&self) -> bool {
        self.less > self.more && self.ranks.is_none_or(|ranks| ranks.is_a_higher())
    }

    fn is_more(&self) -> bool {
        self.more > self.less && self.ranks.is_none_or(|ranks| ranks.is_b_higher())
    }
}

impl Offer {
    /// Returns the cost of the dear level relative to its gain, with prices in its favour.
    fn at_best(&self, data: &Data<'_>, measure: usize) -> Costs {
        self.costs(data, measure, (self.price.low, self.cheap.high))
    }

    /// Returns the same with prices against it.
    fn at_worst(&self, data: &Data<'_>, measure: usize) -> Costs {
        self.costs(data, measure, (self.price.high, self.cheap.low))
    }

    fn costs(&self, data: &Data<'_>, measure: usize, (price, cheap): (f64, f64)) -> Costs {
        let each = || self.pairs.iter().map(move |pair| (price / pair.a.1).total_cmp(&(cheap / pair.b.1)));
        let count = |is: Ordering| each().filter(|order| *order == is).count();
        let ranks = self
            .ahead
            .has_repeats()
            .then(|| RankSum::of(&blocks(data, measure, &self.pairs, (1.0 / price, 1.0 / cheap))))
            .flatten();
        Costs { less: count(Ordering::Less), more: count(Ordering::Greater), ranks }
    }

    /// Returns cost and gain of the dear level as a finding. Returns `None` if the pairs disagree.
    fn judged(mut self, data: &Data<'_>, measure: usize, factor: usize) -> Option<Judged> {
        let (at_best, at_worst) = (self.at_best(data, measure), self.at_worst(data, measure));
        let (p_best, p_worst) = (data.adjusted(at_best.tested()), data.adjusted(at_worst.tested()));
        self.ahead.p = data.adjusted(self.ahead.tested());
        let (one, pairs) = (&self.ahead, &self.pairs);
        let (price, cheap, stratum) = (self.price, self.cheap, self.stratum.as_deref());
        let currency = data.study.currency.as_deref();
        let (dear_name, cheap_name) = (data.name_of(factor, one.a), data.name_of(factor, one.b));
        let title = &data.study.measures[measure].title;
        // What one Mbit/s (one a second) costs; the range of prices taken in favour of the dearer option.
        let (per, unit) = match data.study.measures[measure].unit {
            MeasureUnit::BitsPerS => (1e6, "Mbit/s".to_owned()),
            MeasureUnit::PerS => (1.0, said!(data.lang, "findings-price-one-a-second", "one a second")),
            MeasureUnit::Nanos
            | MeasureUnit::NanosHeld
            | MeasureUnit::Times
            | MeasureUnit::Share
            | MeasureUnit::Count => return None,
        };
        let dear_cost = extremes(pairs.iter().map(|pair| price.low / (pair.a.1 / per)))?;
        let cheap_cost = extremes(pairs.iter().map(|pair| cheap.high / (pair.b.1 / per)))?;
        let pays = at_worst.is_less() && p_worst < SIGNIFICANT;
        let costs_more = at_best.is_more() && p_best < SIGNIFICANT;
        let costs = times_range(data.lang, price.low / cheap.high, price.high / cheap.low);
        let of = stratum.map_or_else(String::new, |stratum| {
            said!(data.lang, "findings-price-for", "For {stratum}, ", stratum = stratum)
        });
        let more = match one.winner() {
            Some(winner) if winner == one.a => said!(
                data.lang,
                "findings-price-has-more",
                "it has more {title} in {wins} of {all} pairs of cells (median {times})",
                title = title,
                wins = one.wins,
                all = one.all,
                times = times(data.lang, one.lead().1)
            ),
            Some(_) => said!(
                data.lang,
                "findings-price-has-less",
                "it has less {title}, in {losses} of {all} pairs of cells",
                title = title,
                losses = one.losses,
                all = one.all
            ),
            None => said!(
                data.lang,
                "findings-price-not-shown",
                "it is not shown to have more {title} ({wins} of {all} pairs of cells)",
                title = title,
                wins = one.wins,
                all = one.all
            ),
        };
        let gains = one.winner() == Some(one.a);
        let does_not_pay = (!pays && costs_more && !gains).then(|| DoesNotPay {
            dear: dear_name.clone(),
            cheap: cheap_name.clone(),
            costs: costs.clone(),
            stratum: stratum.unwrap_or_default().to_owned(),
            more: more.clone(),
        });
        // Too few pairs for a test still agree, or do not.
        let agree = at_best.more == pairs.len();
        let each = said!(
            data.lang,
            "findings-price-one-costs",
            "one {unit} costs {cost} where it costs {other} with {cheap}",
            unit = unit,
            cost = cost_range(data.lang, dear_cost, currency),
            other = cost_range(data.lang, cheap_cost, currency),
            cheap = cheap_name
        );
        let text = match (pays, costs_more, gains) {
            (true, ..) => said!(
                data.lang,
                "findings-price-pays",
                "{of}{dear} pays: it costs {costs} as much as {cheap}, and {more}.",
                of = of,
                dear = dear_name,
                costs = costs,
                cheap = cheap_name,
                more = more
            ),
            (_, true, true) => said!(
                data.lang,
                "findings-price-dearly",
                "{of}{dear} buys speed, but dearly: it costs {costs} as much as {cheap}; {more}. {each}",
                of = of,
                dear = dear_name,
                costs = costs,
                cheap = cheap_name,
                more = more,
                each = sentence(&each)
            ),
            (_, true, false) => said!(
                data.lang,
                "findings-price-does-not-pay",
                "{of}{dear} does not pay: it costs {costs} as much as {cheap}, and {more}.",
                of = of,
                dear = dear_name,
                costs = costs,
                cheap = cheap_name,
                more = more
            ),
            _ if agree => {
                let (low, high) = extremes(pairs.iter().map(|pair| pair.a.1 / pair.b.1))?;
                let text = said!(
                    data.lang,
                    "findings-price-of-few",
                    if pairs == 1 {
                        "{of}{dear} costs {costs} as much as {cheap}, and {title} is {range} as high (one pair of cells)."
                    } else {
                        "{of}{dear} costs {costs} as much as {cheap}, and {title} is {range} as high ({pairs} pairs of \
                         cells)."
                    },
                    of = of,
                    dear = dear_name,
                    costs = costs,
                    cheap = cheap_name,
                    title = title,
                    range = times_range(data.lang, low, high),
                    pairs = pairs.len()
                );
                text + &said!(data.lang, "findings-of-these-only", " So few results show this of these only.")
            }
            _ => return None,
        };
        let (prices, favour, p) = if pays {
            (said!(data.lang, "findings-price-held-against-it", "the prices held against it"), at_worst, p_worst)
        } else {
            (said!(data.lang, "findings-price-in-its-favour", "the prices in its favour"), at_best, p_best)
        };
        let cost_test = match &favour.ranks {
            Some(ranks) => rank_sum_test_of(data.lang, ranks),
            None => sign_test_of(data.lang),
        };
        let mut evidence = vec![
            test(&one.test_name(data.lang), one.p, one.said(data.lang, &dear_name, &cheap_name)),
            test(
                &cost_test,
                p,
                said!(
                    data.lang,
                    "findings-price-costs-less",
                    "With {prices}, one {unit} costs less with {dear} than with {cheap} in {favour} of {pairs} pairs; \
                     {p}.",
                    prices = prices,
                    unit = unit,
                    dear = dear_name,
                    cheap = cheap_name,
                    favour = favour.less,
                    pairs = pairs.len(),
                    p = p_value(p)
                ),
            ),
            bound(said!(
                data.lang,
                "findings-price-at",
                "At {price} for {dear} and {other} for {cheap}: {each}.",
                price = money(price.low, currency),
                dear = dear_name,
                other = money(cheap.high, currency),
                cheap = cheap_name,
                each = each
            )),
        ];
        evidence.extend(repeats_note(data, measure, [one]));
        Some(Judged { level: one.a, text, evidence, does_not_pay })
    }
}

/// Formats a range of sums of money.
pub(crate) fn cost_range(lang: Language, (low, high): (f64, f64), currency: Option<&str>) -> String {
    if low == high {
        return money(high, currency);
    }
    said!(lang, "comparison-to", "{low} to {high}", low = money(low, None), high = money(high, currency))
}
