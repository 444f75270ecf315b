//! Metrics of a fleet with Prometheus.

use linerate_fleet::Endpoint;
use linerate_fleet::metrics::{
    Family, HostRow, Metrics, PairFigure, PairResult, Push, PushTarget, TrialOutcome, router,
};
use linerate_model::{Confidence, HeadlineVerdict, Limit, Quantity};
use linerate_testsuite::servers::Prometheus;
use linerate_testsuite::{program, server_test, wait_until};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Metrics of a fleet with a name that needs escapes.
fn metrics() -> Arc<Metrics> {
    let metrics = Metrics::default();
    let host = |name: &str, site: &str| HostRow {
        name: name.into(),
        site: Some(site.to_owned()),
        zone: Some("z1".to_owned()),
        present: true,
    };
    metrics.set_hosts([host("a", "oslo"), host("b", "Rome \"Termini\"\\2")]);
    for (test, quantity, value) in [
        ("stream", Quantity::PayloadBps, 9.41e8),
        ("transact", Quantity::LatencyP99Ns, 1.5e6),
        ("stream --udp", Quantity::LossRatio, 0.25),
    ] {
        let verdict = HeadlineVerdict { limit: Limit::Shaper, confidence: Confidence::Medium };
        let figure = PairFigure { quantity, value, link_share: Some(0.5), verdict: Some(verdict) };
        let test = test.to_owned();
        metrics.record_pair(PairResult {
            from: "a".into(),
            to: "b".into(),
            test,
            ended_unix_s: 1_800_000_000,
            figure: Some(figure),
        });
    }
    metrics.count_trial("mesh", TrialOutcome::Counted, 1 << 30);
    metrics.count_plan(Duration::from_millis(3), 1_800_000_000, 2);
    metrics.add(Family::MissedSlots, &["mesh", "host-absent"], 1.0);
    Arc::new(metrics)
}

/// Serves the page and returns `host:port`.
fn serve(runtime: &Runtime, metrics: Arc<Metrics>) -> String {
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(axum::serve(listener, router(metrics)).into_future());
        address
    })
}

async fn get(url: &str) -> Option<String> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls())
        .no_proxy()
        .build()
        .ok()?
        .get(url)
        .send()
        .await
        .ok()?
        .text()
        .await
        .ok()
}

fn tls() -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// Waits until Prometheus has a value for a query with one result.
fn query(runtime: &Runtime, port: u16, query: &str) -> (f64, Value) {
    let url = reqwest::Url::parse_with_params(&format!("http://127.0.0.1:{port}/api/v1/query"), [("query", query)]);
    let url = url.expect("a URL").to_string();
    wait_until(query, || {
        let answer: Value = serde_json::from_str(&runtime.block_on(get(&url))?).ok()?;
        let result = answer["data"]["result"].get(0)?.clone();
        Some((result["value"][1].as_str()?.parse().ok()?, result["metric"].clone()))
    })
}

#[server_test(Program("prometheus"))]
fn prometheus_scrapes_results_of_pairs() {
    let runtime = Runtime::new().expect("a runtime");
    let address = serve(&runtime, metrics());
    let prometheus = Prometheus::start(&[address]);
    let (value, labels) =
        query(&runtime, prometheus.port(), "linerate_pair_throughput_bits_per_second{from=\"a\",to=\"b\"}");
    assert_eq!(value, 9.41e8);
    assert_eq!(labels["to_site"], "Rome \"Termini\"\\2");
    assert_eq!(query(&runtime, prometheus.port(), "linerate_pair_latency_seconds").0, 0.0015);
    assert_eq!(query(&runtime, prometheus.port(), "linerate_pair_loss_ratio").0, 0.25);
    let limits = "count(linerate_pair_limit{limit=\"shaper\",confidence=\"medium\"})";
    assert_eq!(query(&runtime, prometheus.port(), limits).0, 3.0);
    assert_eq!(query(&runtime, prometheus.port(), "linerate_missed_slots_total{reason=\"host-absent\"}").0, 1.0);
}

#[server_test(Program("prometheus"))]
fn prometheus_accepts_remote_writes() {
    let runtime = Runtime::new().expect("a runtime");
    let prometheus = Prometheus::start(&[]);
    let metrics = metrics();
    let url = format!("http://127.0.0.1:{}/api/v1/write", prometheus.port());
    let target = PushTarget {
        endpoint: Endpoint::new(&url, None).expect("a URL"),
        every: Duration::from_millis(200),
        labels: vec![("fleet".to_owned(), "lab".to_owned())],
    };
    let push = runtime.block_on(async { Push::start(Arc::clone(&metrics), target).expect("a push") });
    let (value, labels) = query(&runtime, prometheus.port(), "linerate_pair_throughput_bits_per_second");
    assert_eq!(value, 9.41e8);
    assert_eq!((labels["fleet"].as_str(), labels["to_site"].as_str()), (Some("lab"), Some("Rome \"Termini\"\\2")));
    // Prometheus refused the connection while it started; the newest push succeeded.
    wait_until("a push without an error", || push.last_error().is_none().then_some(()));
    let (delivered, _) =
        query(&runtime, prometheus.port(), "linerate_remote_write_samples_total{outcome=\"delivered\"} > 0");
    assert!(delivered > 0.0);
}

#[server_test(Program("promtool"))]
fn page_passes_the_check_of_prometheus() {
    let runtime = Runtime::new().expect("a runtime");
    let address = serve(&runtime, metrics());
    let page = runtime.block_on(get(&format!("http://{address}/metrics"))).expect("the page");
    let mut check = Command::new(program("promtool").expect("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    check.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("the page is read");
    let output = check.wait_with_output().expect("promtool ends");
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    // Rates of networks are in bit/s, as those of links. promtool asks for bytes.
    let problems: Vec<&str> = text.lines().filter(|line| !line.contains("use base unit \"bytes\"")).collect();
    assert!(problems.is_empty(), "{problems:?}\n{page}");
    assert_eq!(output.status.code(), Some(3), "promtool read the page and advises on its names only: {text}");
}

#[server_test(Program("promtool"))]
fn alert_rules_fire_as_their_tests_expect() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus");
    for arguments in [["check", "rules", "linerate.rules.yml"], ["test", "rules", "linerate.rules.test.yml"]] {
        let output = Command::new(program("promtool").expect("promtool"))
            .args(arguments)
            .current_dir(&folder)
            .output()
            .expect("promtool starts");
        assert!(output.status.success(), "{output:?}");
    }
}
