//! Plans of simulated fleets.

use super::*;
use crate::file::{Class, FleetFile};
use linerate_model::HostName;
use linerate_units::{ByteCount, Nanos};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// 2023-11-14 00:00 UTC.
const MIDNIGHT: u64 = 1_699_920_000;

fn file(text: &str) -> FleetFile {
    FleetFile::parse("fleet.toml", text).expect("a good file")
}

fn hosts(count: usize, sites: usize) -> Vec<FleetHost> {
    let host = |number: usize| FleetHost {
        name: HostName(format!("h{number}")),
        labels: BTreeMap::from([
            ("site".to_owned(), format!("s{}", number % sites)),
            ("role".to_owned(), if number < 2 { "dc" } else { "branch" }.to_owned()),
        ]),
        present: true,
    };
    (0..count).map(host).collect()
}

/// A fleet file with a group of all hosts and one of each role.
fn with_groups(rest: &str) -> FleetFile {
    let groups = "[[group]]\nname = \"all\"\nhosts = [HOSTS]\n[[group]]\nname = \"dc\"\nlabels = { role = \"dc\" }\n\
                  [[group]]\nname = \"branches\"\nlabels = { role = \"branch\" }\n";
    let names: Vec<String> = (0..40).map(|number| format!("\"h{number}\"")).collect();
    file(&(groups.replace("HOSTS", &names.join(", ")) + rest))
}

fn moment(unix_s: u64) -> Moment {
    Moment { unix_s, utc_offset_s: 0 }
}

/// A trial as the simulation saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trial {
    begins: u64,
    ends: u64,
    order: Arc<Order>,
}

/// Runs a planner as a fleet does. Time goes from event to event.
struct Simulation {
    planner: Planner,
    now: u64,
    outstanding: Vec<Trial>,
    trials: Vec<Trial>,
    missed: Vec<Missed>,
    /// Percentage of the estimated time that a trial takes, by the length of its identity.
    percent: [u64; 3],
}

impl Simulation {
    fn new(planner: Planner, now: u64) -> Self {
        Self { planner, now, outstanding: Vec::new(), trials: Vec::new(), missed: Vec::new(), percent: [100; 3] }
    }

    fn step(&mut self) {
        let (ended, rest): (Vec<Trial>, Vec<Trial>) =
            std::mem::take(&mut self.outstanding).into_iter().partition(|trial| trial.ends <= self.now);
        self.outstanding = rest;
        for trial in ended {
            let ended = self.planner.ended(&trial.order.id, Outcome::Done, trial.order.bytes, moment(self.now));
            assert_eq!(ended.expect("outstanding").order, trial.order);
        }
        for order in self.planner.due(moment(self.now)) {
            let percent = self.percent[(order.due_unix_s % 3) as usize];
            let ends = self.now + (order.time.get() / 1_000_000_000 * percent / 100).max(1);
            let trial = Trial { begins: self.now, ends, order };
            self.outstanding.push(trial.clone());
            self.trials.push(trial);
        }
        self.missed.extend(self.planner.missed());
    }

    fn run_until(&mut self, end: u64) {
        while self.now < end {
            self.step();
            let wake = self.planner.next_wake(moment(self.now)).unwrap_or(end);
            let next_end = self.outstanding.iter().map(|trial| trial.ends).min().unwrap_or(end);
            self.now = wake.min(next_end).max(self.now + 1).min(end);
        }
    }

    fn pairs(&self, mesh: &str, span: std::ops::Range<u64>) -> BTreeMap<(HostName, HostName), usize> {
        let mut pairs = BTreeMap::new();
        for trial in self.trials.iter().filter(|trial| trial.order.mesh == mesh && span.contains(&trial.begins)) {
            *pairs.entry((trial.order.from.clone(), trial.order.to.clone())).or_default() += 1;
        }
        pairs
    }
}

