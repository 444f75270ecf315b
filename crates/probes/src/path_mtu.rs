//! Search for the path MTU of one way: by packets that the far end answers (RFC 8899), with "packet too big" messages as hints
//! (RFC 1191, RFC 8201). It does no I/O.
//!
//! A size that is lost once is searched below at once. The smallest such size is sent again in the end, each time with a small packet
//! after it, so that neither chance nor a wrong message is taken for a limit. A size that is lost without a message is a black hole;
//! its place is where routers stop to answer packets of that size.

use linerate_model::{BlackHole, MtuProof, PathMtu, TooBig};
use std::net::IpAddr;

/// TTL of packets to the far end.
pub(crate) const FAR: u8 = 255;
/// Losses that show that a size does not pass, each with a small packet that does.
const CONFIRMED: u32 = 4;
/// Small packets that may be lost in a row before the search is given up.
const MAX_BASE_LOST: u32 = 6;
/// Attempts at a router that does not answer small packets either.
const MAX_SILENT: u32 = 2;
/// Smallest MTU of a link (RFC 791 section 3.2).
const LEAST_MTU: u32 = 68;
/// Most probes of a search.
const MAX_PROBES: u32 = 200;
/// Usual MTUs: of jumbo frames, of Ethernet, and of Ethernet less the headers of tunnels.
const USUAL: [u32; 13] = [9_000, 4_352, 1_500, 1_492, 1_480, 1_476, 1_460, 1_450, 1_440, 1_420, 1_400, 1_380, 1_280];

/// Packet to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MtuProbe {
    /// Bytes of the IP packet.
    pub(crate) bytes: u32,
    /// TTL; [`FAR`] for the far end.
    pub(crate) ttl: u8,
}

/// Answer to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MtuAnswer {
    /// The far end received it.
    FarEnd,
    /// A router received it.
    TimeExceeded {
        /// The router.
        from: IpAddr,
    },
    /// A router reports that it is too big.
    TooBig {
        /// The router.
        from: IpAddr,
        /// MTU in the report; zero if there is none.
        mtu: u32,
    },
}

/// State of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A small packet is to show that the far end answers.
    Base,
    /// Sizes between the largest that passed and the smallest that was lost.
    Search {
        bytes: u32,
    },
    /// The smallest lost size again, after `losses` losses; `is_small` sends the small packet in between.
    Confirm {
        losses: u32,
        is_small: bool,
    },
    /// The place of a black hole: `losses` large packets of this TTL were lost, `silent` small ones.
    Place {
        ttl: u8,
        losses: u32,
        silent: u32,
        is_small: bool,
    },
    Done,
}

/// Search for the path MTU of one way.
#[derive(Debug)]
pub(crate) struct MtuSearch {
    link_mtu: u32,
    base: u32,
    hops: u8,
    phase: Phase,
    /// Largest size that the far end answered.
    passed: Option<u32>,
    /// Sizes that did not pass, the smallest last; with whether a router reported it.
    failed: Vec<(u32, bool)>,
    base_lost: u32,
    /// Whether losses were confirmed.
    is_confirmed: bool,
    reports: Vec<TooBig>,
    last_answered: u8,
    first_lost: Option<u8>,
    in_flight: Option<MtuProbe>,
    probes: u32,
}

impl MtuSearch {
    /// Creates a search up to `link_mtu`, the MTU of the first link. Packets of `base` bytes are taken to pass.
    pub(crate) fn new(link_mtu: u32, base: u32) -> Self {
        Self {
            link_mtu,
            base: base.min(link_mtu),
            hops: 0,
            phase: Phase::Base,
            passed: None,
            failed: Vec::new(),
            base_lost: 0,
            is_confirmed: false,
            reports: Vec::new(),
            last_answered: 0,
            first_lost: None,
            in_flight: None,
            probes: 0,
        }
    }

    /// Sets the number of routers before the far end; 0 if it is not known.
    pub(crate) fn set_hops(&mut self, hops: u8) {
        self.hops = hops;
    }

    /// Returns the packet to send now. `None` while one is in flight, and at the end.
    pub(crate) fn next(&mut self) -> Option<MtuProbe> {
        if self.in_flight.is_some() || self.phase == Phase::Done || self.probes >= MAX_PROBES {
            return None;
        }
        let smallest_failed = self.failed.last().map(|(bytes, _)| *bytes);
        let large = smallest_failed.unwrap_or(self.base);
        let (bytes, ttl) = match self.phase {
            Phase::Base => (self.base, FAR),
            Phase::Search { bytes } => (bytes, FAR),
            Phase::Confirm { is_small, .. } => (if is_small { self.base } else { large }, FAR),
            Phase::Place { ttl, is_small, .. } => (if is_small { self.base } else { large }, ttl),
            Phase::Done => return None,
        };
        self.probes += 1;
        self.in_flight = Some(MtuProbe { bytes, ttl });
        self.in_flight
    }

