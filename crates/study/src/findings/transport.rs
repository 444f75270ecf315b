//! TCP against UDP, on each medium.

use super::data::{Data, Pair};
use super::ranking::{Ahead, Match, adjusted, repeats_note};
use super::words::{times, times_range};
use super::{bound, finding, test};
use crate::finding::{Finding, FindingKind};
use linerate_method::statistics::Tested;
use linerate_model::{Medium, Transport};
use linerate_report::parts::values::extremes;
use linerate_report::said;

/// Share of a difference, in logarithms, from which on the limits of the medium explain most of it.
const EXPLAINED: f64 = 0.75;

/// Levels of both transports, and the pairs of cells on each medium.
struct Transports {
    udp: usize,
    tcp: usize,
    media: Vec<(Option<Medium>, Vec<Pair>)>,
}

impl Transports {
    fn of(data: &Data<'_>, measure: usize) -> Option<Self> {
        let factor = data.transport_factor()?;
        let levels = &data.study.factors[factor].levels;
        let level = |transport| levels.iter().position(|level| level.path.transport == Some(transport));
        let (tcp, udp) = (level(Transport::Tcp)?, level(Transport::Udp)?);
        let mut media: Vec<(Option<Medium>, Vec<Pair>)> = Vec::new();
        for pair in data.pairs(factor, udp, tcp, measure) {
            let medium = data.medium(pair.a.0, measure);
            match media.iter_mut().find(|(known, _)| *known == medium) {
                Some((_, pairs)) => pairs.push(pair),
                None => media.push((medium, vec![pair])),
            }
        }
        Some(Self { udp, tcp, media })
    }

    /// Returns UDP against TCP on each medium, with p-values that are not adjusted.
    fn matches(&self, data: &Data<'_>, measure: usize) -> Vec<Match> {
        let of_medium = |(index, (_, pairs)): (usize, &(Option<Medium>, Vec<Pair>))| {
            let found = Match::of(Ahead::More, self.udp, self.tcp, index, pairs)?;
            Some(found.with_repeats(data, measure, Ahead::More, pairs))
        };
        self.media.iter().enumerate().filter_map(of_medium).collect()
    }
}

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    let transports = Transports::of(data, measure);
    transports.iter().flat_map(|transports| transports.matches(data, measure)).map(|one| one.tested()).collect()
}

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let Some(transports) = Transports::of(data, measure) else { return Vec::new() };
    let udp = transports.udp;
    let title = &data.study.measures[measure].title;
    let mut matches = adjusted(data, transports.matches(data, measure));
    matches.sort_by(|one, other| other.lead().1.total_cmp(&one.lead().1));
    matches
        .into_iter()
        .filter_map(|one| {
            let winner = one.winner()?;
            let (medium, within) = &transports.media[one.stratum];
            let on =
                medium.map_or_else(String::new, |medium| said!(data.lang, "findings-transport-over", "Over {medium} ", medium = medium));
            let (first, second) = if winner == udp { ("UDP", "TCP") } else { ("TCP", "UDP") };
            let ratios = within.iter().filter(|pair| pair.a.1 > 0.0 && pair.b.1 > 0.0);
            let (low, high) =
                extremes(ratios.map(|pair| if winner == udp { pair.a.1 / pair.b.1 } else { pair.b.1 / pair.a.1 }))?;
            let (ahead, middle) = one.lead();
            let mut text = said!(
                data.lang,
                "findings-transport-beats", "{on}{first} beats {second}: it has more {title} in {ahead} of {all} pairs of cells that agree in all \
                 else (median {median}).",
                on = on,
                first = first,
                second = second,
                title = title,
                ahead = ahead,
                all = one.all,
                median = times(data.lang, middle)
            );
            let mut evidence = vec![test(
                &one.test_name(data.lang),
                one.p,
                said!(
                    data.lang,
                    "findings-transport-is-ahead", "UDP is ahead in {udp} of {all} pairs, TCP in {tcp}; {second} to {first} is {range}; {p}.",
                    udp = one.wins,
                    all = one.all,
                    tcp = one.losses,
                    first = first,
                    second = second,
                    range = times_range(data.lang, low, high),
                    p = one.p_in_words(data.lang)
                ),
            )];
            evidence.extend(repeats_note(data, measure, [&one]));
            // How much of that the headers alone account for.
            let of_limits = within
                .iter()
                .filter_map(|pair| Some(data.limit(pair.a.0, measure)?.high / data.limit(pair.b.0, measure)?.low));
            if let Some((_, most)) = extremes(of_limits) {
                let shared = within.iter().any(|pair| data.path(pair.a.0, measure).half_duplex == Some(true));
                evidence.push(bound(if shared {
                    said!(data.lang, "findings-transport-half-duplex", "Headers, and acknowledgements on the shared medium, account for at most {most}: the medium can \
                         carry that much more over UDP than over TCP.", most = times(data.lang, most))
                } else {
                    said!(data.lang, "findings-transport-headers", "Headers account for at most {most}: the medium can carry that much more over UDP than over \
                         TCP.", most = times(data.lang, most))
                }));
                if winner == udp && middle > 1.0 && most.ln() >= EXPLAINED * middle.ln() {
                    text.push_str(&said!(data.lang, "findings-transport-explained", " What the medium can carry, {most} as much over UDP, explains most of it.", most = times(data.lang, most)));
                }
            }
            Some(finding(FindingKind::Transport, text, evidence))
        })
        .collect()
}