/// Fails if two exclusive trials share a resource at a time.
fn check_resources(trials: &[Trial]) {
    let mut taken: BTreeMap<&Resource, Vec<(u64, u64)>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.order.class == Class::Exclusive) {
        for resource in &trial.order.resources {
            taken.entry(resource).or_default().push((trial.begins, trial.ends));
        }
    }
    for (resource, mut spans) in taken {
        spans.sort_unstable();
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{resource:?} taken twice: {pair:?}");
        }
    }
}

const LINKS: &str = "[[link]]\nname = \"up0\"\nlabels = { site = \"s0\" }\nrate = \"1Gbit/s\"\n\
                     [[link]]\nname = \"up1\"\nlabels = { site = \"s1\" }\nrate = \"1Gbit/s\"\n";

fn mesh(name: &str, keys: &str) -> String {
    format!("[[mesh]]\nname = \"{name}\"\n{keys}\n")
}

const STREAM: &str = "test = \"stream --time 5s --repeats 1\"";

#[test]
fn agents_of_one_node_share_its_host() {
    let mut hosts = hosts(6, 2);
    for (number, host) in hosts.iter_mut().enumerate() {
        host.labels.insert("node".to_owned(), format!("n{}", number / 2));
    }
    let file = with_groups(&mesh("busy", &format!("between = [\"all\"]\n{STREAM}\nevery = \"1h\"")));
    let mut planner = Planner::new(file, 1);
    planner.set_hosts(hosts);
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    while simulation.now < MIDNIGHT + 3_600 {
        simulation.step();
        simulation.now += 1;
    }
    assert!(simulation.trials.len() >= 30, "{} trials", simulation.trials.len());
    check_resources(&simulation.trials);
    let node = |name: &HostName| name.0[1..].parse::<usize>().expect("a number") / 2;
    let mut busy: BTreeMap<usize, Vec<(u64, u64)>> = BTreeMap::new();
    for trial in &simulation.trials {
        let nodes = BTreeSet::from([node(&trial.order.from), node(&trial.order.to)]);
        for each in nodes {
            busy.entry(each).or_default().push((trial.begins, trial.ends));
        }
    }
    for (node, mut spans) in busy {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "node {node}: {spans:?}");
    }
}

#[test]
fn each_pair_has_its_turn_in_each_period() {
    let keys = format!("between = [\"all\"]\n{STREAM}\nevery = \"1h\"");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 7);
    planner.set_hosts(hosts(9, 3));
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 4 * 3600 + 900);
    // A period begins with the first trial; a trial may be late by the slip.
    let all = simulation.pairs("m", MIDNIGHT..MIDNIGHT + 3600 + 900);
    assert_eq!(all.len(), 9 * 8);
    for hour in 1..4 {
        let pairs = simulation.pairs("m", MIDNIGHT + hour * 3600 - 900..MIDNIGHT + (hour + 1) * 3600 + 900);
        assert_eq!(pairs.len(), 9 * 8, "hour {hour}");
    }
    let total = simulation.pairs("m", MIDNIGHT..MIDNIGHT + 4 * 3600);
    assert!(total.values().all(|runs| (3..=5).contains(runs)), "{total:?}");
    assert_eq!(simulation.missed, []);
    check_resources(&simulation.trials);
}

#[test]
fn samples_cover_all_pairs_over_time() {
    let keys = format!("between = [\"all\"]\n{STREAM}\nevery = \"1h\"\nsample = 2\nboth_ways = false");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 7);
    planner.set_hosts(hosts(10, 3));
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 6 * 3600);
    assert_eq!(simulation.pairs("m", MIDNIGHT..MIDNIGHT + 6 * 3600).len(), 45);
    for hour in 0..5 {
        let begins = MIDNIGHT + hour * 3600;
        let pairs = simulation.pairs("m", begins..begins + 3600);
        assert!((5..=15).contains(&pairs.len()), "{} pairs in hour {hour}", pairs.len());
    }
}

