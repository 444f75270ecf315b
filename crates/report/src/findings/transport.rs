//! TCP against UDP, on each medium.

use super::data::{Data, Pair};
use super::ranking::{Ahead, Match, adjusted, sign_test_of};
use super::words::{extremes, p_value, times, times_range};
use super::{bound, finding, test};
use crate::said;
use linerate_model::{Finding, FindingKind, Medium, Transport};

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let Some(factor) = data.transport_factor() else { return Vec::new() };
    let levels = &data.study.factors[factor].levels;
    let level = |transport| levels.iter().position(|level| level.path.transport == Some(transport));
    let (Some(tcp), Some(udp)) = (level(Transport::Tcp), level(Transport::Udp)) else { return Vec::new() };
    let pairs = data.pairs(factor, udp, tcp, measure);

    let mut media: Vec<Option<Medium>> = Vec::new();
    for pair in &pairs {
        let medium = data.medium(pair.a.0, measure);
        if !media.contains(&medium) {
            media.push(medium);
        }
    }
    let of = |medium: Option<Medium>| -> Vec<Pair> {
        pairs.iter().copied().filter(|pair| data.medium(pair.a.0, measure) == medium).collect()
    };
    let matches =
        media.iter().enumerate().filter_map(|(index, medium)| Match::of(Ahead::More, udp, tcp, index, &of(*medium)));
    let title = &data.study.measures[measure].title;
    adjusted(matches.collect())
        .into_iter()
        .filter_map(|one| {
            let winner = one.winner()?;
            let within = of(media[one.stratum]);
            let on = media[one.stratum]
                .map_or_else(String::new, |medium| said!(data.lang, "findings-transport-over", medium = medium));
            let (first, second) = if winner == udp { ("UDP", "TCP") } else { ("TCP", "UDP") };
            let ratios = within.iter().filter(|pair| pair.a.1 > 0.0 && pair.b.1 > 0.0);
            let (low, high) =
                extremes(ratios.map(|pair| if winner == udp { pair.a.1 / pair.b.1 } else { pair.b.1 / pair.a.1 }))?;
            let (ahead, middle) = one.lead();
            let text = said!(
                data.lang,
                "findings-transport-beats",
                on = on,
                first = first,
                second = second,
                title = title,
                ahead = ahead,
                all = one.all,
                median = times(data.lang, middle)
            );
            let mut evidence = vec![test(
                &sign_test_of(data.lang),
                one.p,
                said!(
                    data.lang,
                    "findings-transport-is-ahead",
                    udp = one.wins,
                    all = one.all,
                    tcp = one.losses,
                    first = first,
                    second = second,
                    range = times_range(data.lang, low, high),
                    p = p_value(one.p)
                ),
            )];
            // How much of that the headers alone account for.
            let of_limits = within
                .iter()
                .filter_map(|pair| Some(data.limit(pair.a.0, measure)?.high / data.limit(pair.b.0, measure)?.low));
            if let Some((_, most)) = extremes(of_limits) {
                evidence.push(bound(said!(data.lang, "findings-transport-headers", most = times(data.lang, most))));
            }
            Some(finding(FindingKind::Transport, text, evidence))
        })
        .collect()
}
