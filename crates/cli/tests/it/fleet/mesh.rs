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
/// Time for the mesh to run.
const MEASURED: Duration = Duration::from_secs(75);

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
    let mut hosts = Vec::new();
    for (site, _) in UPLINKS {
        hosts.extend((1..=HOSTS_OF_SITE).map(|number| format!("\"{site}-{number}\"")));
    }
    let mut file = format!("[[group]]\nname = \"hosts\"\nhosts = [{}]\n", hosts.join(", "));
    for (site, _) in UPLINKS {
        file += &format!("[[link]]\nname = \"{site}-uplink\"\nlabels = {{ site = \"{site}\" }}\nrate = \"60Mbit/s\"\n");
    }
    file +=
        "[[mesh]]\nname = \"rate\"\nbetween = [\"hosts\"]\ntest = \"stream --time 0.5s --warmup 0.3s --repeats 1\"\n";
    file += "every = \"20s\"\nslip = \"20s\"\nsample = 2\n";
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

#[server_test(Root, Program("nats-server"), Program("pg_ctlcluster|postgres"))]
fn planted_links_and_host_are_named_and_nothing_else() {
    let lab = FleetLab::up(options());
    let begin = Instant::now();
    while begin.elapsed() < MEASURED {
        thread::sleep(Duration::from_secs(1));
    }
    let status: Value = serde_json::from_str(&lab.run_well(&["fleet", "status", "--json"])).expect("JSON");
    let matrix: Value = serde_json::from_str(&lab.run_well(&["fleet", "matrix", "--json"])).expect("JSON");
    let cells = matrix["cells"].as_array().expect("cells");
    assert!(cells.len() >= 40, "only {} pairs were measured: {status}", cells.len());

    for cell in cells {
        let (from, to) = (cell["from"].as_str().expect("a host"), cell["to"].as_str().expect("a host"));
        let value = cell["value"].as_f64().expect("a rate");
        match planted_rate(from, to) {
            Some(rate) if rate < THRESHOLD => {
                let planted = (rate * MEGABIT) as f64;
                // Headers of Ethernet, IP and TCP take 6 % of full frames.
                assert!(value < planted && value > 0.5 * planted, "{cell}");
                let limit = cell["limit"].as_str().expect("a limit");
                assert!(["shaper", "path-loss", "wire"].contains(&limit), "{cell}");
            }
            _ => assert!(value > (THRESHOLD * MEGABIT) as f64, "{cell}"),
        }
    }

    let alerts = status["schedule"]["alerts"].as_array().expect("alerts");
    let subjects: BTreeSet<String> = alerts.iter().filter_map(|alert| alert.as_str()).map(str::to_owned).collect();
    let planted: Vec<String> = UPLINKS
        .iter()
        .filter(|(site, _)| is_slow(site))
        .map(|(site, _)| format!("{site}-uplink"))
        .chain([BAD_HOST.to_owned()])
        .collect();
    for name in &planted {
        assert!(subjects.iter().any(|subject| subject.contains(name)), "{name} is missing in {subjects:#?}");
    }
    for subject in &subjects {
        assert!(planted.iter().any(|name| subject.contains(name)), "{subject}: nothing was planted there");
    }
}
