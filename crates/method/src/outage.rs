//! Outages: times in which the path carried nothing, found from the series of an attempt.

use crate::interval_rates::judged_by;
use linerate_model::{
    Caveat, CaveatKind, HostName, MessageValue, Outage, Series, SeriesQuantity as Quantity, SessionSeries, Span,
    TrialResult, message,
};
use linerate_units::Nanos;

/// A shorter silence is what TCP does after a loss.
const SHORTEST_US: i64 = 1_000_000;
/// The same where TCP timed out outside the silence, too: a path that loses much makes it wait for seconds.
const SHORTEST_LOSSY_US: i64 = 5_000_000;
/// Time-outs outside the silences from which on the path loses much.
const LOSSY_TIMEOUTS: u64 = 3;
/// A silence that is this many times as long as what arrives takes on average is not chance.
const EXPECTED: f64 = 10.0;
/// Data packets below this size, bytes, are not assumed for TCP.
const SEGMENT: f64 = 1_448.0;
/// A host whose interface took this share of what was sent, and which did nothing with it, was held up itself.
const RECEIVED: f64 = 0.5;
/// Bytes of the longest UDP payload that leaves in one packet over Ethernet.
const ONE_PACKET: f64 = 1_472.0;
/// Packets a second of address resolution and routing that an interface takes in any case, at most.
const CHATTER_PER_S: f64 = 20.0;

/// Returns the outages of an attempt's measured load, in the order of their beginning.
pub fn outages(result: &TrialResult) -> Vec<Outage> {
    let sessions: Vec<&SessionSeries> = result.series.iter().filter(|session| session.load == 0).collect();
    let (by_bytes, unit) = judged_by(result.trial.task());
    let is_copy = result.copy().is_some();
    let in_fragments = unit > ONE_PACKET;
    let judged = if by_bytes || is_copy { Quantity::ReceivedBytes } else { Quantity::Operations };
    // Where no receiver was watched, as with iperf3 there, its acknowledgements let the sender go on.
    let quantity = match sessions.iter().any(|session| session.series.track(judged).is_some()) {
        true => judged,
        false => Quantity::TransmittedBytes,
    };
    let unit = if quantity == Quantity::Operations { 1.0 } else { unit.clamp(1.0, SEGMENT) };
    let unit = if is_copy { SEGMENT } else { unit };
    let mut found: Vec<Outage> = Vec::new();
    for session in &sessions {
        for silence in silences(&session.series, quantity, unit, &sessions) {
            let others = sessions.iter().filter(|other| other.host != session.host).copied();
            let Some(towards) = directions(session, others, silence, (quantity, in_fragments)) else { continue };
            let length = Nanos::new((silence.to_us - silence.from_us).unsigned_abs() * 1_000);
            let outage = Outage { host: session.host.clone(), from_us: silence.from_us, length, towards };
            match found.iter_mut().find(|known| known.from_us < silence.to_us && silence.from_us < known.to_us()) {
                Some(known) => merge(known, outage),
                None => found.push(outage),
            }
        }
    }
    found.sort_by_key(|outage| outage.from_us);
    found
}

/// Adds what another host saw of the same outage.
fn merge(known: &mut Outage, other: Outage) {
    for host in other.towards {
        if !known.towards.contains(&host) {
            known.towards.push(host);
        }
    }
    if other.length > known.length {
        (known.host, known.from_us, known.length) = (other.host, other.from_us, other.length);
    }
}

/// Returns the times in the window in which `quantity` did not grow, although `unit` arrived often before or after.
fn silences(series: &Series, quantity: Quantity, unit: f64, sessions: &[&SessionSeries]) -> Vec<Span> {
    let Some(values) = series.track(quantity) else { return Vec::new() };
    let (mut all, mut count, mut seconds) = (Vec::<Span>::new(), 0.0, 0.0);
    for ((span, value), inside) in series.spans().zip(values).zip(series.in_window()) {
        if !inside {
            continue;
        }
        seconds += span.seconds();
        if *value > 0 {
            count += *value as f64;
            continue;
        }
        match all.last_mut() {
            Some(last) if last.to_us == span.from_us => last.to_us = span.to_us,
            _ => all.push(span),
        }
    }
    let timeouts = |within: Span| -> u64 {
        sessions.iter().map(|session| sum_within(&session.series, Quantity::Timeouts, within)).sum()
    };
    let whole = Span { from_us: 0, to_us: i64::try_from(series.window.get() / 1_000).unwrap_or(i64::MAX) };
    all.retain(|span| {
        let others = (seconds - span.seconds()).max(f64::MIN_POSITIVE);
        span.to_us - span.from_us >= SHORTEST_US && span.seconds() * count / unit / others >= EXPECTED
    });
    let within: u64 = all.iter().map(|span| timeouts(*span)).sum();
    if timeouts(whole).saturating_sub(within) >= LOSSY_TIMEOUTS {
        all.retain(|span| span.to_us - span.from_us >= SHORTEST_LOSSY_US);
    }
    all
}