#[test]
fn spokes_sample_hubs() {
    let keys = format!("between = [\"dc\", \"branches\"]\npattern = \"hub\"\n{STREAM}\nevery = \"1h\"\nsample = 1");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 7);
    planner.set_hosts(hosts(12, 3));
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 3600 + 900);
    let pairs = simulation.pairs("m", MIDNIGHT..MIDNIGHT + 3600 + 900);
    let spokes: BTreeSet<&HostName> =
        pairs.keys().map(|(_, to)| to).filter(|to| !["h0", "h1"].contains(&&*to.0)).collect();
    assert_eq!(spokes.len(), 10, "each spoke has a hub");
}

#[test]
fn light_trials_run_at_any_time_and_are_marked() {
    let text = mesh("busy", &format!("between = [\"all\"]\n{STREAM}\nevery = \"1min\""))
        + &mesh("light", "between = [\"all\"]\ntest = \"transact --time 3s --repeats 1\"\nevery = \"10s\"");
    let mut planner = Planner::new(with_groups(&text), 3);
    planner.set_hosts(hosts(4, 1));
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 600);
    let light: Vec<&Trial> = simulation.trials.iter().filter(|trial| trial.order.mesh == "light").collect();
    for trial in &light {
        let shares = simulation.trials.iter().any(|other| {
            let is_busy = other.order.mesh == "busy" && other.begins < trial.begins && other.ends > trial.begins;
            is_busy && other.order.resources.iter().any(|resource| trial.order.resources.contains(resource))
        });
        assert!(!shares || trial.order.concurrent, "{trial:?}");
    }
    assert!(light.iter().any(|trial| trial.order.concurrent) && light.iter().any(|trial| !trial.order.concurrent));
    // The slot of a pair may come while its last trial runs, but no light trial waits for an exclusive one.
    assert!(light.iter().all(|trial| trial.begins == trial.order.due_unix_s));
}

#[test]
fn light_trials_that_an_exclusive_one_joins_are_marked_at_their_end() {
    let text = mesh("busy", &format!("pattern = \"pairs\"\npairs = [[\"h0\", \"h1\"]]\n{STREAM}\nevery = \"10min\""))
        + &mesh(
            "light",
            "pattern = \"pairs\"\npairs = [[\"h0\", \"h1\"]]\ntest = \"transact\"\nevery = \"5min\"\nsuspect = \"busy\"\nboth_ways = false",
        );
    let mut planner = Planner::new(with_groups(&text), 3);
    planner.set_hosts(hosts(2, 1));
    let mut now = MIDNIGHT;
    let light = loop {
        let orders = planner.due(moment(now));
        for order in orders.iter().filter(|order| order.mesh == "busy") {
            planner.ended(&order.id, Outcome::Done, order.bytes, moment(now));
        }
        if let Some(order) = orders.into_iter().find(|order| order.mesh == "light") {
            break order;
        }
        now = planner.next_wake(moment(now)).expect("a slot").max(now + 1);
    };
    let suspected = planner.suspect("light", &light.from, &light.to, moment(now));
    let orders = planner.due(moment(now));
    assert_eq!(suspected, orders.iter().any(|order| order.suspicion));
    assert!(orders.iter().any(|order| order.mesh == "busy"), "{orders:?}");
    let ended = planner.ended(&light.id, Outcome::Done, light.bytes, moment(now + 5)).expect("outstanding");
    assert!(ended.concurrent);
    assert_eq!(planner.ended(&light.id, Outcome::Done, light.bytes, moment(now + 5)), None);
}

