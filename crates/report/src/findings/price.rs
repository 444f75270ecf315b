//! What speed costs, and whether a dearer option pays.

use super::data::{Data, Pair};
use super::ranking::{Ahead, Match, adjusted, sign_test_of};
use super::words::{extremes, money, p_value, times, times_range};
use super::{bound, finding, test};
use crate::language::Language;
use crate::said;
use crate::sentences::sentence;
use linerate_method::statistics::{SIGNIFICANT, sign_test};
use linerate_model::{Finding, FindingKind, MeasureUnit, Price};

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let priced =
        |factor: &usize| data.study.factors[*factor].levels.iter().filter(|level| level.price.is_some()).count() > 1;
    (0..data.study.factors.len()).filter(priced).flat_map(|factor| of_factor(data, measure, factor)).collect()
}

/// Each dearer level against the cheapest, for each transport by itself: what is dear may pay for one of them only.
fn of_factor(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Finding> {
    let levels = &data.study.factors[factor].levels;
    let mut priced: Vec<(usize, Price)> =
        levels.iter().enumerate().filter_map(|(level, named)| Some((level, named.price?))).collect();
    priced.sort_by(|(_, a), (_, b)| a.low.total_cmp(&b.low));
    let Some(((cheap, cheap_price), dearer)) = priced.split_first() else { return Vec::new() };
    let by = data.transport_factor().filter(|by| *by != factor);
    let strata = data.groups(by, measure);
    let pairs_of = |dear: usize, stratum: usize| -> Vec<Pair> {
        let pairs = data.pairs(factor, dear, *cheap, measure);
        pairs
            .into_iter()
            .filter(|pair| strata[stratum].cells.contains(&pair.a.0) && pair.b.1 > 0.0 && pair.a.1 > 0.0)
            .collect()
    };
    let matches = dearer.iter().flat_map(|(dear, _)| {
        (0..strata.len())
            .filter_map(move |stratum| Match::of(Ahead::More, *dear, *cheap, stratum, &pairs_of(*dear, stratum)))
    });
    let matches = adjusted(matches.collect());

    let mut found = Vec::new();
    for (stratum, group) in strata.iter().enumerate() {
        for one in matches.iter().filter(|one| one.stratum == stratum) {
            let Some((_, price)) = dearer.iter().find(|(level, _)| *level == one.a) else { continue };
            let pairs = pairs_of(one.a, stratum);
            let of = by.map(|_| group.name.as_str());
            found.extend(of_option(data, measure, factor, one, &pairs, (*price, *cheap_price), (of, matches.len())));
        }
    }
    found
}

fn of_option(
    data: &Data<'_>,
    measure: usize,
    factor: usize,
    one: &Match,
    pairs: &[Pair],
    (price, cheap): (Price, Price),
    (stratum, looked_at): (Option<&str>, usize),
) -> Option<Finding> {
    let currency = data.study.currency.as_deref();
    let (dear_name, cheap_name) = (data.name_of(factor, one.a), data.name_of(factor, one.b));
    let title = &data.study.measures[measure].title;
    // What one Mbit/s (one a second) costs; the range of prices taken in favour of the dearer option.
    let (per, unit) = match data.study.measures[measure].unit {
        MeasureUnit::BitsPerS => (1e6, "Mbit/s".to_owned()),
        MeasureUnit::PerS => (1.0, said!(data.lang, "findings-price-one-a-second")),
        MeasureUnit::Nanos | MeasureUnit::Share => return None,
    };
    let dear_cost = extremes(pairs.iter().map(|pair| price.low / (pair.a.1 / per)))?;
    let cheap_cost = extremes(pairs.iter().map(|pair| cheap.high / (pair.b.1 / per)))?;
    // Once with the prices in its favour, once against it.
    let cheaper = |price: f64, cheap: f64| pairs.iter().filter(|pair| price / pair.a.1 < cheap / pair.b.1).count();
    let (at_best, at_worst) = (cheaper(price.low, cheap.high), cheaper(price.high, cheap.low));
    // So many options are looked at.
    let chance = |cheaper: usize| (sign_test(cheaper, pairs.len() - cheaper) * looked_at as f64).min(1.0);
    let pays = at_worst * 2 > pairs.len() && chance(at_worst) < SIGNIFICANT;
    let costs_more = at_best * 2 < pairs.len() && chance(at_best) < SIGNIFICANT;
    let costs = times_range(data.lang, price.low / cheap.high, price.high / cheap.low);
    let of = stratum.map_or_else(String::new, |stratum| said!(data.lang, "findings-price-for", stratum = stratum));
    let more = match one.winner() {
        Some(winner) if winner == one.a => said!(
            data.lang,
            "findings-price-has-more",
            title = title,
            wins = one.wins,
            all = one.all,
            times = times(data.lang, one.ratio)
        ),
        Some(_) => said!(data.lang, "findings-price-has-less", title = title, losses = one.losses, all = one.all),
        None => said!(data.lang, "findings-price-not-shown", title = title, wins = one.wins, all = one.all),
    };
    let gains = one.winner() == Some(one.a);
    let each = said!(
        data.lang,
        "findings-price-one-costs",
        unit = unit,
        cost = cost_range(data.lang, dear_cost, currency),
        other = cost_range(data.lang, cheap_cost, currency),
        cheap = cheap_name
    );
    let text = match (pays, costs_more, gains) {
        (true, ..) => said!(
            data.lang,
            "findings-price-pays",
            of = of,
            dear = dear_name,
            costs = costs,
            cheap = cheap_name,
            more = more
        ),
        (_, true, true) => said!(
            data.lang,
            "findings-price-dearly",
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
            of = of,
            dear = dear_name,
            costs = costs,
            cheap = cheap_name,
            more = more
        ),
        _ => return None,
    };
    let (prices, favour) = match pays {
        true => (said!(data.lang, "findings-price-held-against-it"), at_worst),
        false => (said!(data.lang, "findings-price-in-its-favour"), at_best),
    };
    let evidence = vec![
        test(&sign_test_of(data.lang), one.p, one.said(data.lang, &dear_name, &cheap_name)),
        test(
            &said!(data.lang, "findings-price-sign-test"),
            chance(favour),
            said!(
                data.lang,
                "findings-price-costs-less",
                prices = prices,
                unit = unit,
                dear = dear_name,
                cheap = cheap_name,
                favour = favour,
                pairs = pairs.len(),
                p = p_value(chance(favour))
            ),
        ),
        bound(said!(
            data.lang,
            "findings-price-at",
            price = money(price.low, currency),
            dear = dear_name,
            other = money(cheap.high, currency),
            cheap = cheap_name,
            each = each
        )),
    ];
    Some(finding(FindingKind::Price, text, evidence))
}

fn cost_range(lang: Language, (low, high): (f64, f64), currency: Option<&str>) -> String {
    said!(lang, "comparison-to", low = money(low, None), high = money(high, currency))
}