    /// Takes the answer to the packet in flight. An answer to any other packet changes nothing.
    pub(crate) fn answered(&mut self, probe: MtuProbe, answer: MtuAnswer) {
        if self.in_flight != Some(probe) {
            return;
        }
        self.in_flight = None;
        if let MtuAnswer::TooBig { from, mtu } = answer {
            self.reported(probe, from, mtu);
            return;
        }
        match self.phase {
            Phase::Base | Phase::Search { .. } if answer == MtuAnswer::FarEnd => {
                self.passed = self.passed.max(Some(probe.bytes));
                self.base_lost = 0;
                self.search();
            }
            Phase::Confirm { losses, is_small: true } => {
                self.base_lost = 0;
                self.phase = Phase::Confirm { losses, is_small: false };
                if losses >= CONFIRMED {
                    self.is_confirmed = true;
                    self.place();
                }
            }
            Phase::Confirm { is_small: false, .. } => {
                // It was lost by chance.
                self.failed.pop();
                self.passed = self.passed.max(Some(probe.bytes));
                self.search();
            }
            Phase::Place { ttl, losses, is_small: true, .. } => {
                if losses >= CONFIRMED {
                    self.first_lost = Some(ttl);
                    self.phase = Phase::Done;
                } else {
                    self.phase = Phase::Place { ttl, losses, silent: 0, is_small: false };
                }
            }
            Phase::Place { ttl, is_small: false, .. } => {
                self.last_answered = ttl;
                self.next_place(ttl);
            }
            Phase::Base | Phase::Search { .. } | Phase::Done => {}
        }
    }

    /// Counts the packet in flight as lost.
    pub(crate) fn lost(&mut self, probe: MtuProbe) {
        if self.in_flight != Some(probe) {
            return;
        }
        self.in_flight = None;
        match self.phase {
            Phase::Base | Phase::Confirm { is_small: true, .. } => {
                self.base_lost += 1;
                if self.base_lost >= MAX_BASE_LOST {
                    self.phase = Phase::Done;
                }
            }
            Phase::Search { bytes } => {
                self.failed.push((bytes, false));
                self.search();
            }
            Phase::Confirm { losses, is_small: false } => {
                self.phase = Phase::Confirm { losses: losses + 1, is_small: true };
            }
            Phase::Place { ttl, losses, silent, is_small: false } => {
                self.phase = Phase::Place { ttl, losses: losses + 1, silent, is_small: true };
            }
            Phase::Place { ttl, losses, silent, is_small: true } => {
                // A router that answers small packets neither shows nothing.
                self.phase =
                    Phase::Place { ttl, losses: losses.saturating_sub(1), silent: silent + 1, is_small: false };
                if silent + 1 >= MAX_SILENT {
                    self.next_place(ttl);
                }
            }
            Phase::Done => {}
        }
    }

    /// Takes a report of a router.
    fn reported(&mut self, probe: MtuProbe, from: IpAddr, mtu: u32) {
        // A report of more than the packet contradicts itself.
        let mtu = if mtu < probe.bytes { mtu } else { 0 };
        match self.reports.iter_mut().find(|report| report.address == from) {
            Some(known) if mtu > 0 => known.mtu = mtu,
            Some(_) => {}
            None => self.reports.push(TooBig { address: from, mtu }),
        }
        match self.phase {
            Phase::Base => {
                // Routers before RFC 1191 report no MTU.
                let smaller = if mtu >= LEAST_MTU { mtu } else { self.base / 2 };
                self.base = smaller.max(LEAST_MTU);
                self.base_lost += 1;
                if self.base_lost >= MAX_BASE_LOST {
                    self.phase = Phase::Done;
                }
            }
            Phase::Search { bytes } => {
                self.failed.push((bytes, true));
                let low = self.passed.unwrap_or(self.base);
                if mtu > low && mtu < bytes {
                    self.phase = Phase::Search { bytes: mtu };
                } else {
                    self.search();
                }
            }
            Phase::Confirm { .. } => {
                if let Some(last) = self.failed.last_mut().filter(|(bytes, _)| *bytes == probe.bytes) {
                    last.1 = true;
                    self.is_confirmed = true;
                    self.phase = Phase::Done;
                }
            }
            Phase::Place { ttl, .. } => self.next_place(ttl),
            Phase::Done => {}
        }
    }

