//! Pages of a fleet.

use crate::place::{TestView, pair_record, stream_record};
use crate::snapshots::without_times;
use linerate_report::Language;
use linerate_store::FleetHost;
use linerate_testsuite::page_outline::outline;
use linerate_testsuite::report_page::axe_faults;
use linerate_testsuite::server_test;
use linerate_testsuite::servers::{Postgres, axe};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

const HOUR: u64 = 3_600_000_000_000;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

/// Three sites with two hosts each and a result of each pair. From Rome to Oslo is slow since the last run; from Oslo to Paris is
/// not measured, and from Paris to Oslo was measured long ago.
pub(crate) fn filled(language: Language) -> TestView {
    let place = TestView::speaking(language);
    keep_hosts(&place);
    place
}

/// Keeps the hosts and their results.
pub(crate) fn keep_hosts(place: &TestView) {
    let sites = ["oslo", "paris", "rome"];
    // In the middle of an hour of age, so that a slow test shows the same ages.
    let now = now() - HOUR / 2;
    let hosts: Vec<FleetHost> = sites
        .iter()
        .flat_map(|site| [1, 2].map(|number| (site, format!("{site}-{number}"))))
        .map(|(site, name)| FleetHost {
            name,
            labels: BTreeMap::from([("site".to_owned(), (*site).to_owned()), ("role".to_owned(), "edge".to_owned())]),
            seen_unix_ns: now - 3 * HOUR,
        })
        .collect();
    place.store.put_hosts(&hosts).expect("stored");
    for from in &hosts {
        for to in &hosts {
            let (from, to) = (from.name.as_str(), to.name.as_str());
            let is_missing = from.starts_with("oslo") && to.starts_with("paris");
            if from == to || is_missing {
                continue;
            }
            let is_old = from.starts_with("paris") && to.starts_with("oslo");
            let age = if is_old { 72 } else { 5 };
            let is_slow = from.starts_with("rome") && to == "oslo-2";
            let rates = match (is_slow, from) {
                (true, "rome-1") => [941, 94],
                (true, _) => [941, 120],
                (false, _) => [940, 941],
            };
            for (run, rate) in rates.into_iter().enumerate() {
                let started = now - (age - run as u64) * HOUR;
                let id = format!("{from}-{to}-{run}");
                place.keep(&pair_record(&id, started, [from, to], rate * 1_000_000));
            }
        }
    }
}

#[test]
fn small_set_ups_have_no_fleet_links() {
    let place = TestView::new();
    assert!(!place.get("").body.contains("fleet"));
    place.keep(&stream_record("run", 1, &[941_000_000]));
    assert!(!place.get("").body.contains("href=\"./fleet\""), "one pair is no fleet");
    place.keep(&pair_record("other", 2, ["alpha", "gamma"], 941_000_000));
    assert!(place.get("").body.contains("href=\"./fleet\""));
    let with_hosts = filled(Language::English);
    assert!(with_hosts.get("").body.contains("href=\"./fleet/changes\""));
}

#[test]
fn empty_store_explains_the_pages() {
    let place = TestView::new();
    for (page, text) in [
        ("fleet", "no results of pairs yet"),
        ("fleet/changes", "No result has changed since"),
        ("fleet/sites", "no hosts of a fleet"),
    ] {
        let answer = place.get(page);
        assert_eq!(answer.status, 200, "{page}");
        assert!(answer.body.contains(text), "{page}: {}", answer.body);
    }
    assert_eq!(place.get("fleet/pair?from=a&to=b").status, 404);
}

#[test]
fn sites_come_first_and_lead_to_hosts() {
    let place = filled(Language::English);
    let sites = place.get("fleet");
    assert_eq!(sites.status, 200);
    assert_eq!(sites.body.matches("<td").count(), 9);
    assert!(sites.body.contains("no result") && sites.body.contains("<b>old</b>"), "{}", sites.body);
    let worst = sites.at("rome-1");
    assert!(worst < sites.at("<table"), "the worst pair is named before the matrix");
    assert!(sites.body.contains("<strong>94 Mbit/s</strong> <span>9.4 % of link</span>"), "{}", sites.body);
    let drill = "fleet?test=stream&amp;by=host&amp;from=rome&amp;to=oslo";
    assert!(sites.body.contains(drill), "{}", sites.body);
    let hosts = place.get(&drill.replace("&amp;", "&"));
    assert_eq!(hosts.body.matches("<td").count(), 4, "two hosts by two");
    assert!(hosts.body.contains("fleet/pair?from=rome-2&amp;to=oslo-2&amp;test=stream"), "{}", hosts.body);
    assert_eq!(hosts.body.matches(">poor</b>").count(), 2);
    let filtered = place.get("fleet?by=host&text=par");
    assert!(filtered.body.contains("2 rows, 2 columns."), "{}", filtered.body);
}

