//! How many neighbours a router holds, and what happens past that. No standard says how to measure it; this follows the
//! search for an address table's capacity (RFC 2889 section 5.7) with hosts behind a router in the place of addresses
//! behind a switch, and the overload and its end as RFC 2544 section 26.5 has them.
//!
//! 1. A probe with N hosts is one trial. First every host is addressed a few times, slowly, so that the router asks for it
//!    (ARP, RFC 826; neighbour discovery, RFC 4861 section 7.2) and is answered. What is lost meanwhile is not counted: a
//!    router may drop what waits for an answer (RFC 1122 section 2.3.2.2). Then all N are addressed in turn, some rounds, at
//!    a rate that the router surely carries. N are held if every frame of these arrives, and none floods.
//! 2. N grows by steps that double while all are held; then what is lost tells how many were held, and that number and the one above it are
//!    tried before any other halving. A probe that lost frames is run once more (see [`Longest`]).
//! 3. Past the number held, by a tenth and by as many again: the held hosts alone, then all, then the held ones alone again,
//!    each in turn at the same rate. It counts what is lost and floods, times what arrives, and tells how long hosts that
//!    were held stay lost once the others are silent.
//!
//! All trials address one and the same row of hosts from its beginning. A router that refuses what does not fit keeps the
//! first: left over from the probe before, they are the row's beginning, and so part of the next probe as well. A router that
//! forgets the oldest instead lets go of leftovers first, as the row is taught anew. With fresh addresses in each probe the
//! first kind would have to be waited for, since leftovers would fill the table: Linux refuses new neighbours once it has
//! `gc_thresh3` of them, unless some were silent long enough (15 to 45 s until they are no longer reachable) and have not
//! changed for 5 s (neigh_alloc and neigh_forced_gc in net/core/neighbour.c). For the same reason a probe should not take
//! longer than the router remembers.
//!
//! Where this ends: a router that forgets a host, but keeps what is sent to it until it has asked again, loses nothing and
//! so seems to hold it; only latency tells.

use super::recovery::last_loss;
use super::{bound, trial};
use crate::latency::latency_if_any;
use crate::offered::{Offer, had_room, of_number};
use crate::terms;
use linerate_model::{
    Caveat, CaveatKind, Confidence, DevicePlan, Firmness, FrameForm, FrameHeaders, FrameReceiver, FrameStream,
    FrameStreamCounts, FramesRun, FramesTask, Latency, Limit, Mac, MacRule, Message, NeighbourTable, PastNeighbours,
    SimulatedHosts, Trial, Vary, VaryField, VaryOrder, Verdict, message,
};
use linerate_search::Longest;
use linerate_units::{FrameRate, FrameSize, Nanos, Ratio};
use std::net::IpAddr;

/// The first host's Ethernet address; each has its own. Locally administered (IEEE 802c).
const FIRST_MAC: Mac = Mac([0x02, 0x08, 0x26, 0, 0, 0]);
/// The first number of hosts that is tried.
const BEGIN: u32 = 64;
/// How often every host is addressed, for the router to find it and then to show that it did.
const ROUNDS: u64 = 3;
/// Teaching takes no less, so that a question or answer that was lost is repeated.
const TEACHING_AT_LEAST: Nanos = Nanos::from_secs(1);
/// From one stretch of a trial to the next: for answers and waiting frames that are still on their way.
const PAUSE: Nanos = Nanos::from_millis(200);
/// How far past the number held, percent of it.
const PAST_PERCENT: [u32; 2] = [110, 200];
const NANOS: u128 = 1_000_000_000;

/// The test.
#[derive(Debug, Clone)]
pub(crate) struct HostTest {
    size: FrameSize,
    most: u32,
    learn_rate: FrameRate,
    rate: FrameRate,
    search: Longest,
    /// The most hosts that were tried.
    tried: u32,
    /// Probes that lost hosts by the tester's own fault: the hosts, and how many the tester never asked for.
    cut_short: Vec<(u32, u64)>,
    /// Latency of the last probe whose hosts were all held.
    latency: Option<Latency>,
    past: Vec<PastNeighbours>,
    trials: u32,
    caveats: Vec<Caveat>,
}