#[test]
fn absent_hosts_are_missed_by_name() {
    let keys = format!("between = [\"all\"]\n{STREAM}\nevery = \"20min\"");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 7);
    let mut fleet = hosts(5, 1);
    fleet[3].present = false;
    planner.set_hosts(fleet);
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 3600);
    assert!(simulation.missed.len() >= 2 * 8, "{}", simulation.missed.len());
    for missed in &simulation.missed {
        assert_eq!(missed.reason, MissReason::HostAbsent("h3".into()));
        assert!(missed.from.0 == "h3" || missed.to.0 == "h3");
    }
    assert!(simulation.trials.iter().all(|trial| trial.order.from.0 != "h3" && trial.order.to.0 != "h3"));
}

#[test]
fn overload_starves_no_pair() {
    // 12 hosts need 11 rounds of 2 x 7 s; the period has a third of that.
    let keys = format!("between = [\"all\"]\n{STREAM}\nevery = \"50s\"");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 11);
    planner.set_hosts(hosts(12, 1));
    assert!(planner.warnings().iter().any(|warning| matches!(warning, PlanWarning::NoTime { .. })));
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 1500);
    check_resources(&simulation.trials);
    assert!(simulation.missed.iter().all(|missed| missed.reason == MissReason::Busy));
    // 30 periods at a third of the capacity: each pair has had a turn by the tenth, and some more.
    for begin in [0, 500, 1000] {
        let pairs = simulation.pairs("m", MIDNIGHT + begin..MIDNIGHT + begin + 500);
        assert_eq!(pairs.len(), 12 * 11, "from {begin} s");
    }
}

#[test]
fn a_small_budget_is_kept_and_starves_no_pair() {
    // One trial is 625 MB; 90 are due a day, and 20 are paid for.
    let keys = format!("between = [\"all\"]\n{STREAM}\nevery = \"24h\"\nbudget = \"12.5GB a day\"");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 5);
    planner.set_hosts(hosts(10, 1));
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 30 * 86_400);
    for day in 0..30 {
        let begin = MIDNIGHT + day * 86_400;
        let trials: usize = simulation.pairs("m", begin..begin + 86_400).values().sum();
        assert!(trials <= 20, "{trials} trials on day {day}");
        assert!(day == 0 || trials == 20, "{trials} trials on day {day}");
    }
    assert_eq!(simulation.pairs("m", MIDNIGHT..MIDNIGHT + 30 * 86_400).len(), 90);
    assert!(simulation.missed.iter().all(|missed| missed.reason == MissReason::Budget));
}

#[test]
fn a_suspicion_is_checked_soon() {
    let text = mesh("latency", "between = [\"all\"]\ntest = \"transact\"\nevery = \"1h\"\nsuspect = \"rate\"")
        + &mesh("rate", &format!("between = [\"all\"]\n{STREAM}\nevery = \"24h\"\nhours = \"20:00-06:00\""));
    let mut planner = Planner::new(with_groups(&text), 5);
    planner.set_hosts(hosts(6, 2));
    let noon = MIDNIGHT + 12 * 3600;
    planner.due(moment(noon));
    let (from, to) = ("h1".into(), "h4".into());
    let first = planner.suspect("latency", &from, &to, moment(noon));
    let again = planner.suspect("latency", &from, &to, moment(noon));
    assert!(!again, "it is queued already");
    assert!(!planner.suspect("rate", &from, &to, moment(noon)), "the mesh names no other");
    assert!(!planner.suspect("latency", &from, &"x".into(), moment(noon)));
    let evening = MIDNIGHT + 20 * 3600;
    let orders = planner.due(moment(evening));
    let order = orders.iter().find(|order| order.mesh == "rate" && order.from == from && order.to == to);
    assert_eq!(order.map(|order| (order.suspicion, order.due_unix_s)), first.then_some((true, evening)));
    assert!(first);
}