/// Returns the hosts that `others` and the host of `session` sent to in vain during `silence`; empty if that is not known. `None` if
/// nothing was sent, or if the receiver itself had no time.
fn directions<'a>(
    session: &SessionSeries,
    others: impl Iterator<Item = &'a SessionSeries>,
    silence: Span,
    (quantity, in_fragments): (Quantity, bool),
) -> Option<Vec<HostName>> {
    let here = Traffic::of(&session.series, silence);
    let mut towards: Vec<HostName> = Vec::new();
    let mut was_sent = here.again > 0;
    let mut is_watched = false;
    for other in others {
        is_watched = true;
        let there = Traffic::of(&other.series, silence);
        was_sent |= there.datagrams > 0 || there.again > 0;
        // The same of fragments whose datagrams lost others.
        let carries = in_fragments && here.packets_in as f64 > CHATTER_PER_S * silence.seconds();
        let takes_nothing =
            there.datagrams > 0 && (carries || here.packets_in as f64 >= RECEIVED * there.datagrams as f64);
        let answers_nothing = quantity == Quantity::Operations
            && here.again > 0
            && there.packets_in >= here.again
            && RECEIVED * there.packets_in as f64 > there.packets_out as f64;
        if takes_nothing || answers_nothing {
            return None;
        }
        // Requests over UDP leave no other trace.
        was_sent |= quantity == Quantity::Operations && here.packets_out > 0 && there.packets_in == 0;
        let mut add = |host: &HostName| {
            if !towards.contains(host) {
                towards.push(host.clone());
            }
        };
        if there.datagrams > 0 && here.arrived == 0 || there.sends() && here.packets_in == 0 {
            add(&session.host);
        }
        let asks = quantity == Quantity::Operations && here.packets_out > 0;
        if (here.sends() || asks) && there.packets_in == 0 && there.arrived == 0 {
            add(&other.host);
        }
    }
    // A sender that is not watched sends a stream all the time.
    let counts = was_sent || !is_watched && quantity == Quantity::ReceivedBytes;
    counts.then_some(towards)
}

/// What a host sent and received in some time.
struct Traffic {
    /// Datagrams of the load that were sent.
    datagrams: u64,
    /// What arrived of the load, bytes.
    arrived: u64,
    /// Segments or calls that were sent again, and time-outs.
    again: u64,
    /// Packets that its interfaces sent and received, of all programs.
    packets_out: u64,
    packets_in: u64,
}

impl Traffic {
    fn of(series: &Series, within: Span) -> Self {
        let sum = |quantity| sum_within(series, quantity, within);
        Self {
            datagrams: sum(Quantity::SentMessages),
            arrived: sum(Quantity::ReceivedBytes),
            again: sum(Quantity::Retransmits) + sum(Quantity::Timeouts),
            packets_out: sum(Quantity::InterfaceSentPackets),
            packets_in: sum(Quantity::InterfaceReceivedPackets),
        }
    }

    /// Returns whether it sent anything of the load.
    fn sends(&self) -> bool {
        self.datagrams > 0 || self.again > 0 && self.packets_out > 0
    }
}

/// Returns how much `quantity` grew within a time, all subjects together.
fn sum_within(series: &Series, quantity: Quantity, within: Span) -> u64 {
    let mut sum = 0;
    for track in series.tracks_of(quantity) {
        for (value, span) in track.values.iter().zip(series.spans()) {
            if overlap(span, within) {
                sum += value;
            }
        }
    }
    sum
}

