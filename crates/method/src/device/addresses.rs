//! How many addresses a switch keeps (RFC 2889 section 5.7), and how fast it learns them (section 5.8).
//!
//! 1. The learning port sends one frame from each of N addresses, slowly enough that all are surely learned.
//! 2. The test port sends one frame to each of them. What is known goes to the learning port alone; what is not floods, and
//!    the monitoring port counts it. N addresses are kept if none floods and none is lost.
//! 3. N begins at the most that is asked for. What flooded tells how many were kept: most tables keep those that came first,
//!    so the next trials run at that number and one above it. For tables that keep others every such guess must be paid for by
//!    a halving.
//! 4. The learning rate is searched in the same way with a fixed N and addresses that are new in each trial. The device must
//!    have forgotten the others by then, so this waits for its ageing time, and is left out where that is not given.
//! 5. A trial in which the tester did not show and ask for all N is run again. If that does not help, the search goes on
//!    below N; where it ends there, what it found is a lower bound.
//!
//! The addresses are the same in every trial of the search for N: a table that never forgets still knows the first ones.

use super::{bound, sum, trial};
use crate::offered::{had_room, is_whole, of_number};
use crate::terms;
use linerate_model::{
    AddressIteration, AddressTable, Caveat, CaveatKind, DevicePlan, Firmness, FrameForm, FrameHeaders, FrameReceiver,
    FrameStream, FramesRun, FramesTask, LearningRate, Mac, Message, Trial, TrialResult, Vary, VaryField, VaryOrder,
    message,
};
use linerate_search::{Bisect, BisectGoal, Counted, Search as _};
use linerate_units::{FrameRate, FrameSize, Nanos, Ratio};

/// The first of the addresses; the last four bytes count on from here. Locally administered (IEEE 802c).
const FIRST: [u8; 6] = [0x02, 0x28, 0x89, 0, 0, 0];
/// How many there are before the last three bytes begin anew.
const RANGE: u32 = 1 << 24;
/// How many guesses may run ahead of the halvings.
const GUESSES_AHEAD: u32 = 3;
/// The ports, by their place in the plan.
const TEST: u16 = 0;
const LEARNING: u16 = 1;
const MONITORING: u16 = 2;
/// How often a probe that the tester did not send in full is run again.
const HELD_UP_RETRIES: u32 = 3;
/// The rate is found to this share.
const RATE_WIDTH: Ratio = Ratio::new(1, 100);

/// The test.
#[derive(Debug, Clone)]
pub(crate) struct AddressTest {
    size: FrameSize,
    most: u32,
    learn_rate: FrameRate,
    ageing: Nanos,
    highest_rate: FrameRate,
    own: u32,
    /// What the trials have shown: so many are kept, and of so many some flooded.
    kept: Option<u32>,
    flooded: Option<u32>,
    /// The lowest number above those kept that the tester did not show and ask for in full, and the share that it did.
    cut_short: Option<(u32, f64)>,
    /// How many the last trial that flooded says are kept.
    estimate: Option<u32>,
    guesses: u32,
    halvings: u32,
    /// How often the probe under way was not sent in full.
    held_up: u32,
    /// The learning trial of the probe that is under way, once it is done.
    learned: Option<TrialResult>,
    /// The search for the learning rate, once the capacity is known, and its next new address.
    rates: Option<(Bisect, u32)>,
    trials: u32,
    iterations: Vec<AddressIteration>,
    caveats: Vec<Caveat>,
}

/// Addresses to be learned and tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Set {
    count: u32,
    first: u32,
    rate: FrameRate,
}

impl AddressTest {
    pub(crate) fn new(
        plan: &DevicePlan,
        size: FrameSize,
        (most, learn_rate, ageing): (u32, FrameRate, Nanos),
        highest_rate: FrameRate,
    ) -> Self {
        Self {
            size,
            most: most.clamp(1, RANGE),
            learn_rate,
            ageing,
            highest_rate,
            own: plan.ports.len() as u32,
            kept: None,
            flooded: None,
            cut_short: None,
            estimate: None,
            guesses: 0,
            halvings: 0,
            held_up: 0,
            learned: None,
            rates: None,
            trials: 0,
            iterations: Vec::new(),
            caveats: Vec::new(),
        }
    }