/// A part of a trial: so many hosts from the first on addressed in turn, in whole rounds.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    hosts: u32,
    frames: u64,
    rate: FrameRate,
}

impl Stretch {
    /// Every host a few times, no faster than `rate`.
    fn teaching(hosts: u32, rate: FrameRate) -> Self {
        let frames = u64::from(hosts) * ROUNDS;
        let slow = FrameRate::per_second((u128::from(frames) * NANOS / u128::from(TEACHING_AT_LEAST.get())) as u64);
        Self { hosts, frames, rate: rate.min(slow) }
    }

    /// Every host a few times or more, for at least as long as `time`.
    fn asking(hosts: u32, rate: FrameRate, time: Nanos) -> Self {
        let in_time = (u128::from(rate.get()) * u128::from(time.get()) / NANOS) as u64;
        let rounds = in_time.div_ceil(u64::from(hosts)).max(ROUNDS);
        Self { hosts, frames: u64::from(hosts) * rounds, rate }
    }

    fn time(&self) -> Nanos {
        Nanos::new((u128::from(self.frames) * NANOS).div_ceil(u128::from(self.rate.get().max(1))) as u64)
    }
}

impl HostTest {
    pub(crate) fn new(size: FrameSize, most: u32, learn_rate: FrameRate, rate: FrameRate) -> Self {
        let most = most.max(1);
        Self {
            size,
            most,
            learn_rate,
            rate,
            search: Longest::new(BEGIN.into(), BEGIN.into(), most.into(), Ratio::new(0, 1)),
            tried: 0,
            cut_short: Vec::new(),
            latency: None,
            past: Vec::new(),
            trials: 0,
            caveats: Vec::new(),
        }
    }

    /// The hosts of the next probe.
    fn count(&self) -> Option<u32> {
        self.search.next().map(count)
    }

    /// The most that were all held, and the fewest that were not.
    fn bounds(&self) -> (u32, Option<u32>) {
        let (held, lost_at) = self.search.bounds();
        (held.map_or(0, count), lost_at.map(count))
    }

    /// The hosts of the next trial past those held.
    fn count_past(&self) -> Option<u32> {
        let (held, Some(lost_at)) = self.bounds() else { return None };
        let share = |percent: u32| count(u64::from(held) * u64::from(percent) / 100).clamp(lost_at, self.most);
        let mut counts = PAST_PERCENT.map(share).to_vec();
        counts.dedup();
        counts.get(self.past.len()).copied().filter(|_| held > 0)
    }

    pub(crate) fn next(&self, plan: &DevicePlan) -> Option<Trial> {
        if let Some(hosts) = self.count() {
            let stretches =
                [Stretch::teaching(hosts, self.learn_rate), Stretch::asking(hosts, self.rate, plan.search_time)];
            return self.trial(plan, format!("reach {hosts} hosts"), hosts, &stretches);
        }
        let (held, hosts) = (self.bounds().0, self.count_past()?);
        let asking = |hosts| Stretch::asking(hosts, self.rate, plan.final_time);
        let stretches = [Stretch::teaching(held, self.learn_rate), asking(held), asking(hosts), asking(held)];
        self.trial(plan, format!("reach {hosts} hosts past {held}"), hosts, &stretches)
    }

    /// Whether a tester that is held up spoils the next trial: frames that leave late reach as many hosts.
    pub(crate) fn hangs_on_pace(&self) -> bool {
        self.count().is_none()
    }