    /// Chooses the next size, or confirms the smallest lost one if there is none between.
    fn search(&mut self) {
        let low = self.passed.unwrap_or(self.base);
        self.failed.retain(|(bytes, _)| *bytes > low);
        let Some((high, is_reported)) = self.failed.last().copied() else {
            self.phase = if low >= self.link_mtu { Phase::Done } else { Phase::Search { bytes: self.link_mtu } };
            return;
        };
        if high - low > 1 {
            // After a usual size has passed, the next larger one shows whether it is the limit.
            let is_usual = USUAL.contains(&low);
            let usual = USUAL.into_iter().filter(|bytes| (low + 1..high).contains(bytes));
            let half = low + (high - low) / 2;
            let nearest = usual.min_by_key(|bytes| bytes.abs_diff(half));
            let bytes = if is_usual { low + 1 } else { nearest.unwrap_or(half) };
            self.phase = Phase::Search { bytes };
        } else {
            // The report is to be repeated; a loss, as often as needed.
            self.phase = Phase::Confirm { losses: u32::from(!is_reported), is_small: !is_reported };
        }
    }

    /// Begins to look for the place of a black hole.
    fn place(&mut self) {
        self.phase =
            if self.hops == 0 { Phase::Done } else { Phase::Place { ttl: 1, losses: 0, silent: 0, is_small: false } };
        if self.hops == 0 {
            self.first_lost = None;
        }
    }

    fn next_place(&mut self, ttl: u8) {
        if ttl < self.hops {
            self.phase = Phase::Place { ttl: ttl + 1, losses: 0, silent: 0, is_small: false };
        } else {
            // The far end is known not to receive it.
            self.first_lost = Some(self.hops + 1);
            self.phase = Phase::Done;
        }
    }

