//! Fleet files, good and bad.

use super::*;
use linerate_model::MeasureUnit;
use linerate_units::Nanos;

const GOOD: &str = r#"
[[group]]
name = "branches"
labels = { role = "branch" }

[[group]]
name = "dc"
hosts = ["dc-1", "dc-2"]

[[link]]
name = "oslo-uplink"
labels = { site = "oslo" }
rate = "5Gbit/s"

[[mesh]]
name = "throughput"
between = ["branches", "dc"]
test = "stream --time 5s --repeats 1"
every = "6h"
sample = 4
budget = "20GB a day and link"
hours = "20:00-06:00"

[[mesh]]
name = "latency"
between = ["branches"]
test = "transact --udp --time 2s"
every = "1min"
suspect = "throughput"

[alerts]
silent_after = "5min"
keep = "80%"
webhook = ["https://hooks.example/fleet"]

[[alert]]
name = "slow"
mesh = "throughput"
below = "500Mbit/s"

[[alert]]
name = "far"
mesh = "latency"
above = "20ms"
"#;

fn refusal(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    FleetFile::parse("fleet.toml", &GOOD.replacen(from, to, 1)).expect_err(to).to_string()
}

#[test]
fn a_file_becomes_types() {
    let file = FleetFile::parse("fleet.toml", GOOD).expect("a good file");
    let [throughput, latency] = &file.meshes[..] else { panic!("two meshes") };
    assert_eq!((throughput.class, latency.class), (Class::Exclusive, Class::Light));
    assert_eq!(throughput.pattern, Pattern::Between(0, 1));
    assert_eq!(latency.pattern, Pattern::Within(0));
    assert_eq!(latency.suspect, Some(0));
    assert_eq!(throughput.slip, Nanos::from_secs(5400));
    assert_eq!(throughput.estimate(&file.links).bytes.get(), 3_125_000_000);
    assert_eq!(file.alerts.keep, 0.8);
    let limits: Vec<_> = file.alerts.thresholds.iter().map(|limit| (limit.value, limit.unit, limit.side)).collect();
    assert_eq!(limits, [(5e8, MeasureUnit::BitsPerS, Side::Below), (2e7, MeasureUnit::Nanos, Side::Above)]);
}

#[test]
fn errors_name_line_thing_and_remedy() {
    for (from, to, expected) in [
        ("sample = 4", "samples = 4", "unknown field `samples`"),
        ("between = [\"branches\", \"dc\"]", "between = [\"branch\"]", "expected one of branches, dc"),
        ("between = [\"branches\", \"dc\"]", "between = []", "has no pairs"),
        ("between = [\"branches\", \"dc\"]", "pattern = \"pairs\"\npairs = []", "has no pairs"),
        ("20GB a day and link", "1GB a day", "one trial is about 3.12 GB, and the budget is 1 GB a day"),
        ("20:00-06:00", "20:00-20:00", "begins and ends at the same time"),
        ("20:00-06:00", "evening", "write it like 20:00-06:00"),
        ("name = \"latency\"", "name = \"throughput\"", "two [[mesh]] of the name `throughput`"),
        ("name = \"dc\"", "name = \"branches\"", "two [[group]] of the name `branches`"),
        ("stream --time 5s --repeats 1", "stream a b", "`a` looks like a host"),
        ("stream --time 5s --repeats 1", "iperf3", "`iperf3` is no test between two hosts"),
        ("suspect = \"throughput\"", "suspect = \"latency\"", "light tests"),
        ("suspect = \"throughput\"", "suspect = \"rate\"", "expected one of throughput, latency"),
        ("labels = { role = \"branch\" }", "", "selects no hosts"),
        ("below = \"500Mbit/s\"", "below = \"500\"", "write it like 500Mbit/s"),
        ("below = \"500Mbit/s\"", "", "either `below`"),
        ("every = \"6h\"", "every = \"0s\"", "less than a second"),
        ("every = \"6h\"", "every = \"daily\"", "is not a duration"),
        ("https://hooks.example/fleet", "hooks.example", "is no URL"),
    ] {
        let error = refusal(from, to);
        assert!(error.contains(expected) && error.starts_with("fleet.toml"), "{to}: {error}");
    }
    let error = refusal("sample = 4", "sample = 4\nslip = \"soon\"");
    assert!(error.contains("line 21, `slip`"), "{error}");
}

#[test]
fn a_link_budget_needs_links() {
    let text = GOOD.replace("[[link]]\nname = \"oslo-uplink\"\nlabels = { site = \"oslo\" }\nrate = \"5Gbit/s\"\n", "");
    let error = FleetFile::parse("fleet.toml", &text).expect_err("no link").to_string();
    assert!(error.contains("the file has no [[link]]"), "{error}");
}