    /// One stretch after the other, `hosts` being there to be found.
    fn trial(&self, plan: &DevicePlan, name: String, hosts: u32, stretches: &[Stretch]) -> Option<Trial> {
        let pair = plan.directions.first()?;
        let first = after(pair.headers.destination);
        let mut end = Nanos::default();
        let mut streams = Vec::with_capacity(stretches.len());
        for stretch in stretches {
            let after = if streams.is_empty() { end } else { end + PAUSE };
            end = after + stretch.time();
            let vary = Vary { field: VaryField::DestinationIp, count: stretch.hosts, order: VaryOrder::Counting };
            streams.push(FrameStream {
                from: pair.from,
                to: pair.to,
                copies_to: Vec::new(),
                size: self.size,
                rate: Some(stretch.rate),
                count: Some(stretch.frames),
                after,
                time: Some(stretch.time()),
                headers: FrameHeaders { destination: first, ..pair.headers.clone() },
                form: FrameForm { vary: vec![vary], ..FrameForm::default() },
            });
        }
        let task = FramesTask {
            home: plan.host.clone(),
            ports: plan.ports.clone(),
            streams,
            time: end,
            settle: plan.settle,
            engine: plan.engine,
            receiver: FrameReceiver::Port,
            line: None,
            hosts: vec![SimulatedHosts {
                port: pair.to,
                first,
                count: hosts,
                mac: MacRule::Counting { first: FIRST_MAC },
            }],
        };
        Some(trial(name, task))
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>, plan: &DevicePlan) -> bool {
        self.trials += 1;
        let of_pace =
            |kind| !self.hangs_on_pace() && [CaveatKind::BelowOfferedRate, CaveatKind::CpuStolen].contains(&kind);
        let doubts: Vec<Caveat> = run.result.caveats.iter().filter(|caveat| !of_pace(caveat.kind)).cloned().collect();
        doubts.into_iter().for_each(|caveat| self.doubt(caveat));
        match (self.count(), self.count_past(), &run.counts.streams[..]) {
            (Some(hosts), _, [taught, asked]) => {
                let has_room = had_room(run.result);
                let is_taught = taught.sent >= u64::from(hosts) && taught.held_up < PAUSE;
                self.record_probe(hosts, asked, has_room && is_taught, plan.loss);
            }
            (None, Some(hosts), [_, held, all, again]) => {
                self.record_past(hosts, [held, all, again], Offer::of(run).firmness(), plan);
            }
            _ => {}
        }
        self.count().is_none() && self.count_past().is_none()
    }

    /// Takes a probe. In a sound one the router was asked for every host in good time, and the tester's sockets had room for all frames.
    fn record_probe(&mut self, hosts: u32, asked: &FrameStreamCounts, is_sound: bool, bearable: Ratio) {
        self.tried = self.tried.max(hosts);
        let lost = asked.sent.saturating_sub(asked.received);
        let missed = lost.max(asked.flooded);
        // A tester that is held up may leave out rounds; only who was never asked is not known to be held.
        let unasked = u64::from(hosts).saturating_sub(asked.sent);
        let all = unasked == 0 && missed as f64 <= bearable.as_f64() * asked.sent as f64;
        if !all && (unasked > 0 || !is_sound) {
            self.cut_short.push((hosts, unasked));
        }
        self.search.record(all);
        if all {
            self.latency = latency_if_any(&asked.latency);
        } else {
            let rounds = (asked.sent / u64::from(hosts)).max(1);
            self.search.suspect(u64::from(hosts).saturating_sub(missed.div_ceil(rounds) + unasked));
        }
    }

    fn record_past(
        &mut self,
        hosts: u32,
        [held, all, again]: [&FrameStreamCounts; 3],
        firmness: Firmness,
        plan: &DevicePlan,
    ) {
        self.tried = self.tried.max(hosts);
        let lost = |stream: &FrameStreamCounts| stream.sent.saturating_sub(stream.received);
        self.past.push(PastNeighbours {
            hosts,
            sent: all.sent,
            received: all.received,
            firmness,
            loss_ratio: lost(all) as f64 / all.sent.max(1) as f64,
            flooded: (plan.ports.len() > 2).then_some(all.flooded),
            latency_ns: latency_if_any(&all.latency),
            held_latency_ns: latency_if_any(&held.latency),
            recovery_lost: lost(again),
            recovery_ns: last_loss(again),
        });
    }

    fn doubt(&mut self, caveat: Caveat) {
        if !self.caveats.contains(&caveat) {
            self.caveats.push(caveat);
        }
    }