    /// The next number to try, and whether it is a guess; none when two neighbours enclose the answer.
    fn count(&self) -> Option<(u32, bool)> {
        let Some(flooded) = self.too_many() else {
            return if self.kept.is_none() { Some((self.most, false)) } else { None };
        };
        let kept = self.kept.unwrap_or(0);
        if flooded - kept <= 1 {
            return None;
        }
        let guesses = self.estimate.filter(|_| self.guesses < self.halvings + GUESSES_AHEAD);
        let untried = guesses.into_iter().flat_map(|estimate| [estimate, estimate.saturating_add(1)]);
        let guess = untried.into_iter().find(|count| (kept + 1..flooded).contains(count));
        Some(guess.map_or((kept.midpoint(flooded), false), |guess| (guess, true)))
    }

    /// The fewest addresses that the search stays below.
    fn too_many(&self) -> Option<u32> {
        self.flooded.into_iter().chain(self.cut_short.map(|(count, _)| count)).min()
    }

    fn firmness(&self) -> Firmness {
        let open = self.cut_short.filter(|(count, _)| self.flooded.is_none_or(|flooded| *count < flooded));
        open.map_or(Firmness::Firm, |(_, share)| Firmness::NotFirm { offered: Some(share) })
    }

    fn set(&self) -> Option<Set> {
        if let Some((count, _)) = self.count() {
            return Some(Set { count, first: 0, rate: self.learn_rate });
        }
        let (search, first) = self.rates.as_ref()?;
        Some(Set { count: self.kept?, first: *first, rate: search.next()?.load })
    }

    pub(crate) fn next(&self, plan: &DevicePlan) -> Option<Trial> {
        let set = self.set()?;
        let pair = plan.directions.first()?;
        let learns = self.learned.is_none();
        let [a, b, c, ..] = FIRST;
        let [_, upper, middle, lower] = set.first.to_be_bytes();
        let first = Mac([a, b, c, upper, middle, lower]);
        let (headers, field) = if learns {
            let headers = FrameHeaders {
                source_mac: first,
                destination_mac: pair.headers.source_mac,
                source: pair.headers.destination,
                destination: pair.headers.source,
                ..pair.headers.clone()
            };
            (headers, VaryField::SourceMac)
        } else {
            (FrameHeaders { destination_mac: first, ..pair.headers.clone() }, VaryField::DestinationMac)
        };
        let rate = if learns { set.rate } else { self.learn_rate };
        let vary = Vary { field, count: set.count, order: VaryOrder::Counting };
        let stream = FrameStream {
            from: if learns { LEARNING } else { TEST },
            to: if learns { TEST } else { LEARNING },
            copies_to: Vec::new(),
            size: self.size,
            rate: Some(rate),
            count: Some(set.count.into()),
            after: Nanos::default(),
            time: None,
            headers,
            form: FrameForm { vary: vec![vary], ..FrameForm::default() },
        };
        let what = if learns { "learn" } else { "find" };
        let task = FramesTask {
            home: plan.host.clone(),
            ports: plan.ports.clone(),
            streams: vec![stream],
            // The count ends it; the time has room for a tester that is held up.
            time: Nanos::new(duration(set.count, rate).get() * 8) + Nanos::from_secs(2),
            // After a probe the device forgets.
            settle: if learns { plan.settle } else { plan.settle.max(self.ageing) },
            engine: plan.engine,
            receiver: FrameReceiver::Port,
            line: None,
            hosts: Vec::new(),
        };
        Some(trial(format!("{what} {} addresses", set.count), task))
    }