    /// Returns whether the search has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Done || self.probes >= MAX_PROBES
    }

    /// Returns what is known so far.
    pub(crate) fn result(&self) -> PathMtu {
        let silent = self.failed.last().filter(|(_, is_reported)| !is_reported);
        let black_hole = silent.filter(|_| self.is_confirmed).map(|(lost_bytes, _)| BlackHole {
            lost_bytes: *lost_bytes,
            last_answered: self.last_answered,
            first_lost: self.first_lost,
        });
        let reported = self.reports.iter().map(|report| report.mtu).filter(|mtu| *mtu > 0).min();
        let is_known = self.passed.is_some_and(|passed| passed >= self.link_mtu) || self.is_confirmed;
        let (bytes, found_by) = match (self.passed, reported) {
            (Some(passed), _) if is_known => (Some(passed), MtuProof::FarEnd),
            (_, Some(reported)) => (Some(reported), MtuProof::Reported),
            _ => (None, MtuProof::Nothing),
        };
        PathMtu { bytes, found_by, link_mtu: self.link_mtu, reports: self.reports.clone(), black_hole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    /// A path whose link before hop `at` carries `mtu` bytes.
    #[derive(Debug, Clone)]
    struct SimulatedPath {
        routers: u8,
        at: u8,
        mtu: u32,
        reports: bool,
        /// Routers that never answer, as bits.
        silent: u32,
        /// Share of packets lost by chance, percent.
        loses: u32,
        random: u64,
        sent: u32,
    }

    impl SimulatedPath {
        fn answer(&mut self, probe: MtuProbe) -> Option<MtuAnswer> {
            self.sent += 1;
            // A linear congruential generator (Knuth), seeded by the path.
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if (self.random >> 33) % 100 < u64::from(self.loses) {
                return None;
            }
            let address = |hop: u8| IpAddr::V4(Ipv4Addr::new(198, 18, hop, 2));
            let answers = |hop: u8| self.silent >> hop & 1 == 0;
            let reached = probe.ttl.min(self.routers + 1);
            if reached >= self.at && probe.bytes > self.mtu {
                let reporter = self.at - 1;
                return (self.reports && answers(reporter))
                    .then(|| MtuAnswer::TooBig { from: address(reporter), mtu: self.mtu });
            }
            if reached > self.routers {
                return Some(MtuAnswer::FarEnd);
            }
            answers(reached).then(|| MtuAnswer::TimeExceeded { from: address(reached) })
        }

        fn search(&mut self) -> PathMtu {
            let mut search = MtuSearch::new(1_500, 1_200);
            search.set_hops(self.routers);
            let mut count = 0;
            while let Some(probe) = search.next() {
                count += 1;
                assert!(count <= MAX_PROBES && search.next().is_none(), "one packet is in flight at a time");
                match self.answer(probe) {
                    Some(answer) => search.answered(probe, answer),
                    None => search.lost(probe),
                }
            }
            assert!(search.is_done());
            search.result()
        }
    }

    fn path(at: u8, mtu: u32, reports: bool) -> SimulatedPath {
        SimulatedPath { routers: 4, at, mtu, reports, silent: 0, loses: 0, random: 1, sent: 0 }
    }

    #[test]
    fn whole_path_takes_two_packets() {
        let mut whole = path(2, 1_500, false);
        let found = whole.search();
        assert_eq!((found.bytes, found.found_by, found.black_hole), (Some(1_500), MtuProof::FarEnd, None));
        assert_eq!(whole.sent, 2);
    }

    #[test]
    fn reported_mtu_is_confirmed_by_the_far_end() {
        let mut reporting = path(3, 1_400, true);
        let found = reporting.search();
        assert_eq!((found.bytes, found.found_by, found.black_hole), (Some(1_400), MtuProof::FarEnd, None));
        assert_eq!(found.reports, [TooBig { address: Ipv4Addr::new(198, 18, 2, 2).into(), mtu: 1_400 }]);
        assert!(reporting.sent <= 6, "{} packets", reporting.sent);
    }

    #[test]
    fn black_hole_has_a_size_and_a_place() {
        for at in 1..=5 {
            let found = path(at, 1_400, false).search();
            let hole = BlackHole { lost_bytes: 1_401, last_answered: at - 1, first_lost: Some(at) };
            assert_eq!((found.bytes, found.black_hole), (Some(1_400), Some(hole)));
        }
    }

    #[test]
    fn silent_routers_are_not_named() {
        let mut silent = path(2, 1_400, false);
        silent.silent = 1 << 2;
        let hole = silent.search().black_hole.expect("a black hole");
        assert_eq!((hole.last_answered, hole.first_lost), (1, Some(3)));
    }

    #[test]
    fn far_end_that_never_answers_leaves_reports_alone() {
        let mut search = MtuSearch::new(1_500, 1_200);
        while let Some(probe) = search.next() {
            search.lost(probe);
        }
        let found = search.result();
        assert_eq!((found.bytes, found.found_by, found.black_hole), (None, MtuProof::Nothing, None));
        assert!(search.is_done());
    }

    #[test]
    fn wrong_report_is_corrected_by_the_far_end() {
        let from = IpAddr::V4(Ipv4Addr::new(198, 18, 1, 2));
        for (at_probe, mtu) in [(1, 68), (1, 1_500), (1, 9_000), (0, 0), (0, 576)] {
            let mut search = MtuSearch::new(1_500, 1_200);
            let mut count = 0;
            while let Some(probe) = search.next() {
                let answer = if count == at_probe { MtuAnswer::TooBig { from, mtu } } else { MtuAnswer::FarEnd };
                search.answered(probe, answer);
                count += 1;
            }
            let found = search.result();
            assert_eq!((found.bytes, found.found_by), (Some(1_500), MtuProof::FarEnd), "{mtu} for probe {at_probe}");
        }
    }

    /// Of 500 searches over a path that loses one packet in ten, hardly any names a black hole that is not there.
    #[test]
    fn chance_rarely_looks_like_a_black_hole() {
        let searches =
            (0..500).map(|seed| SimulatedPath { loses: 10, random: seed * 7_919, ..path(3, 1_500, false) }.search());
        assert!(searches.filter(|found| found.black_hole.is_some()).count() <= 2);
    }

    #[test]
    fn late_answer_changes_nothing() {
        let mut search = MtuSearch::new(1_500, 1_200);
        let first = search.next().expect("a packet");
        search.lost(first);
        let second = search.next().expect("a packet");
        search.answered(MtuProbe { bytes: 1_300, ttl: FAR }, MtuAnswer::FarEnd);
        assert_eq!(search.next(), None, "the second is in flight");
        search.answered(second, MtuAnswer::FarEnd);
        assert!(search.next().is_some());
    }

    proptest! {
        #[test]
        fn truth_is_found_without_loss(at in 1u8..6, mtu in 1_200u32..=1_500, reports: bool, silent in 0u32..32) {
            let mut path = SimulatedPath { silent: silent << 1, ..path(at, mtu, reports) };
            let found = path.search();
            prop_assert_eq!(found.bytes, Some(mtu));
            let first_reports = at == 1 || path.silent >> (at - 1) & 1 == 0;
            prop_assert_eq!(found.black_hole.is_some(), mtu < 1_500 && !(reports && first_reports));
            if let Some(hole) = found.black_hole {
                prop_assert_eq!(hole.lost_bytes, mtu + 1);
                prop_assert!(hole.last_answered < at && hole.first_lost.is_some_and(|first| first >= at), "{:?}", hole);
            }
        }

        /// Loss by chance may leave the search undecided, but never yields an MTU above the truth.
        #[test]
        fn loss_by_chance_yields_no_larger_mtu(at in 1u8..6, mtu in 1_200u32..=1_500, loses in 1u32..15, random: u64) {
            let found = SimulatedPath { loses, random, ..path(at, mtu, false) }.search();
            prop_assert!(found.bytes.is_none_or(|bytes| bytes <= mtu), "{:?}", found);
        }
    }
}