#[test]
fn another_planner_goes_on_without_overlap() {
    let keys = format!("between = [\"all\"]\n{STREAM}\nevery = \"10min\"");
    let text = mesh("m", &keys);
    let mut planner = Planner::new(with_groups(&text), 5);
    planner.set_hosts(hosts(8, 2));
    let mut first = Simulation::new(planner, MIDNIGHT);
    first.run_until(MIDNIGHT + 1501);
    let mut planner = Planner::new(with_groups(&text), 5);
    planner.set_hosts(hosts(8, 2));
    planner.restore(first.trials.iter().map(|trial| LastRun {
        mesh: trial.order.mesh.clone(),
        from: trial.order.from.clone(),
        to: trial.order.to.clone(),
        at: trial.begins,
        bytes: trial.order.bytes,
    }));
    for trial in &first.outstanding {
        planner.hold(Order::clone(&trial.order), moment(MIDNIGHT + 1530));
    }
    assert_eq!(planner.outstanding().count(), first.outstanding.len());
    let mut second = Simulation::new(planner, MIDNIGHT + 1530);
    for trial in &first.outstanding {
        second.outstanding.push(Trial { ends: MIDNIGHT + 1560, ..trial.clone() });
    }
    second.run_until(MIDNIGHT + 3000);
    let mut all: Vec<Trial> = first.trials.clone();
    for trial in &mut all {
        if first.outstanding.contains(trial) {
            trial.ends = MIDNIGHT + 1560;
        }
    }
    all.extend(second.trials);
    check_resources(&all);
    let ids: BTreeSet<&OrderId> = all.iter().map(|trial| &trial.order.id).collect();
    assert_eq!(ids.len(), all.len(), "no slot is ordered twice");
    assert_eq!(second.missed, []);
    // Each pair goes on in its period.
    let mut begins: BTreeMap<(&HostName, &HostName), Vec<u64>> = BTreeMap::new();
    for trial in &all {
        begins.entry((&trial.order.from, &trial.order.to)).or_default().push(trial.begins);
    }
    for (pair, times) in begins {
        assert!(times.windows(2).all(|pair| (300..=900).contains(&(pair[1] - pair[0]))), "{pair:?} {times:?}");
        assert!(times.len() >= 4, "{pair:?} {times:?}");
    }
}

#[test]
fn slots_without_a_scheduler_are_missed_once() {
    let keys = format!("between = [\"all\"]\n{STREAM}\nevery = \"10min\"");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 5);
    planner.set_hosts(hosts(4, 1));
    let mut simulation = Simulation::new(planner, MIDNIGHT);
    simulation.run_until(MIDNIGHT + 1200);
    // A day of absence counts as one period.
    simulation.now += 86_400;
    simulation.run_until(MIDNIGHT + 86_400 + 1800);
    let away: Vec<&Missed> =
        simulation.missed.iter().filter(|missed| missed.reason == MissReason::SchedulerAway).collect();
    assert!((1..=12).contains(&away.len()), "{away:?}");
}

#[test]
fn failed_and_overdue_orders_are_reported() {
    let keys = format!("pattern = \"pairs\"\npairs = [[\"h0\", \"h1\"]]\nboth_ways = false\n{STREAM}\nevery = \"1h\"");
    let mut planner = Planner::new(with_groups(&mesh("m", &keys)), 5);
    planner.set_hosts(hosts(2, 1));
    let mut now = MIDNIGHT;
    let order = loop {
        if let Some(order) = planner.due(moment(now)).pop() {
            break order;
        }
        now = planner.next_wake(moment(now)).expect("a slot").max(now + 1);
    };
    planner.begun(&order.id, moment(now));
    assert!(planner.overdue(moment(now + 60)).is_empty());
    assert_eq!(planner.overdue(moment(now + 100)), [&*order]);
    planner.ended(&order.id, Outcome::Lost, ByteCount::new(0), moment(now + 100)).expect("outstanding");
    assert_eq!(planner.missed()[0].reason, MissReason::Failed);
    assert_eq!(planner.outstanding().count(), 0);
}