    /// Whether the next trial shows addresses that the device must not know yet. Run again, it would show the same ones.
    pub(crate) fn needs_new_addresses(&self) -> bool {
        self.learned.is_none() && self.count().is_none() && self.rates.is_some()
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>, plan: &DevicePlan) -> bool {
        let Some(set) = self.set() else { return true };
        self.trials += 1;
        run.result.caveats.iter().cloned().for_each(|caveat| self.doubt(caveat));
        let Some(learned) = self.learned.take() else {
            self.learned = Some(run.result.clone());
            return false;
        };
        let Some(learned) = learned.frames() else { return false };
        // What the tester never sent says nothing of the device.
        let least = sum(&learned, |stream| stream.sent).min(sum(run, |stream| stream.sent));
        let has_room = had_room(run.result);
        let in_full = least >= u64::from(set.count) && has_room;
        self.iterations.push(self.iteration(set, &learned, run, in_full));
        if !in_full && self.held_up < HELD_UP_RETRIES {
            self.held_up += 1;
            return false;
        }
        self.held_up = 0;
        let unknown = self.unknown(set, &learned, run);
        match self.count() {
            Some((count, guess)) => {
                self.guesses += u32::from(guess);
                self.halvings += u32::from(!guess);
                if unknown == 0 {
                    self.kept = Some(count);
                } else {
                    match in_full {
                        true => self.flooded = Some(count),
                        false => self.cut_short = Some((count, least as f64 / f64::from(count))),
                    }
                    self.estimate = Some(count.saturating_sub(unknown));
                }
                if self.count().is_none() && self.ageing > Nanos::default() && self.kept.is_some() {
                    self.rates = Some((self.rate_search(), 0));
                }
            }
            None => self.record_rate(set, &learned, unknown),
        }
        self.next(plan).is_none()
    }

    /// Returns what an iteration counted. Each of its trials has one stream.
    fn iteration(&self, set: Set, learned: &FramesRun<'_>, found: &FramesRun<'_>, in_full: bool) -> AddressIteration {
        let shown = sum(learned, |stream| stream.sent);
        let sent = sum(found, |stream| stream.sent);
        let flooded_to = |port| found.counts.streams.first().and_then(|stream| stream.flooded_at(port));
        let share = shown.min(sent) as f64 / f64::from(set.count);
        AddressIteration {
            addresses: set.count,
            learn_frames_per_s: set.rate.get() as f64,
            shown,
            test_frames_per_s: self.learn_rate.get() as f64,
            sent,
            received: sum(found, |stream| stream.received),
            flooded: sum(found, |stream| stream.flooded),
            flooded_to_test: flooded_to(TEST),
            flooded_to_learning: flooded_to(LEARNING),
            flooded_to_monitoring: flooded_to(MONITORING),
            firmness: if in_full { Firmness::Firm } else { Firmness::NotFirm { offered: Some(share.min(1.0)) } },
        }
    }

    /// Addresses of the set that the device did not know: they flooded, or their frames were lost.
    fn unknown(&mut self, set: Set, learned: &FramesRun<'_>, found: &FramesRun<'_>) -> u32 {
        let shown = sum(learned, |stream| stream.sent);
        let flooded = sum(found, |stream| stream.flooded);
        let lost = sum(found, |stream| stream.sent.saturating_sub(stream.received));
        let both = duration(set.count, set.rate) + duration(set.count, self.learn_rate);
        if self.ageing > Nanos::default() && both > self.ageing {
            self.doubt(Caveat::new(
                CaveatKind::PlaceUnsure,
                message!(
                    "caveat-addresses-aged",
                    "showing and finding {count} addresses takes longer than the {time} after which the device \
                     forgets them: some may have aged out; give a higher --learn-rate or fewer addresses (--most)",
                    count = set.count,
                    time = self.ageing
                ),
            ));
        }
        if shown < u64::from(set.count) {
            self.doubt(Caveat::new(
                CaveatKind::BelowOfferedRate,
                message!(
                    "caveat-addresses-not-shown",
                    "the tester showed the device only {shown} of {count} addresses, so it could not learn the \
                     others; give a lower --learn-rate",
                    shown = shown,
                    count = set.count
                ),
            ));
        }
        if lost > 0 {
            self.doubt(Caveat::new(
                CaveatKind::PlaceUnsure,
                message!(
                    "caveat-addresses-lost",
                    "{lost} of {count} frames to learned addresses were lost, and those addresses are not counted \
                     as kept: give a lower --learn-rate",
                    lost = lost,
                    count = set.count
                ),
            ));
        }
        // What was never asked for is not known to be kept either.
        let unasked = u64::from(set.count).saturating_sub(sum(found, |stream| stream.sent));
        (flooded.max(lost) + unasked).min(u64::from(set.count)) as u32
    }

