//! Alerts of simulated fleets.

use super::*;
use crate::file::FleetFile;
use crate::plan::{FleetHost, MissReason, Missed};
use linerate_model::{HostName, Limit, MeasureUnit};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};

const SITES: usize = 4;
const HOSTS: usize = 20;
const EVERY: u64 = 60;

fn monitor() -> Monitor {
    let mut text = "[[group]]\nname = \"all\"\nlabels = { role = \"agent\" }\n[[mesh]]\nname = \"m\"\nbetween = [\"all\"]\n\
                    test = \"stream\"\nevery = \"1min\"\n[[alert]]\nname = \"slow\"\nmesh = \"m\"\nbelow = \"300Mbit/s\"\n"
        .to_owned();
    for site in 0..SITES {
        text += &format!("[[link]]\nname = \"up{site}\"\nlabels = {{ site = \"s{site}\" }}\n");
    }
    let mut monitor = Monitor::new(FleetFile::parse("fleet.toml", &text).expect("a good file"));
    monitor.set_hosts(&hosts(&[]), 0);
    monitor
}

fn hosts(absent: &[usize]) -> Vec<FleetHost> {
    let labels = |number: usize| {
        BTreeMap::from([("role".to_owned(), "agent".to_owned()), ("site".to_owned(), format!("s{}", number % SITES))])
    };
    (0..HOSTS)
        .map(|number| FleetHost { name: name(number), labels: labels(number), present: !absent.contains(&number) })
        .collect()
}

fn name(number: usize) -> HostName {
    HostName(format!("h{number}"))
}

/// Adds a round of results. `factor` is what a pair has of its level.
fn round(monitor: &mut Monitor, random: &mut SmallRng, round: u64, factor: impl Fn(usize, usize) -> f64) -> Vec<Alert> {
    for from in 0..HOSTS {
        for to in (0..HOSTS).filter(|to| *to != from) {
            // Repeats scatter by a few per cent, and now and then one is far off.
            let near: f64 = (0..4).map(|_| random.random::<f64>() - 0.5).sum::<f64>() * 0.04;
            let outlier = if random.random_bool(0.01) { 0.6 } else { 1.0 };
            let value = 9e8 * (1.0 + near) * outlier * factor(from, to);
            monitor.result(&PairResult {
                mesh: "m".into(),
                from: name(from),
                to: name(to),
                at_unix_s: round * EVERY,
                value,
                unit: MeasureUnit::BitsPerS,
                limit: Some(Limit::Shaper),
                concurrent: false,
            });
        }
    }
    monitor.evaluate((round + 1) * EVERY)
}

#[test]
fn noise_raises_nothing() {
    for seed in 0..3 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut monitor = monitor();
        for number in 0..30 {
            assert_eq!(round(&mut monitor, &mut random, number, |_, _| 1.0), [], "seed {seed}, round {number}");
        }
    }
}

/// Two links and a host become slow. They are named, nothing else is, and all are resolved when they recover.
#[test]
fn planted_links_and_host_are_named() {
    let mut random = SmallRng::seed_from_u64(46);
    let mut monitor = monitor();
    let bad_host = 7;
    let is_slow = |from: usize, to: usize| {
        let crosses = |site: usize| (from % SITES == site) != (to % SITES == site);
        crosses(0) || crosses(1) || from == bad_host || to == bad_host
    };
    for number in 0..15 {
        assert_eq!(round(&mut monitor, &mut random, number, |_, _| 1.0), []);
    }
    let mut raised = Vec::new();
    for number in 15..30 {
        raised.extend(round(&mut monitor, &mut random, number, |from, to| if is_slow(from, to) { 0.5 } else { 1.0 }));
    }
    let subjects: BTreeSet<String> = monitor.active().map(|alert| alert.subject.to_string()).collect();
    assert_eq!(subjects, BTreeSet::from(["host h7", "link up0", "link up1"].map(str::to_owned)), "{raised:#?}");
    assert!(raised.iter().all(|alert| alert.kind == AlertKind::LevelChanged && alert.resolved_unix_s.is_none()));
    assert_eq!(raised.len(), 3, "{raised:#?}");
    let link = monitor.active().find(|alert| alert.subject == Subject::Link("up0".into())).expect("an alert");
    assert!(link.summary.contains("pairs through it in mesh m"), "{}", link.summary);
    assert!(link.description.contains("shaper"), "{}", link.description);
    let mut resolved = Vec::new();
    for number in 30..40 {
        resolved.extend(round(&mut monitor, &mut random, number, |_, _| 1.0));
    }
    assert_eq!(monitor.active().count(), 0);
    assert_eq!(resolved.len(), 3, "{resolved:#?}");
    assert!(resolved.iter().all(|alert| alert.resolved_unix_s.is_some()));
}