#[test]
fn pair_page_has_history_runs_and_evidence() {
    let place = filled(Language::English);
    let pair = place.get("fleet/pair?from=rome-1&to=oslo-2&test=stream");
    assert_eq!(pair.status, 200);
    for part in [
        "rome-1 \u{2192} oslo-2",
        "<svg",
        "../record?id=rome-1-oslo-2-1",
        "../style.css",
        "What limits the newest result",
        "What limited it cannot be told.",
    ] {
        pair.at(part);
    }
    assert!(pair.at("../record?id=rome-1-oslo-2-1") < pair.at("../record?id=rome-1-oslo-2-0"), "newest first");
    place.store.delete("rome-1-oslo-2-1").expect("deleted");
    assert!(place.get("fleet/pair?from=rome-1&to=oslo-2").body.contains("941 Mbit/s"), "the run before is the newest");
}

#[test]
fn changes_are_grouped_by_sites() {
    let place = filled(Language::English);
    let changes = place.get("fleet/changes");
    assert_eq!(changes.body.matches("<h2>").count(), 1, "{}", changes.body);
    changes.at("rome \u{2192} oslo");
    assert!(changes.body.contains("941 Mbit/s \u{2192} 94 Mbit/s (-90.0 %)"), "{}", changes.body);
    assert!(changes.body.contains("941 Mbit/s \u{2192} 120 Mbit/s (-87.2 %)"), "{}", changes.body);
    assert!(changes.body.contains(">worse</b>"));
    assert!(place.get("fleet/changes?since=1h").body.contains("No result has changed since"));
}

#[test]
fn sites_page_counts_limits() {
    let place = filled(Language::English);
    let sites = place.get("fleet/sites");
    for part in
        ["Limits of the worst pair", "paris-2", "role=edge, site=rome", "../fleet?test=stream&amp;by=host&amp;to=oslo"]
    {
        sites.at(part);
    }
    // 8 cells have results: rome to oslo is shaped, the others reach the wire.
    let counts = |limit: &str| format!("<th scope=\"row\">{limit}</th><td>");
    assert!(sites.body.contains(&format!("{}7</td>", counts("wire"))), "{}", sites.body);
    assert!(sites.body.contains(&format!("{}1</td>", counts("shaper"))), "{}", sites.body);
}

