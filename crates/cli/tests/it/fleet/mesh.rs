//! A mesh of twenty agents at four sites, with planted limits.

use linerate_testsuite::fleet::{Database, FleetLab, FleetLabOptions, FleetServer, Site};
use linerate_testsuite::server_test;
use linerate_units::BitRate;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

const MEGABIT: u64 = 1_000_000;
/// Sites and the rates of their uplinks in Mbit/s. All are declared with the rate of the first.
const UPLINKS: [(&str, u64); 4] = [("oslo", 60), ("rome", 12), ("lima", 60), ("bonn", 20)];
const HOSTS_OF_SITE: usize = 5;
/// Host with a slow link of its own, at a site with a good uplink.
const BAD_HOST: &str = "lima-2";
const BAD_HOST_RATE: u64 = 6;
/// Rate below which an alert is raised.
const THRESHOLD: u64 = 35;
/// Period of the mesh.
const EVERY: Duration = Duration::from_secs(25);
/// Time in which every planted limit must be named: usually a minute and a half.
const NAMED: Duration = Duration::from_secs(400);
/// Pairs of the mesh. Fewer than half of those through a good uplink are slow, so that it cannot be blamed for them.
const PAIRS: [(&str, &str); 21] = [
    ("oslo-1", "lima-1"),
    ("oslo-2", "lima-2"),
    ("oslo-3", "lima-3"),
    ("oslo-4", "lima-4"),
    ("oslo-5", "lima-5"),
    ("oslo-1", "lima-2"),
    ("oslo-2", "lima-3"),
    ("oslo-3", "lima-4"),
    ("oslo-4", "lima-5"),
    ("oslo-5", "lima-1"),
    ("lima-1", "lima-2"),
    ("lima-2", "lima-3"),
    ("oslo-1", "rome-1"),
    ("oslo-2", "rome-2"),
    ("lima-3", "rome-3"),
    ("lima-4", "rome-4"),
    ("bonn-5", "rome-5"),
    ("oslo-3", "bonn-1"),
    ("oslo-4", "bonn-2"),
    ("lima-5", "bonn-3"),
    ("lima-1", "bonn-4"),
];

fn site_of(host: &str) -> &str {
    host.split('-').next().unwrap_or_default()
}

fn is_slow(site: &str) -> bool {
    UPLINKS.iter().any(|(name, rate)| *name == site && *rate < THRESHOLD)
}

/// Returns the rate of the slowest link between two hosts, in Mbit/s.
fn planted_rate(from: &str, to: &str) -> Option<u64> {
    let mut rates = Vec::new();
    if from == BAD_HOST || to == BAD_HOST {
        rates.push(BAD_HOST_RATE);
    }
    if site_of(from) != site_of(to) {
        rates.extend(
            UPLINKS.iter().filter(|(site, _)| [site_of(from), site_of(to)].contains(site)).map(|(_, rate)| *rate),
        );
    }
    rates.into_iter().min()
}

fn fleet_file() -> String {
    let mut file = String::new();
    for (site, _) in UPLINKS {
        file += &format!("[[link]]\nname = \"{site}-uplink\"\nlabels = {{ site = \"{site}\" }}\nrate = \"60Mbit/s\"\n");
    }
    let pairs: Vec<String> = PAIRS.iter().map(|(from, to)| format!("[\"{from}\", \"{to}\"]")).collect();
    file += "[[mesh]]\nname = \"rate\"\ntest = \"stream --time 0.5s --warmup 0.3s --repeats 1\"\n";
    file += &format!(
        "pattern = \"pairs\"\npairs = [{}]\nevery = \"{}s\"\nslip = \"25s\"\n",
        pairs.join(", "),
        EVERY.as_secs()
    );
    file += &format!("[[alert]]\nname = \"slow\"\nmesh = \"rate\"\nbelow = \"{THRESHOLD}Mbit/s\"\n");
    file
}

fn options() -> FleetLabOptions {
    let sites = UPLINKS.iter().map(|(name, rate)| Site {
        name: (*name).to_owned(),
        hosts: HOSTS_OF_SITE,
        uplink: BitRate::per_second(rate * MEGABIT),
    });
    FleetLabOptions {
        program: env!("CARGO_BIN_EXE_linerate").into(),
        sites: sites.collect(),
        host_rate: BitRate::per_second(100 * MEGABIT),
        slow_hosts: BTreeMap::from([(BAD_HOST.to_owned(), BitRate::per_second(BAD_HOST_RATE * MEGABIT))]),
        file: fleet_file(),
        servers: vec![FleetServer::new("fleet", "")],
        database: Database::PostgreSql,
        stream_space: None,
    }
}

/// Returns the subjects of the alerts that are raised: the words before the colon.
fn alerts(lab: &FleetLab) -> BTreeSet<String> {
    let status: Value = serde_json::from_str(&lab.run_well(&["fleet", "status", "--json"])).expect("JSON");
    let alerts = status["schedule"]["alerts"].as_array().cloned().unwrap_or_default();
    let summaries = alerts.iter().filter_map(Value::as_str);
    summaries.map(|summary| summary.split(':').next().unwrap_or_default().to_owned()).collect()
}

#[server_test(Root, Program("nats-server"), Program("pg_ctlcluster|postgres"))]
fn planted_links_and_host_are_named_and_nothing_else() {
    let lab = FleetLab::up(options());
    let slow_uplinks = UPLINKS.iter().filter(|(site, _)| is_slow(site)).map(|(site, _)| format!("link {site}-uplink"));
    let planted: BTreeSet<String> = slow_uplinks.chain([format!("host {BAD_HOST}")]).collect();
    let begin = Instant::now();
    while !alerts(&lab).is_superset(&planted) {
        assert!(begin.elapsed() < NAMED, "{planted:?} is to be named: {}", lab.run_well(&["fleet", "status"]));
        thread::sleep(Duration::from_secs(1));
    }
    // Another round changes nothing.
    thread::sleep(EVERY);
    assert_eq!(alerts(&lab), planted);

    let matrix: Value = serde_json::from_str(&lab.run_well(&["fleet", "matrix", "--json"])).expect("JSON");
    let cells = matrix["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2 * PAIRS.len(), "{matrix}");
    let mut slow = 0;
    let mut shaped = 0;
    let mut good = 0;
    let mut fast = 0;
    for cell in cells {
        let (from, to) = (cell["from"].as_str().expect("a host"), cell["to"].as_str().expect("a host"));
        let value = cell["value"].as_f64().expect("a rate");
        match planted_rate(from, to).filter(|rate| *rate < THRESHOLD) {
            Some(rate) => {
                assert!(value < (rate * MEGABIT) as f64, "{cell}");
                slow += 1;
                shaped += usize::from(cell["limit"] == "shaper");
            }
            None => {
                good += 1;
                fast += usize::from(value > (THRESHOLD * MEGABIT) as f64);
            }
        }
    }
    // The newest trial of a pair lasts half a second, in which a busy machine may have done something else.
    assert!(4 * fast > 3 * good, "{fast} of {good} good pairs are fast: {matrix}");
    // A trial of half a second on a busy machine may leave its limit open.
    assert!(2 * shaped > slow, "{shaped} of {slow} slow pairs name the shaper: {matrix}");
}