    pub(crate) fn known(&self) -> Message {
        let (held, lost_at) = self.bounds();
        match (self.count(), self.count_past()) {
            (None, Some(hosts)) => message!("known-past", "holds {held}, testing {hosts}", held, hosts),
            (hosts, _) => message!(
                "known-holds",
                "holds between {held} and {upper}, trying {hosts}",
                held,
                upper = bound(lost_at),
                hosts = hosts.unwrap_or(held)
            ),
        }
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> NeighbourTable {
        let (held, lost_at) = self.bounds();
        let mut caveats = self.caveats.clone();
        let mut doubt = |kind, text: Message| caveats.push(Caveat::new(kind, text));
        if lost_at.is_none() {
            doubt(
                CaveatKind::NotMeasured,
                message!(
                    "caveat-all-hosts-held",
                    "all of {held} hosts were held: the router may hold more, and what happens then was not seen; \
                     ask for more (--most), in a wider network if need be",
                    held = held
                ),
            );
        } else if held == 0 {
            doubt(
                CaveatKind::NotMeasured,
                message!(
                    "caveat-no-host-reached",
                    "not one host was reached without loss: see whether the router has the network of the second \
                     port, and give a lower --rate"
                ),
            );
        } else if plan.ports.len() < 3 {
            doubt(
                CaveatKind::NotMeasured,
                message!(
                    "caveat-flooding-not-seen",
                    "flooding past the number held was not measured: that takes a third port on the router"
                ),
            );
        }
        if self.past.iter().any(|past| past.recovery_ns.is_none()) {
            doubt(
                CaveatKind::NotMeasured,
                message!(
                    "caveat-hosts-lost-to-end",
                    "after an overload held hosts were lost until the end of the trial: give a longer --time"
                ),
            );
        }
        let open = self.cut_short.iter().rev().find(|(hosts, _)| lost_at == Some(*hosts));
        let firmness = open.map_or(Firmness::Firm, |&(hosts, unasked)| {
            if unasked == 0 {
                let text = message!(
                    "caveat-hosts-late-or-no-room",
                    "the tester was held up, or had no room for all frames, with {hosts} hosts, so that what it found \
                     is a lower bound: give a lower --rate, or measure when this host is quiet",
                    hosts = hosts
                );
                doubt(CaveatKind::TesterLimit, text);
                return Firmness::NotFirm { offered: None };
            }
            doubt(
                CaveatKind::BelowOfferedRate,
                message!(
                    "caveat-hosts-not-asked",
                    "the tester was held up and never asked for {unasked} of {hosts} hosts, so that what it found \
                     is a lower bound: give a lower --rate, or measure when this host is quiet",
                    unasked = unasked,
                    hosts = hosts
                ),
            );
            Firmness::NotFirm { offered: Some(1.0 - unasked as f64 / f64::from(hosts)) }
        });
        let verdict = if firmness.is_firm() && held == 0 && lost_at.is_some() {
            let text = message!("hosts-none-reached", "not one host was reached without loss");
            Verdict::new(Limit::CannotTell, Confidence::Low, vec![text])
        } else {
            of_number(terms::HOSTS, held.into(), lost_at.map(u64::from), firmness)
        };
        NeighbourTable {
            frame_bytes: self.size.get(),
            held,
            firmness,
            // What the tester did not ask for was not lost.
            lost_at: lost_at.filter(|_| firmness.is_firm()),
            neighbours_tried: self.tried,
            bound: if lost_at.is_none() { Some(self.tried) } else { None },
            learn_frames_per_s: self.learn_rate.get() as f64,
            frames_per_s: self.rate.get() as f64,
            latency_ns: self.latency.clone(),
            past: self.past.clone(),
            limit: verdict.limit,
            verdict: Some(verdict),
            trials: self.trials,
            caveats,
        }
    }
}

/// A number of hosts of the search, which is bounded by one.
fn count(hosts: u64) -> u32 {
    u32::try_from(hosts).unwrap_or(u32::MAX)
}

/// The address behind this one.
fn after(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4(v4.to_bits().wrapping_add(1).into()),
        IpAddr::V6(v6) => IpAddr::V6(v6.to_bits().wrapping_add(1).into()),
    }
}

#[cfg(test)]
mod tests;