#[test]
fn json_has_the_same() {
    let place = filled(Language::English);
    let json = |page: &str| serde_json::from_str::<Value>(&place.get(page).body).expect("JSON");
    let matrix = json("fleet/matrix.json?by=site");
    assert_eq!(matrix["rows"], serde_json::json!(["oslo", "paris", "rome"]));
    let cells = matrix["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 8);
    let slow = cells.iter().find(|cell| (cell["row"] == 2) && (cell["column"] == 0)).expect("rome to oslo");
    assert_eq!(
        (slow["limit"].as_str(), slow["pairs"].as_u64(), slow["unit"].as_str()),
        (Some("shaper"), Some(4), Some("bit/s"))
    );
    let pair = json("fleet/pair.json?from=rome-1&to=oslo-2");
    assert_eq!(pair["points"].as_array().map(Vec::len), Some(2));
    assert_eq!(pair["points"][1]["record"], "rome-1-oslo-2-1");
    let changes = json("fleet/changes.json?since=24h");
    assert_eq!(changes["changes"].as_array().map(Vec::len), Some(2));
    assert_eq!(changes["changes"][0]["from_site"], "rome");
    let missing = place.get("fleet/pair.json?from=nosuch&to=oslo-2");
    let error: Value = serde_json::from_str(&missing.body).expect("JSON");
    assert!(missing.status == 404 && error["error"].as_str().is_some_and(|text| text.contains("nosuch")));
}

#[test]
fn bad_input_has_a_clear_page() {
    let place = filled(Language::English);
    for (page, status, text) in [
        ("fleet?test=nosuch", 404, "no results of the test `nosuch`"),
        ("fleet?from=atlantis", 404, "No host of the site `atlantis`"),
        ("fleet?by=host&text=nosuch", 404, "called `nosuch`"),
        ("fleet?by=rack", 400, "`rack` is not a choice of rows"),
        ("fleet?old=soon", 400, "`soon` is not a number of hours"),
        ("fleet/pair?from=nosuch&to=oslo-1", 404, "called `nosuch`"),
        ("fleet/pair?from=oslo-1&to=paris-1", 404, "no results from `oslo-1` to `paris-1`"),
        ("fleet/pair", 404, "called ``"),
        ("fleet/changes?since=yesterday", 400, "`yesterday` is not a time"),
        ("fleet/sites?test=nosuch", 404, "no results of the test `nosuch`"),
        ("fleet/nosuch", 404, "There is no such page."),
        ("fleet?test=%3Cscript%3E", 404, "`&lt;script&gt;`"),
    ] {
        let answer = place.get(page);
        assert_eq!(answer.status, status, "{page}: {}", answer.body);
        assert!(answer.body.contains(text), "{page}: {}", answer.body);
    }
    for page in
        ["fleet?row=99999&column=99999", "fleet?row=0", "fleet?by=host&row=18446744073709551615", "fleet?row=-1"]
    {
        assert_eq!(place.get(page).status, 200, "{page}");
        assert!(place.get(page).body.contains("oslo"), "{page}: past the end is the end");
    }
}

#[test]
fn large_matrices_have_pages() {
    let place = TestView::new();
    for number in 0..61 {
        let to = format!("host-{number:02}");
        place.keep(&pair_record(&format!("run-{number:02}"), 1 + number, ["hub", &to], 941_000_000));
    }
    let first = place.get("fleet?by=host");
    assert_eq!(first.body.matches("<td").count(), 60);
    assert!(first.body.contains("columns 1\u{2013}60 of 61") && first.body.contains("column=2"), "{}", first.body);
    let last = place.get("fleet?by=host&column=9");
    assert_eq!(last.body.matches("<td").count(), 1);
    assert!(last.body.contains("columns 61\u{2013}61 of 61"), "{}", last.body);
}

#[server_test(Program("chromium|chromium-browser|google-chrome"), Program("npm"))]
fn no_fleet_page_has_a_serious_fault() {
    let place = filled(Language::English);
    let script = axe();
    let style = place.get("style.css").body;
    for page in
        ["fleet", "fleet?by=host&from=rome&to=oslo", "fleet/pair?from=rome-1&to=oslo-2", "fleet/changes", "fleet/sites"]
    {
        let mut html = place.get(page).body;
        for root in ["./", "../"] {
            let link = format!("<link rel=\"stylesheet\" href=\"{root}style.css\">");
            html = html.replace(&link, &format!("<style>{style}</style>"));
        }
        assert!(html.contains("<style>"), "{page}");
        assert_eq!(axe_faults(&script, &html, 1_280, true), Vec::<String>::new(), "{page}");
        assert_eq!(axe_faults(&script, &html, 390, false), Vec::<String>::new(), "{page}, narrow");
    }
}

/// The pages on PostgreSQL are those on SQLite.
#[server_test(Program("pg_ctlcluster|postgres"))]
fn pages_on_postgres_are_the_same() {
    let server = Postgres::start();
    let location = server.create_database("view").parse().expect("a URL");
    let folder = tempfile::tempdir().expect("a folder");
    let postgres = TestView::over(&location, folder, Language::English, None);
    keep_hosts(&postgres);
    let sqlite = filled(Language::English);
    let pages =
        ["fleet", "fleet?by=host&text=rome", "fleet/sites", "fleet/changes", "fleet/pair?from=rome-1&to=oslo-2"];
    for page in pages {
        let [one, other] = [&sqlite, &postgres].map(|place| outline(&place.get(page).body));
        let [one, other] = [one, other].map(|outline| without_times(&outline));
        assert_eq!(one, other, "{page}");
        assert!(one.contains("rome"), "{page}: {one}");
    }
}