#[test]
fn warnings_name_labels_that_exist() {
    let text =
        "[[group]]\nname = \"oslo\"\nlabels = { site = \"oslo\" }\n[[group]]\nname = \"x\"\nhosts = [\"h0\", \"h77\"]\n"
            .to_owned() + &mesh("m", &format!("between = [\"oslo\", \"x\"]\n{STREAM}\nevery = \"1h\""));
    let mut planner = Planner::new(file(&text), 1);
    planner.set_hosts(hosts(4, 2));
    let warnings: Vec<String> = planner.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "[[group]] `oslo` matches no host: no host has site=oslo; hosts have site=s0, site=s1",
            "[[group]] `x` names host `h77`, which is not enrolled; enrol it or correct the name",
            "mesh `m` has no pairs; its groups match fewer than two hosts",
        ]
    );
}

#[test]
fn orders_of_other_versions_are_read() {
    let text = r#"{"id":"m|a|b|1","mesh":"m","from":"a","to":"b","test":["stream"],"class":"exclusive","due_unix_s":1,
        "not_after_unix_s":2,"resources":[{"host":"a"},{"link":{"name":"up","direction":"out"}}],"bytes":3,"time":4,"future":true}"#;
    let order: Order = serde_json::from_str(text).expect("unknown fields are ignored");
    assert_eq!(order.resources[1], Resource::Link { name: "up".into(), direction: Way::Out });
    let again: Order = serde_json::from_str(&serde_json::to_string(&order).expect("JSON")).expect("an order");
    assert_eq!(again, order);
}

/// 10,000 hosts: a round has 5,000 pairs in both directions, and only due rounds are computed.
#[test]
fn large_fleets_are_planned_by_round() {
    let text = "[[group]]\nname = \"all\"\nlabels = { role = \"branch\" }\n".to_owned()
        + &mesh("m", &format!("between = [\"all\"]\n{STREAM}\nevery = \"6h\"\nsample = 4\nslip = \"1s\""));
    let mut planner = Planner::new(file(&text), 1);
    planner.set_hosts(hosts(10_002, 50));
    let orders = planner.due(moment(MIDNIGHT));
    let busy: BTreeSet<&HostName> = orders.iter().flat_map(|order| [&order.from, &order.to]).collect();
    assert_eq!(busy.len(), 2 * orders.len());
    assert!(orders.len() + planner.waiting() <= 10_000 && orders.len() > 2_000, "{} orders", orders.len());
}