/// Returns whether more than half of `span` lies within another one.
fn overlap(span: Span, within: Span) -> bool {
    let shared = span.to_us.min(within.to_us) - span.from_us.max(within.from_us);
    2 * shared > span.to_us - span.from_us
}

/// Returns the share of the measured window that outages took.
pub(crate) fn share(result: &TrialResult) -> f64 {
    let window = result.series.iter().find(|session| session.load == 0).map(|session| session.series.window);
    let lost: u64 = result.outages.iter().map(|outage| outage.length.get()).sum();
    match window {
        Some(window) if !window.is_zero() => (lost as f64 / window.get() as f64).min(1.0),
        _ => 0.0,
    }
}

/// Returns the caveats of an attempt's outages.
pub(crate) fn caveats(outages: &[Outage]) -> impl Iterator<Item = Caveat> {
    outages.iter().map(|outage| {
        let start = MessageValue::number(outage.from_us as f64 / 1e6, 1);
        let length = MessageValue::number(outage.length.as_secs_f64(), 1);
        let text = match &outage.towards[..] {
            [] => message!(
                "caveat-outage",
                "the path carried nothing for {length} s, from {start} s of the window on: the figures include this time; look for \
                 what was cut or switched over then",
                length,
                start
            ),
            [host] => message!(
                "caveat-outage-towards",
                "nothing reached {host} for {length} s, from {start} s of the window on: the figures include this time; look for \
                 what was cut or switched over then",
                host,
                length,
                start
            ),
            _ => message!(
                "caveat-outage-both",
                "nothing passed in either direction for {length} s, from {start} s of the window on: the figures include this \
                 time; look for what was cut or switched over then",
                length,
                start
            ),
        };
        Caveat::new(CaveatKind::Outage, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{stream_of, trial};
    use linerate_model::{Track, Transport};

    const TENTH: i64 = 100_000;

    /// A quantity of a host, as a function of the number of the tenth of a second in the window.
    type Planted = (Quantity, &'static str, fn(i64) -> u64);

    /// An attempt with a window of 12 s in intervals of 0.1 s.
    fn run(transport: Transport, tracks: &[Planted]) -> TrialResult {
        let mut result = trial(1_000, 0);
        stream_of(&mut result.trial).net.transport = transport;
        let series = |host: &str| {
            let own = tracks.iter().filter(|(_, owner, _)| *owner == host);
            let tracks = own.map(|(quantity, _, value)| Track {
                quantity: *quantity,
                subject: String::new(),
                values: (0..120).map(value).collect(),
            });
            let at_us = (1..=120).map(|tenth| tenth * TENTH).collect();
            let window = Nanos::from_secs(12);
            let series = Series { window, at_us, tracks: tracks.collect(), ..Series::default() };
            SessionSeries { load: 0, host: host.into(), series }
        };
        result.series = vec![series("a"), series("b")];
        result
    }

    /// 10 Mbit/s but for 4 s from 3 s on.
    fn cut(tenth: i64) -> u64 {
        if (30..70).contains(&tenth) { 0 } else { 125_000 }
    }

    /// TCP times out 0.2, 0.6, 1.4 and 3 s into the cut.
    fn backs_off(tenth: i64) -> u64 {
        u64::from([32, 36, 44, 60].contains(&tenth))
    }

    fn found(transport: Transport, tracks: &[Planted]) -> Vec<(i64, u64, Vec<HostName>)> {
        let found = outages(&run(transport, tracks));
        let tenths = |outage: Outage| (outage.from_us / TENTH, outage.length.get() / 100_000_000, outage.towards);
        found.into_iter().map(tenths).collect()
    }

    #[test]
    fn cut_of_datagrams_is_an_outage_towards_the_receiver() {
        let sent: Planted = (Quantity::SentMessages, "a", |_| 86);
        let received: Planted = (Quantity::ReceivedBytes, "b", cut);
        assert_eq!(found(Transport::Udp, &[sent, received]), [(30, 40, vec!["b".into()])]);
        let pauses: Planted = (Quantity::SentMessages, "a", |tenth| u64::from(cut(tenth) > 0) * 86);
        assert_eq!(found(Transport::Udp, &[pauses, received]), [], "the sender paused");
        let takes: Planted = (Quantity::InterfaceReceivedPackets, "b", |_| 86);
        assert_eq!(found(Transport::Udp, &[sent, received, takes]), [], "the receiver was held up");
        let stumbles: Planted =
            (Quantity::ReceivedBytes, "b", |tenth| if (30..39).contains(&tenth) { 0 } else { 125_000 });
        assert_eq!(found(Transport::Udp, &[sent, stumbles]), [], "too short");
        let slow: Planted = (Quantity::ReceivedBytes, "b", |tenth| if tenth % 15 == 0 { 1_448 } else { 0 });
        assert_eq!(found(Transport::Udp, &[sent, slow]), [], "a datagram every 1.5 s");
    }

    #[test]
    fn fragments_of_incomplete_datagrams_are_no_outage() {
        let sent: Planted = (Quantity::SentMessages, "a", |_| 86);
        let received: Planted = (Quantity::ReceivedBytes, "b", cut);
        let fragments: Planted = (Quantity::InterfaceReceivedPackets, "b", |_| 9);
        let of = |size, tracks: &[Planted]| {
            let mut result = run(Transport::Udp, tracks);
            stream_of(&mut result.trial).message_bytes = linerate_units::ByteCount::new(size);
            outages(&result).len()
        };
        assert_eq!(of(2_000, &[sent, received, fragments]), 0);
        assert_eq!(of(1_000, &[sent, received, fragments]), 1, "packets of others");
        assert_eq!(of(2_000, &[sent, received]), 1, "a cut");
    }

    #[test]
    fn cut_of_a_connection_is_an_outage_where_it_times_out() {
        let received: Planted = (Quantity::ReceivedBytes, "b", cut);
        let timeouts: Planted = (Quantity::Timeouts, "a", backs_off);
        let sends: Planted = (Quantity::InterfaceSentPackets, "a", |tenth| cut(tenth) / 1_448 + backs_off(tenth));
        assert_eq!(found(Transport::Tcp, &[received]), [], "the sender had nothing to send");
        let arrives: Planted = (Quantity::InterfaceReceivedPackets, "b", |tenth| cut(tenth) / 1_448);
        let towards = |tracks: &[Planted]| found(Transport::Tcp, tracks).pop().expect("an outage").2;
        assert_eq!(towards(&[received, timeouts, sends, arrives]), ["b".into()]);
        let other: Planted = (Quantity::InterfaceReceivedPackets, "b", |_| 9);
        assert_eq!(towards(&[received, timeouts, sends, other]), [], "other traffic hides the direction");
    }

    #[test]
    fn time_outs_throughout_are_loss() {
        let received: Planted = (Quantity::ReceivedBytes, "b", |tenth| if tenth % 40 < 15 { 0 } else { 12_500 });
        let timeouts: Planted = (Quantity::Timeouts, "a", |tenth| u64::from(tenth % 10 == 0));
        let at_sender: Planted = (Quantity::TransmittedBytes, "a", |_| 12_500);
        let result = run(Transport::Tcp, &[received, timeouts, at_sender]);
        assert_eq!(outages(&result), [], "pauses of 1.5 s on a path that loses much");
    }

    #[test]
    fn both_directions_of_one_cut_are_one_outage() {
        let tracks: [Planted; 4] = [
            (Quantity::SentMessages, "a", |_| 86),
            (Quantity::SentMessages, "b", |_| 86),
            (Quantity::ReceivedBytes, "a", cut),
            (Quantity::ReceivedBytes, "b", cut),
        ];
        assert_eq!(found(Transport::Udp, &tracks), [(30, 40, vec!["a".into(), "b".into()])]);
    }

    #[test]
    fn acknowledgements_show_an_outage_where_no_receiver_is_watched() {
        let mut result =
            run(Transport::Tcp, &[(Quantity::TransmittedBytes, "a", cut), (Quantity::Timeouts, "a", backs_off)]);
        result.series.truncate(1);
        assert_eq!(outages(&result).len(), 1);
        assert!((share(&TrialResult { outages: outages(&result), ..result }) - 4.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn caveat_names_when_how_long_and_where() {
        let outage =
            Outage { host: "b".into(), from_us: 3_000_000, length: Nanos::from_secs(4), towards: vec!["b".into()] };
        let caveat = caveats(&[outage]).next().expect("one");
        assert!(caveat.text.starts_with("nothing reached b for 4.0 s, from 3.0 s of the window on"), "{}", caveat.text);
    }
}