    fn rate_search(&self) -> Bisect {
        let time = Nanos::from_secs(1);
        Bisect::new(BisectGoal {
            maximum: self.highest_rate,
            minimum: FrameRate::per_second(1),
            width: RATE_WIDTH,
            loss: Ratio::new(0, 1),
            search_time: time,
            final_time: time,
        })
    }

    fn record_rate(&mut self, set: Set, learned: &FramesRun<'_>, unknown: u32) {
        let Some((search, first)) = &mut self.rates else { return };
        let Some(probe) = search.next() else { return };
        // A rate that the tester did not reach is not the device's.
        let due = duration(set.count, set.rate).as_secs_f64();
        let took = learned.counts.streams.iter().map(|stream| stream.send_time.as_secs_f64()).fold(due, f64::max);
        let share = if took > 0.0 { due / took } else { 1.0 };
        let offered = if is_whole(share) { u64::from(set.count) } else { (f64::from(set.count) * share) as u64 };
        let known = u64::from(set.count - unknown).min(offered);
        let unsent = u64::from(set.count) - offered;
        search.record(&Counted { probe, intended: set.count.into(), unsent, forwarded: known });
        // The next are new ones.
        *first = if *first + 2 * set.count < RANGE { *first + set.count } else { 0 };
    }

    fn doubt(&mut self, caveat: Caveat) {
        if !self.caveats.contains(&caveat) {
            self.caveats.push(caveat);
        }
    }

    pub(crate) fn known(&self) -> Message {
        let doing = match self.learned {
            None => message!("known-learning", "learning"),
            Some(_) => message!("known-finding", "finding"),
        };
        match (&self.rates, self.set()) {
            (Some((search, _)), Some(Set { rate, .. })) => {
                let bounds = search.bounds();
                let upper = bounds.upper.into_iter().chain(bounds.unoffered).min();
                message!(
                    "known-learns",
                    "learns between {lower} and {upper}, {doing} at {rate}",
                    lower = bound(bounds.lower),
                    upper = bound(upper),
                    doing,
                    rate
                )
            }
            _ => message!(
                "known-keeps",
                "keeps between {lower} and {upper}, {doing}",
                lower = bound(self.kept),
                upper = bound(self.too_many()),
                doing
            ),
        }
    }

    pub(crate) fn outcome(&self) -> AddressTable {
        let learned = self.kept.unwrap_or(0);
        let mut caveats = self.caveats.clone();
        if self.rates.is_none() {
            caveats.push(Caveat::new(
                CaveatKind::PlaceUnsure,
                message!(
                    "caveat-learning-not-measured",
                    "how fast the device learns was not measured: that takes addresses it has forgotten; give its \
                     ageing time (--ageing), which is then waited for after each trial"
                ),
            ));
        }
        if self.too_many().is_none() {
            caveats.push(Caveat::new(
                CaveatKind::PlaceUnsure,
                message!(
                    "caveat-all-addresses-kept",
                    "all of {learned} addresses were kept: the table may hold more; ask for more (--most)",
                    learned
                ),
            ));
        }
        let learning = self.rates.as_ref().map(|(search, _)| {
            let bounds = search.bounds();
            let firm = bounds.unoffered.is_none() && bounds.upper.is_some();
            LearningRate {
                addresses: learned,
                frames_per_s: bounds.lower.map_or(0.0, |rate| rate.get() as f64),
                firmness: if firm { Firmness::Firm } else { Firmness::NotFirm { offered: None } },
                flooded_at_frames_per_s: bounds.upper.map(|rate| rate.get() as f64),
            }
        });
        AddressTable {
            frame_bytes: self.size.get(),
            learned,
            firmness: self.firmness(),
            own: self.own,
            capacity: learned + self.own,
            flooded_at: self.flooded,
            learn_frames_per_s: self.learn_rate.get() as f64,
            learning,
            trials: self.trials,
            iterations: self.iterations.clone(),
            verdict: Some(of_number(terms::ADDRESSES, learned.into(), self.flooded.map(u64::from), self.firmness())),
            caveats,
        }
    }
}

