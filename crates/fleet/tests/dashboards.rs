//! Dashboards and alert rules use the metrics that exist.

use linerate_fleet::metrics::{Family, HostRow, Metrics, PairFigure, PairResult, TrialOutcome, router};
use linerate_model::{Confidence, HeadlineVerdict, Limit, Quantity};
use linerate_testsuite::servers::Prometheus;
use linerate_testsuite::{server_test, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of a folder of packaging/ with this ending, and their texts.
fn files(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(root().join("packaging").join(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files: Vec<(PathBuf, String)> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .map(|path| (path.clone(), fs::read_to_string(&path).expect("a text")))
        .collect();
    assert!(!files.is_empty(), "no {ending} in {folder}");
    files
}

/// Words of a text that look like metrics.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("linerate_")).collect()
}

#[test]
fn dashboards_and_rules_name_metrics_that_exist() {
    let known: BTreeSet<&str> = Family::ALL.iter().map(|family| family.name()).collect();
    let mut used = BTreeSet::new();
    let files = [files("grafana", "json"), files("prometheus", "yml")].concat();
    for (path, text) in &files {
        let names = metrics_in(text);
        let unknown: Vec<&&str> = names.difference(&known).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", path.display());
        used.extend(names);
    }
    assert!(used.len() > 20, "{used:?}");
}

#[test]
fn docs_name_every_metric_and_no_other() {
    let page = fs::read_to_string(root().join("docs/fleet.md")).expect("the page");
    let known: BTreeSet<&str> = Family::ALL.iter().map(|family| family.name()).collect();
    let (_, section) = page.split_once("\n## Metrics\n").expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    assert_eq!(metrics_in(section), known);
}

/// Queries of a dashboard by their panel, with values for variables.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            let mut query = target["expr"].as_str().expect("an expression").to_owned();
            for (variable, value) in [
                ("$__rate_interval", "1m"),
                ("$test", ".*"),
                ("$from_site", ".*"),
                ("$to_site", ".*"),
                ("$from", "a"),
                ("$to", "b"),
            ] {
                query = query.replace(variable, value);
            }
            assert!(!query.contains('$'), "{query}: a variable without a value");
            queries.push((panel["title"].as_str().expect("a title").to_owned(), query));
        }
    }
    queries
}

/// Metrics with a series of every family that a dashboard shows.
fn metrics() -> Arc<Metrics> {
    let metrics = Metrics::default();
    let host = |name: &str, site: &str, present| HostRow {
        name: name.into(),
        site: Some(site.to_owned()),
        zone: None,
        present,
    };
    metrics.set_hosts([host("a", "oslo", true), host("b", "rome", false)]);
    for (from, to) in [("a", "b"), ("b", "a")] {
        for (test, quantity) in [
            ("stream", Quantity::PayloadBps),
            ("transact", Quantity::LatencyP99Ns),
            ("transact --rate 5000", Quantity::PerSecond),
            ("stream --udp", Quantity::LossRatio),
        ] {
            let verdict = HeadlineVerdict { limit: Limit::Wire, confidence: Confidence::High };
            let figure = PairFigure { quantity, value: 0.5, link_share: Some(0.5), verdict: Some(verdict) };
            let test = test.to_owned();
            metrics.record_pair(PairResult {
                from: from.into(),
                to: to.into(),
                test,
                ended_unix_s: 1_800_000_000,
                figure: Some(figure),
            });
        }
    }
    metrics.count_trial("core", TrialOutcome::Counted, 1 << 20);
    metrics.add(Family::MissedSlots, &["core", "budget"], 1.0);
    metrics.add(Family::Records, &["stored"], 1.0);
    metrics.add(Family::Notifications, &["hook", "delivered"], 1.0);
    metrics.add(Family::PushedSamples, &["delivered"], 1.0);
    metrics.set(Family::AlertsFiring, &["level-changed"], 1.0);
    metrics.set(Family::NotificationQueue, &["hook"], 0.0);
    metrics.set(Family::Scheduling, &[], 1.0);
    Arc::new(metrics)
}

async fn get(url: &str) -> Option<String> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().ok()?;
    client.get(url).send().await.ok()?.text().await.ok()
}

#[server_test(Program("prometheus"))]
fn every_query_of_the_dashboards_has_an_answer() {
    let runtime = Runtime::new().expect("a runtime");
    let metrics = metrics();
    let address = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(axum::serve(listener, router(Arc::clone(&metrics))).into_future());
        address
    });
    let prometheus = Prometheus::start(&[address]);
    for (path, text) in files("grafana", "json") {
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        for (panel, query) in queries(&dashboard) {
            let url = format!("http://127.0.0.1:{}/api/v1/query", prometheus.port());
            let url = reqwest::Url::parse_with_params(&url, [("query", &query)]).expect("a URL").to_string();
            // A rate has a value after two scrapes during which the counter grew.
            wait_until(&format!("{}, {panel}: {query}", path.display()), || {
                metrics.count_plan(Duration::from_millis(1), 1_800_000_000, 0);
                let answer: Value = serde_json::from_str(&runtime.block_on(get(&url))?).ok()?;
                assert_ne!(answer["status"], "error", "{query}: {answer}");
                answer["data"]["result"].as_array().is_some_and(|series| !series.is_empty()).then_some(())
            });
        }
    }
}
