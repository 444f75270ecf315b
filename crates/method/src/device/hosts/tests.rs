//! The test of neighbours against simulated routers.

use super::super::tests::{counted, frames_of, plan};
use super::*;
use linerate_model::{DeviceTest, Histogram, TrialResult};
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
    /// In these trials it asks for no more than 60 hosts.
    cut_short: Vec<u32>,
    /// In these trials it teaches nobody.
    untaught: Vec<u32>,
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
            cut_short: Vec::new(),
            untaught: Vec::new(),
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

    fn run(&mut self, trial: Trial) -> TrialResult {
        self.trials += 1;
        let task = frames_of(&trial);
        let hosts = task.hosts[0].clone();
        let streams = task.streams.iter().zip(0..).map(|(stream, index)| {
            let vary = stream.form.vary[0];
            assert_eq!((stream.headers.destination, vary.field), (hosts.first, VaryField::DestinationIp));
            assert!(vary.count <= hosts.count && stream.after + stream.length(task.time) <= task.time);
            let (intended, time) = (stream.count.unwrap_or(0), stream.length(task.time).get());
            let sent = match index {
                0 if self.untaught.contains(&self.trials) => 0,
                1 if self.cut_short.contains(&self.trials) => intended.min(60),
                _ => intended * self.sends_percent / 100,
            };
            let mut counts = FrameStreamCounts { intended, sent, ..FrameStreamCounts::default() };
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
        counted(trial, streams)
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
        let done = test.record(&router.run(trial).frames().expect("frames"), &plan);
        assert_eq!(done, test.next(&plan).is_none());
        trials += 1;
        assert!(trials < 60, "a test must end: {}", test.known());
    }
    assert_eq!(test.outcome(&plan).trials, trials);
    test.outcome(&plan)
}

fn caveat<'a>(found: &'a NeighbourTable, words: &str) -> Option<&'a str> {
    found.caveats.iter().map(|caveat| caveat.text.text.as_str()).find(|text| text.contains(words))
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

/// Once a probe that was cut short hid an earlier one, whose number was then taken for the router's limit.
#[test]
fn what_the_tester_never_asked_for_is_not_the_routers_limit() {
    for cut_short in [vec![2, 3], vec![2, 3, 4], vec![2, 3, 5], vec![2, 3, 4, 6]] {
        let router = Router { cut_short: cut_short.clone(), ..Router::new(700, Full::Refuses) };
        let table = found(router, 70);
        assert!(!table.firmness.is_firm() && table.limit == Limit::Tester, "{cut_short:?}: {table:?}");
        assert!(table.held < 70 && table.lost_at.is_none(), "{cut_short:?}: {table:?}");
    }
    // Where the tester taught nobody, a frame that is lost may have met a router that still had to ask.
    let table =
        found(Router { untaught: (1..60).collect(), mishap_every: Some(1), ..Router::new(700, Full::Refuses) }, 4);
    assert!(!table.firmness.is_firm() && table.limit == Limit::Tester, "{table:?}");
    assert!(caveat(&table, "was held up, or had no room").is_some(), "{table:?}");
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
    for size in [10, 100] {
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