/// How long `count` frames take.
fn duration(count: u32, rate: FrameRate) -> Nanos {
    Nanos::new(u64::from(count) * 1_000_000_000 / rate.get().max(1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{counted, frames_of, plan};
    use super::*;
    use linerate_model::{DeviceTest, FrameStreamCounts, PortFlood};
    use std::collections::BTreeSet;

    /// A switch with a table of addresses.
    struct Switch {
        table: BTreeSet<u32>,
        size: usize,
        /// Of a full table the oldest goes, rather than the new one being left out.
        replaces: bool,
        /// It misses what comes faster.
        learns: u64,
        /// It forgets after so long a silence.
        ageing: Nanos,
        loses_every: Option<u64>,
        /// So many of its next trials the tester sends by half only.
        held_up: u32,
    }

    impl Switch {
        fn new(size: usize) -> Self {
            let (table, ageing) = (BTreeSet::new(), Nanos::from_secs(u64::MAX / 1_000_000_000));
            Self { table, size, replaces: false, learns: u64::MAX, ageing, loses_every: None, held_up: 0 }
        }

        fn run(&mut self, trial: Trial) -> TrialResult {
            let task = frames_of(&trial);
            let stream = &task.streams[0];
            let low = |mac: Mac| u32::from_be_bytes([mac.0[2], mac.0[3], mac.0[4], mac.0[5]]);
            let (mut count, mut counts) = (stream.form.vary[0].count, FrameStreamCounts::default());
            counts.intended = u64::from(count);
            if self.held_up > 0 {
                self.held_up -= 1;
                count /= 2;
            }
            counts.sent = u64::from(count);
            // The tester's three ports take places of their own.
            let room = self.size - 3;
            if stream.form.vary[0].field == VaryField::SourceMac {
                let rate = stream.rate.map_or(0, |rate| rate.get());
                for number in 0..count {
                    let missed = rate > self.learns && u64::from(number) % rate >= self.learns;
                    if self.table.len() >= room && self.replaces && !missed {
                        self.table.pop_first();
                    }
                    if self.table.len() < room && !missed {
                        self.table.insert(low(stream.headers.source_mac) + number);
                    }
                }
                counts.received = counts.sent;
            } else {
                let base = low(stream.headers.destination_mac);
                let known = (0..count).filter(|number| self.table.contains(&(base + number))).count() as u64;
                counts.flooded = counts.sent - known;
                counts.flooded_at.push(PortFlood { port: MONITORING, frames: counts.flooded });
                counts.received = counts.sent - self.loses_every.map_or(0, |every| counts.sent / every);
            }
            if task.settle >= self.ageing {
                self.table.clear();
            }
            counted(trial, vec![counts])
        }
    }

    fn table(mut switch: Switch, most: u32, ageing: Nanos) -> (AddressTable, u32) {
        let learn_rate = FrameRate::per_second(10_000);
        let mut plan = plan(DeviceTest::Addresses { most, learn_rate, ageing }, false);
        plan.ports.push("p2".into());
        let size = plan.sizes[0];
        let mut test = AddressTest::new(&plan, size, (most, learn_rate, ageing), FrameRate::per_second(1_000_000));
        let mut trials = 0;
        while let Some(trial) = test.next(&plan) {
            assert_eq!(test.next(&plan).as_ref(), Some(&trial), "asking again changes nothing");
            let done = test.record(&switch.run(trial).frames().expect("frames"), &plan);
            assert_eq!(done, test.next(&plan).is_none());
            trials += 1;
            assert!(trials < 200, "a test must end");
        }
        (test.outcome(), trials)
    }

    #[test]
    fn a_table_that_keeps_the_first_is_found_exactly_in_three_probes() {
        for size in [4, 5, 1_000, 8_192, 65_537] {
            let (found, trials) = table(Switch::new(size), 65_536, Nanos::default());
            assert_eq!((found.capacity, found.own, found.flooded_at), (size as u32, 3, Some(size as u32 - 2)));
            assert!(trials <= 6, "{trials}");
        }
    }

    #[test]
    fn a_table_that_keeps_the_last_is_found_exactly() {
        for size in [100, 1_000, 40_000] {
            let ageing = Nanos::from_secs(60);
            let switch = Switch { replaces: true, ageing, ..Switch::new(size) };
            let (found, trials) = table(switch, 65_536, ageing);
            assert_eq!(found.capacity, size as u32, "{found:?}");
            assert!(trials < 120, "{trials}");
        }
    }

    #[test]
    fn a_tester_that_is_held_up_is_not_the_devices_limit() {
        for held_up in [1, 2, 4, 6] {
            let (found, _) = table(Switch { held_up, ..Switch::new(1_000) }, 4_096, Nanos::default());
            assert_eq!((found.capacity, found.flooded_at), (1_000, Some(998)), "{held_up}");
        }
    }

    #[test]
    fn each_iteration_counts_the_frames_of_its_ports() {
        let (found, trials) = table(Switch::new(1_000), 2_000, Nanos::default());
        assert_eq!(found.iterations.len() as u32 * 2, trials);
        let first = &found.iterations[0];
        assert_eq!((first.addresses, first.shown, first.sent, first.received), (2_000, 2_000, 2_000, 2_000));
        let floods = [first.flooded_to_test, first.flooded_to_learning, first.flooded_to_monitoring];
        assert_eq!((first.flooded, floods), (1_003, [Some(0), Some(0), Some(1_003)]));
        let whole = found.iterations.iter().find(|iteration| iteration.addresses == 997).expect("the capacity");
        assert!(whole.flooded == 0 && whole.firmness.is_firm(), "{whole:?}");
    }

    #[test]
    fn held_up_iterations_are_not_firm() {
        let (found, _) = table(Switch { held_up: 1, ..Switch::new(1_000) }, 4_096, Nanos::default());
        let [first, second, ..] = &found.iterations[..] else { panic!("{found:?}") };
        assert_eq!([first.addresses, second.addresses], [4_096, 4_096], "it is run again");
        assert_eq!([first.firmness.is_firm(), second.firmness.is_firm()], [false, true]);
    }

    #[test]
    fn a_table_larger_than_asked_for_is_said_to_be() {
        let (found, _) = table(Switch::new(100_000), 2_000, Nanos::default());
        assert_eq!((found.learned, found.flooded_at), (2_000, None));
        assert!(found.caveats.iter().any(|caveat| caveat.text.contains("--most")), "{:?}", found.caveats);
        assert!(found.learning.is_none() && found.caveats.iter().any(|caveat| caveat.text.contains("--ageing")));
    }

    #[test]
    fn the_learning_rate_is_found_where_the_device_forgets() {
        let ageing = Nanos::from_secs(20);
        let switch = Switch { learns: 50_000, ageing, ..Switch::new(100_003) };
        let (found, _) = table(switch, 100_000, ageing);
        let learning = found.learning.expect("it was measured");
        assert_eq!(learning.addresses, 100_000);
        assert!((learning.frames_per_s / 50_000.0 - 1.0).abs() <= 0.01, "{learning:?}");
    }

    #[test]
    fn lost_frames_are_inconclusive_and_are_told() {
        let switch = Switch { loses_every: Some(10), ..Switch::new(1_000) };
        let (found, _) = table(switch, 500, Nanos::default());
        assert!(found.learned < 10, "{found:?}");
        assert!(found.caveats.iter().any(|caveat| caveat.text.contains("lost")), "{:?}", found.caveats);
    }
}
