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

use super::latency_of;
use super::offered::of_number;
use super::recovery::last_loss;
use crate::search::Longest;
use linerate_model::{
    Caveat, CaveatKind, Confidence, DevicePlan, FrameForm, FrameHeaders, FrameStream, FrameStreamResult, FrameTrial,
    FrameTrialResult, Latency, Limit, Mac, MacRule, NeighbourTable, PastNeighbours, SimulatedHosts, Vary, VaryField,
    VaryOrder, Verdict,
};
use linerate_units::{FrameRate, FrameSize, Nanos, Ratio, grouped};
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
    /// The hosts of the last probe in which the tester did not ask for all of them.
    cut_short: Option<u32>,
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
            cut_short: None,
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

    pub(crate) fn next(&self, plan: &DevicePlan) -> Option<FrameTrial> {
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
    fn trial(&self, plan: &DevicePlan, name: String, hosts: u32, stretches: &[Stretch]) -> Option<FrameTrial> {
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
                size: self.size,
                rate: Some(stretch.rate),
                count: Some(stretch.frames),
                after,
                time: Some(stretch.time()),
                headers: FrameHeaders { destination: first, ..pair.headers.clone() },
                form: FrameForm { vary: vec![vary], ..FrameForm::default() },
            });
        }
        Some(FrameTrial {
            name,
            ports: plan.ports.clone(),
            streams,
            time: end,
            settle: plan.settle,
            engine: plan.engine,
            hosts: vec![SimulatedHosts {
                port: pair.to,
                first,
                count: hosts,
                mac: MacRule::Counting { first: FIRST_MAC },
            }],
        })
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, result: &FrameTrialResult, plan: &DevicePlan) -> bool {
        self.trials += 1;
        let of_pace =
            |kind| !self.hangs_on_pace() && [CaveatKind::BelowOfferedRate, CaveatKind::CpuStolen].contains(&kind);
        let doubts: Vec<Caveat> = result.caveats.iter().filter(|caveat| !of_pace(caveat.kind)).cloned().collect();
        doubts.into_iter().for_each(|caveat| self.doubt(caveat));
        match (self.count(), self.count_past(), &result.streams[..]) {
            (Some(hosts), _, [_, asked]) => self.record_probe(hosts, asked, plan.loss),
            (None, Some(hosts), [_, held, all, again]) => self.record_past(hosts, held, all, again, plan),
            _ => {}
        }
        self.count().is_none() && self.count_past().is_none()
    }

    fn record_probe(&mut self, hosts: u32, asked: &FrameStreamResult, bearable: Ratio) {
        self.tried = self.tried.max(hosts);
        let lost = asked.sent.saturating_sub(asked.received);
        let missed = lost.max(asked.flooded);
        // A tester that is held up may leave out rounds; only who was never asked is not known to be held.
        let unasked = u64::from(hosts).saturating_sub(asked.sent);
        if unasked > 0 {
            self.cut_short = Some(hosts);
            self.doubt(Caveat::new(
                CaveatKind::BelowOfferedRate,
                format!(
                    "the tester was held up and never asked for {unasked} of {hosts} hosts, which count as not held: give a \
                     lower --rate, or measure when this host is quiet"
                ),
            ));
        }
        let all = unasked == 0 && missed as f64 <= bearable.as_f64() * asked.sent as f64;
        self.search.record(all);
        if all {
            self.latency = latency_of(&asked.latency);
        } else {
            let rounds = (asked.sent / u64::from(hosts)).max(1);
            self.search.suspect(u64::from(hosts).saturating_sub(missed.div_ceil(rounds) + unasked));
        }
    }

    fn record_past(
        &mut self,
        hosts: u32,
        held: &FrameStreamResult,
        all: &FrameStreamResult,
        again: &FrameStreamResult,
        plan: &DevicePlan,
    ) {
        self.tried = self.tried.max(hosts);
        let lost = |stream: &FrameStreamResult| stream.sent.saturating_sub(stream.received);
        self.past.push(PastNeighbours {
            hosts,
            sent: all.sent,
            received: all.received,
            loss_ratio: lost(all) as f64 / all.sent.max(1) as f64,
            flooded: (plan.ports.len() > 2).then_some(all.flooded),
            latency_ns: latency_of(&all.latency),
            held_latency_ns: latency_of(&held.latency),
            recovery_lost: lost(again),
            recovery_ns: last_loss(again),
        });
    }

    fn doubt(&mut self, caveat: Caveat) {
        if !self.caveats.contains(&caveat) {
            self.caveats.push(caveat);
        }
    }

    pub(crate) fn known(&self) -> String {
        let (held, lost_at) = self.bounds();
        match (self.count(), self.count_past()) {
            (None, Some(hosts)) => format!("holds {held}, what becomes of {hosts}"),
            (hosts, _) => {
                let upper = lost_at.map_or_else(|| "?".to_owned(), |count| count.to_string());
                format!("holds between {held} and {upper}, trying {}", hosts.unwrap_or(held))
            }
        }
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> NeighbourTable {
        let (held, lost_at) = self.bounds();
        let mut caveats = self.caveats.clone();
        let mut doubt = |kind, text: String| caveats.push(Caveat::new(kind, text));
        if lost_at.is_none() {
            doubt(
                CaveatKind::NotMeasured,
                format!(
                    "all of {held} hosts were held: the router may hold more, and what happens then was not seen; ask for \
                         more (--most), in a wider network if need be"
                ),
            );
        } else if held == 0 {
            doubt(
                CaveatKind::NotMeasured,
                "not one host was reached without loss: see whether the router has the network of the second port, and give a \
                 lower --rate".to_owned(),
            );
        } else if plan.ports.len() < 3 {
            doubt(
                CaveatKind::NotMeasured,
                "whether frames flood past the number held was not seen: that takes a third port on the router"
                    .to_owned(),
            );
        }
        if self.past.iter().any(|past| past.recovery_ns.is_none()) {
            doubt(
                CaveatKind::NotMeasured,
                "after an overload held hosts were lost until the end of the trial: give a longer --time".to_owned(),
            );
        }
        let limit = match lost_at {
            Some(_) if lost_at == self.cut_short => Limit::Tester,
            Some(_) if held == 0 => Limit::CannotTell,
            _ => of_number("hosts", held.into(), lost_at.map(u64::from)).limit,
        };
        let verdict = match limit {
            Limit::Tester => {
                let text =
                    format!("the tester did not ask for all of {} hosts", grouped(lost_at.unwrap_or(held).into()));
                Verdict::new(limit, Confidence::Medium, vec![text])
            }
            Limit::CannotTell => {
                Verdict::new(limit, Confidence::Low, vec![String::from("not one host was reached without loss")])
            }
            _ => of_number("hosts", held.into(), lost_at.map(u64::from)),
        };
        NeighbourTable {
            frame_bytes: self.size.get(),
            held,
            lost_at,
            neighbours_tried: self.tried,
            bound: if lost_at.is_none() { Some(self.tried) } else { None },
            learn_frames_per_s: self.learn_rate.get() as f64,
            frames_per_s: self.rate.get() as f64,
            latency_ns: self.latency.clone(),
            past: self.past.clone(),
            limit,
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
mod tests {
    use super::super::tests::plan;
    use super::*;
    use linerate_model::{DeviceTest, FrameEngine, Histogram, Observation};
    use std::collections::BTreeMap;

    /// What a router does with a host that finds no place in its table.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Full {
        /// It is refused.
        Refuses,
        /// It takes the place of the host that was not addressed for longest.
        Evicts,
    }

    /// A router with a table of neighbours. A frame to a host that is not in it is lost, and the host is asked for.
    struct Router {
        /// Whom it knows, and which frame each was last addressed by.
        table: BTreeMap<u32, u64>,
        frames: u64,
        size: usize,
        full: Full,
        /// So many frames in a row are lost before a host that was asked for is known.
        slow: u32,
        asked: BTreeMap<u32, u32>,
        /// A frame by chance is lost in every so many trials.
        mishap_every: Option<u32>,
        /// The tester sends only this share of each stream.
        sends_percent: u64,
        floods: bool,
        trials: u32,
    }

    impl Router {
        fn new(size: usize, full: Full) -> Self {
            Self {
                table: BTreeMap::new(),
                frames: 0,
                size,
                full,
                slow: 1,
                asked: BTreeMap::new(),
                mishap_every: None,
                sends_percent: 100,
                floods: false,
                trials: 0,
            }
        }

        /// Whether a frame to `host` arrives.
        fn forwards(&mut self, host: u32) -> bool {
            self.frames += 1;
            if let Some(last) = self.table.get_mut(&host) {
                *last = self.frames;
                return true;
            }
            if self.table.len() >= self.size && self.full == Full::Refuses {
                return false;
            }
            let asked = self.asked.entry(host).or_default();
            *asked += 1;
            if *asked >= self.slow {
                self.asked.remove(&host);
                if self.table.len() >= self.size {
                    let oldest = self.table.iter().min_by_key(|(_, last)| **last).map(|(host, _)| *host);
                    self.table.remove(&oldest.expect("a full table has an oldest"));
                }
                self.table.insert(host, self.frames);
            }
            false
        }

        fn run(&mut self, trial: FrameTrial) -> FrameTrialResult {
            self.trials += 1;
            let hosts = trial.hosts[0].clone();
            let streams = trial.streams.iter().zip(0..).map(|(stream, index)| {
                let vary = stream.form.vary[0];
                assert_eq!((stream.headers.destination, vary.field), (hosts.first, VaryField::DestinationIp));
                assert!(vary.count <= hosts.count && stream.after + stream.length(trial.time) <= trial.time);
                let (intended, time) = (stream.count.unwrap_or(0), stream.length(trial.time).get());
                let sent = intended * self.sends_percent / 100;
                let mut counts = FrameStreamResult { intended, sent, ..FrameStreamResult::default() };
                counts.send_time = Nanos::new(time);
                let mut missing = None;
                for number in 0..sent {
                    let chance =
                        index == 1 && number == 0 && self.mishap_every.is_some_and(|n| self.trials.is_multiple_of(n));
                    if self.forwards((number % u64::from(vary.count)) as u32) && !chance {
                        counts.received += 1;
                        if missing.take().is_some() {
                            counts.last_gap = Some(Nanos::new(number * time / sent));
                        }
                    } else {
                        missing = Some(number);
                        counts.flooded += u64::from(self.floods);
                    }
                }
                if missing.is_some() {
                    counts.last_gap = Some(counts.send_time);
                }
                let mut latency = Histogram::default();
                latency.record_many(1_000, counts.received);
                counts.latency = latency;
                counts
            });
            let streams = streams.collect();
            FrameTrialResult {
                trial,
                engine: FrameEngine::Xdp,
                started_unix_ns: 0,
                streams,
                observation: Observation::default(),
                other_hosts: Default::default(),
                device_load: None,
                caveats: Vec::new(),
            }
        }
    }

    fn found(router: Router, most: u32) -> NeighbourTable {
        found_by(router, most, 2)
    }

    fn found_by(mut router: Router, most: u32, ports: usize) -> NeighbourTable {
        let [learn_rate, rate] = [1_000, 10_000].map(FrameRate::per_second);
        let mut plan = plan(DeviceTest::Hosts { most, learn_rate, rate }, false);
        plan.ports.extend((2..ports).map(|port| format!("p{port}").into()));
        let mut test = HostTest::new(plan.sizes[0], most, learn_rate, rate);
        let mut trials = 0;
        while let Some(trial) = test.next(&plan) {
            assert_eq!(test.next(&plan).as_ref(), Some(&trial), "asking again changes nothing");
            let done = test.record(&router.run(trial), &plan);
            assert_eq!(done, test.next(&plan).is_none());
            trials += 1;
            assert!(trials < 60, "a test must end: {}", test.known());
        }
        assert_eq!(test.outcome(&plan).trials, trials);
        test.outcome(&plan)
    }

    fn caveat<'a>(found: &'a NeighbourTable, words: &str) -> Option<&'a str> {
        found.caveats.iter().map(|caveat| caveat.text.as_str()).find(|text| text.contains(words))
    }

    #[test]
    fn a_table_that_refuses_is_found_exactly_in_few_trials() {
        for size in [1, 2, 63, 64, 65, 100, 1_000, 1_024, 4_095] {
            let table = found(Router::new(size, Full::Refuses), 4_096);
            assert_eq!((table.held, table.lost_at), (size as u32, Some(size as u32 + 1)), "{table:?}");
            assert_eq!((table.bound, table.limit), (None, Limit::Device));
            assert!(table.trials <= 14, "{} for {size}", table.trials);
        }
    }

    #[test]
    fn past_a_table_that_refuses_the_held_hosts_lose_nothing() {
        let table = found(Router::new(1_000, Full::Refuses), 4_096);
        let shares: Vec<_> = table.past.iter().map(|past| (past.hosts, (past.loss_ratio * 1e3).round())).collect();
        assert_eq!(shares, [(1_100, 91.0), (2_000, 500.0)]);
        assert!(table.past.iter().all(|past| past.recovery_ns == Some(0) && past.recovery_lost == 0), "{table:?}");
        assert!(table.past.iter().all(|past| past.flooded.is_none()) && caveat(&table, "third port").is_some());
        assert_eq!(table.latency_ns.map(|took| took.p50), Some(1_000));
    }

    /// Addressed in turn, one host too many makes such a table forget each just before it comes again.
    #[test]
    fn a_table_that_evicts_the_oldest_is_found_exactly_and_recovers() {
        for size in [10, 100, 300] {
            let table = found(Router::new(size, Full::Evicts), 1_000);
            assert_eq!((table.held, table.lost_at), (size as u32, Some(size as u32 + 1)), "{table:?}");
            for past in &table.past {
                // In the first round all that were held are still there.
                assert_eq!(past.received, size as u64, "{past:?}");
                // One round until all are known again, each but the first asked for in its turn.
                assert_eq!(past.recovery_lost, size as u64, "{past:?}");
                let round = size as f64 / 10_000.0 * 1e9;
                assert!((past.recovery_ns.expect("it recovers") as f64 / round - 1.0).abs() < 0.01, "{past:?}");
            }
        }
    }

    #[test]
    fn a_router_that_holds_all_is_bounded_by_what_was_tried() {
        for most in [1, 50, 64, 1_000] {
            let table = found(Router::new(100_000, Full::Refuses), most);
            assert_eq!((table.held, table.lost_at, table.bound), (most, None, Some(most)));
            assert_eq!((table.limit, table.past.len(), table.neighbours_tried), (Limit::OfferedLoad, 0, most));
            assert!(caveat(&table, "--most").is_some(), "{:?}", table.caveats);
        }
    }

    #[test]
    fn what_is_past_stays_within_the_most() {
        let table = found(Router::new(999, Full::Refuses), 1_000);
        assert_eq!(table.past.iter().map(|past| past.hosts).collect::<Vec<_>>(), [1_000]);
    }

    #[test]
    fn a_router_that_needs_three_questions_is_given_them() {
        let table = found(Router { slow: 3, ..Router::new(500, Full::Refuses) }, 4_096);
        assert_eq!(table.held, 500);
    }

    #[test]
    fn one_loss_by_chance_is_not_the_routers_limit() {
        for every in [2, 3, 5] {
            let table = found(Router { mishap_every: Some(every), ..Router::new(700, Full::Refuses) }, 4_096);
            assert_eq!((table.held, table.lost_at), (700, Some(701)), "every {every}");
        }
    }

    #[test]
    fn a_tester_that_is_held_up_is_not_the_routers_limit() {
        let table = found(Router { sends_percent: 70, ..Router::new(700, Full::Refuses) }, 4_096);
        assert_eq!(table.held, 700);
        // Less than a round is no proof.
        let table = found(Router { sends_percent: 1, ..Router::new(700, Full::Refuses) }, 4_096);
        assert!(table.held < 700 && caveat(&table, "never asked for").is_some(), "{table:?}");
        assert_eq!(table.limit, Limit::Tester);
    }

    #[test]
    fn a_dead_end_is_said_to_be_one() {
        let table = found(Router::new(0, Full::Refuses), 4_096);
        assert_eq!((table.held, table.lost_at, table.limit, table.past.len()), (0, Some(1), Limit::CannotTell, 0));
        assert!(caveat(&table, "not one host").is_some(), "{:?}", table.caveats);
    }

    #[test]
    fn what_floods_is_counted_where_a_third_port_listens() {
        let table = found_by(Router { floods: true, ..Router::new(100, Full::Refuses) }, 4_096, 3);
        assert_eq!(table.past[1].flooded, Some(table.past[1].sent - table.past[1].received));
        assert_eq!(caveat(&table, "third port"), None);
    }

    #[test]
    fn stretches_are_whole_rounds_and_teaching_is_slow() {
        let [learn_rate, rate] = [1_000, 10_000].map(FrameRate::per_second);
        let few = Stretch::teaching(64, learn_rate);
        assert_eq!((few.frames, few.rate.get(), few.time()), (192, 192, Nanos::from_secs(1)));
        let many = Stretch::teaching(10_000, learn_rate);
        assert_eq!((many.rate.get(), many.time()), (1_000, Nanos::from_secs(30)));
        let asking = Stretch::asking(64, rate, Nanos::from_millis(500));
        assert_eq!((asking.frames % 64, asking.frames, asking.rate), (0, 5_056, rate));
        assert_eq!(Stretch::asking(10_000, rate, Nanos::from_millis(500)).frames, 30_000);
    }

    #[test]
    fn the_hosts_begin_behind_the_second_port() {
        let next = |text: &str| after(text.parse().expect("an address")).to_string();
        assert_eq!([next("198.19.16.255"), next("2001:2::ffff")], ["198.19.17.0", "2001:2::1:0"]);
    }
}