#[test]
fn a_slow_pair_is_named_by_level_and_threshold() {
    let mut random = SmallRng::seed_from_u64(1);
    let mut monitor = monitor();
    let mut raised = Vec::new();
    for number in 0..30 {
        let factor = |from, to| if number >= 15 && (from, to) == (2, 6) { 0.2 } else { 1.0 };
        raised.extend(round(&mut monitor, &mut random, number, factor));
    }
    let pair = Subject::Pair { from: name(2), to: name(6) };
    let kinds: Vec<AlertKind> = raised.iter().map(|alert| alert.kind).collect();
    assert!(raised.iter().all(|alert| alert.subject == pair), "{raised:#?}");
    assert_eq!(kinds, [AlertKind::Threshold, AlertKind::LevelChanged]);
    assert_eq!(raised[0].labels["site"], "s2");
    assert!(raised[0].summary.contains("below 300Mbit/s"), "{}", raised[0].summary);
}

#[test]
fn silence_and_missed_slots_raise_and_resolve() {
    let mut monitor = monitor();
    monitor.set_hosts(&hosts(&[3]), 100);
    assert_eq!(monitor.evaluate(699), []);
    let raised = monitor.evaluate(700);
    assert_eq!(raised.len(), 1);
    assert_eq!((raised[0].kind, &raised[0].subject), (AlertKind::SilentHost, &Subject::Host(name(3))));
    // The rest of the site follows: one alert for all.
    monitor.set_hosts(&hosts(&[3, 7, 11, 15, 19]), 800);
    let changed = monitor.evaluate(1400);
    let subjects: Vec<String> = changed.iter().map(|alert| alert.subject.to_string()).collect();
    assert_eq!(subjects, ["link up3", "host h3"]);
    monitor.set_hosts(&hosts(&[]), 1500);
    assert_eq!(monitor.evaluate(1500).len(), 1);

    let missed = |reason: MissReason| Missed { mesh: "m".into(), from: name(0), to: name(1), due: 2000, reason };
    for _ in 0..20 {
        monitor.missed(&missed(MissReason::HostAbsent(name(0))));
    }
    assert_eq!(monitor.evaluate(2700), [], "an absent host is no fault of the schedule");
    for _ in 0..20 {
        monitor.missed(&missed(MissReason::Busy));
    }
    assert_eq!(monitor.evaluate(2700)[0].kind, AlertKind::ScheduleNotKept);
    let mut random = SmallRng::seed_from_u64(1);
    assert_eq!(round(&mut monitor, &mut random, 50, |_, _| 1.0), []);
    assert!(round(&mut monitor, &mut random, 54, |_, _| 1.0)[0].resolved_unix_s.is_some());
}

/// A latency trial next to a throughput trial of the same host shows that trial's load.
#[test]
fn concurrent_results_raise_nothing() {
    let mut monitor = monitor();
    let mut result = PairResult {
        mesh: "m".into(),
        from: name(0),
        to: name(1),
        at_unix_s: 0,
        value: 9e8,
        unit: MeasureUnit::BitsPerS,
        limit: None,
        concurrent: false,
    };
    for number in 0..20 {
        result.at_unix_s = number * EVERY;
        result.concurrent = number >= 10;
        result.value = if result.concurrent { 1e8 } else { 9e8 };
        assert!(!monitor.result(&result), "result {number}");
        assert_eq!(monitor.evaluate(result.at_unix_s), []);
    }
}

/// Adds results of pairs, and returns the alerts after them.
fn add(monitor: &mut Monitor, at_unix_s: u64, pairs: &[(usize, usize)], value: f64) -> Vec<Alert> {
    for &(from, to) in pairs {
        monitor.result(&PairResult {
            mesh: "m".into(),
            from: name(from),
            to: name(to),
            at_unix_s,
            value,
            unit: MeasureUnit::BitsPerS,
            limit: None,
            concurrent: false,
        });
    }
    monitor.evaluate(at_unix_s)
}

/// On a schedule that is not kept, one pair through a slow link may have its second result minutes before the others.
#[test]
fn a_pair_is_not_named_alone_before_others_had_their_turn() {
    let mut monitor = monitor();
    // From site 0, and from sites 2 and 3 to the same site.
    let slow = [(0, 1), (4, 5), (8, 9), (12, 13)];
    let good = [(2, 1), (2, 5), (3, 9), (3, 13), (2, 9)];
    add(&mut monitor, 1_000, &slow, 1e8);
    add(&mut monitor, 1_000, &good, 9e8);
    add(&mut monitor, 1_060, &slow[..1], 1e8);
    assert_eq!(add(&mut monitor, 1_190, &good, 9e8), []);
    let raised = add(&mut monitor, 1_210, &slow[1..], 1e8);
    assert_eq!(raised.len(), 1, "{raised:#?}");
    assert_eq!(raised[0].subject, Subject::Link("up0".into()));
}