fn scenario() -> impl Strategy<Value = (String, usize, usize)> {
    let every = prop::sample::select(vec!["2min", "10min", "1h"]);
    let sample = 0u32..4;
    let pattern = prop::sample::select(vec![
        "between = [\"all\"]",
        "between = [\"dc\", \"branches\"]",
        "between = [\"dc\", \"branches\"]\npattern = \"hub\"",
        "between = [\"branches\", \"all\"]",
    ]);
    let limits = prop::sample::select(vec![
        "",
        "budget = \"5GB a day\"",
        "budget = \"5GB a day and link\"",
        "hours = \"22:00-02:00\"",
        "hours = \"00:10-00:40,01:00-03:00\"",
    ]);
    let test = prop::sample::select(vec!["stream --time 5s --repeats 1", "stream -R --repeats 1", "rpc"]);
    let mesh_keys = (every, sample, pattern, limits, test, any::<bool>()).prop_map(
        |(every, sample, pattern, limits, test, both)| {
            format!(
                "{pattern}\ntest = \"{test}\"\nevery = \"{every}\"\nsample = {sample}\n{limits}\nboth_ways = {both}"
            )
        },
    );
    (prop::collection::vec(mesh_keys, 1..3), 3usize..12, 2usize..4).prop_map(|(keys, count, sites)| {
        let meshes: Vec<String> =
            keys.iter().enumerate().map(|(index, keys)| mesh(&format!("m{index}"), keys)).collect();
        (LINKS.to_owned() + &meshes.concat(), count, sites)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Resources, hours, budgets and slips are kept, whatever the meshes, and equal seeds give equal plans.
    #[test]
    fn plans_keep_the_rules((text, count, sites) in scenario(), seed in 0u64..1000, percent in [50u64..100, 50u64..250, 50u64..100], away in 0usize..3) {
        let file = with_groups(&text);
        let run = || {
            let mut planner = Planner::new(file.clone(), seed);
            let mut fleet = hosts(count, sites);
            fleet[away].present = away == 0;
            planner.set_hosts(fleet);
            let mut simulation = Simulation::new(planner, MIDNIGHT + 21 * 3600);
            simulation.percent = percent;
            simulation.run_until(MIDNIGHT + 24 * 3600);
            simulation.planner.set_hosts(hosts(count, sites));
            simulation.run_until(MIDNIGHT + 27 * 3600);
            simulation
        };
        let simulation = run();
        let again = run();
        prop_assert_eq!(&simulation.trials, &again.trials);
        prop_assert_eq!(&simulation.missed, &again.missed);
        check_resources(&simulation.trials);
        let mut spent: BTreeMap<(String, u64, Option<String>), u64> = BTreeMap::new();
        for trial in &simulation.trials {
            let order = &trial.order;
            prop_assert!(order.due_unix_s <= trial.begins && trial.begins <= order.not_after_unix_s);
            let mesh = file.meshes.iter().find(|mesh| mesh.name == order.mesh).expect("a mesh of the file");
            prop_assert!(mesh.hours.contains(trial.begins % 86_400), "{:?}", trial);
            let Some(budget) = mesh.budget else { continue };
            let day = trial.begins / 86_400;
            let links: BTreeSet<Option<String>> = match budget.scope {
                crate::file::BudgetScope::Mesh => BTreeSet::from([None]),
                crate::file::BudgetScope::Link => order.resources.iter().filter_map(|resource| match resource {
                    Resource::Link { name, .. } => Some(Some(name.clone())),
                    Resource::Host(_) => None,
                }).collect(),
            };
            for link in links {
                let sum = spent.entry((order.mesh.clone(), day, link)).or_default();
                *sum += order.bytes.get();
                prop_assert!(*sum <= budget.bytes.get());
            }
        }
        let ids: BTreeSet<&OrderId> = simulation.trials.iter().map(|trial| &trial.order.id).collect();
        prop_assert_eq!(ids.len(), simulation.trials.len());
    }

    /// A preview has the trials that a planner begins that is asked each second.
    #[test]
    fn previews_agree_with_plans((text, count, sites) in scenario(), seed in 0u64..1000) {
        let file = with_groups(&text);
        let begin = MIDNIGHT + 23 * 3600;
        let preview = preview(file.clone(), seed, hosts(count, sites), moment(begin), Nanos::from_secs(5400));
        let mut planner = Planner::new(file, seed);
        planner.set_hosts(hosts(count, sites));
        let mut simulation = Simulation::new(planner, begin);
        while simulation.now < begin + 5400 {
            simulation.step();
            simulation.now += 1;
        }
        let planned: Vec<(u64, String, HostName, HostName)> = preview.rounds.iter().flat_map(|round| {
            round.pairs.iter().map(|(mesh, from, to)| {
                (round.begins_unix_s, preview.meshes[*mesh].mesh.clone(), from.clone(), to.clone())
            })
        }).collect();
        let begun: Vec<(u64, String, HostName, HostName)> = simulation.trials.iter().map(|trial| {
            (trial.begins, trial.order.mesh.clone(), trial.order.from.clone(), trial.order.to.clone())
        }).collect();
        prop_assert_eq!(planned, begun);
        let bytes: u64 = simulation.trials.iter().map(|trial| trial.order.bytes.get()).sum();
        prop_assert_eq!(preview.bytes.get(), bytes);
        let missed: u64 = preview.meshes.iter().flat_map(|mesh| mesh.missed.values()).sum();
        prop_assert_eq!(missed, simulation.missed.len() as u64);
    }
}
