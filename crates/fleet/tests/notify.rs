//! Alerts that a fleet sends, to listeners of the test and to Alertmanager.

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, Uri};
use linerate_fleet::Endpoint;
use linerate_fleet::metrics::Metrics;
use linerate_fleet::notify::{Notifier, PageLinks, Target, TargetKind};
use linerate_schedule::{Alert, AlertKind, Subject};
use linerate_testsuite::servers::Alertmanager;
use linerate_testsuite::{server_test, wait_until};
use serde_json::Value;
use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// Time that a test waits at most for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn alert(id: &str) -> Alert {
    let since_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() - 60;
    Alert {
        id: id.to_owned(),
        kind: AlertKind::LevelChanged,
        subject: Subject::Pair { from: "a".into(), to: "b".into() },
        members: vec![("a".into(), "b".into())],
        labels: [("mesh".to_owned(), "core".to_owned()), ("zone.name".to_owned(), "z1".to_owned())].into(),
        summary: "a to b fell from 941 to 310 Mbit/s.".to_owned(),
        description: "Limited by a shaper.".to_owned(),
        since_unix_s,
        resolved_unix_s: None,
    }
}

fn resolved(id: &str) -> Alert {
    let alert = alert(id);
    Alert { resolved_unix_s: Some(alert.since_unix_s + 30), ..alert }
}

fn target(name: &str, kind: TargetKind, url: &str) -> Target {
    Target { name: name.to_owned(), kind, endpoint: Endpoint::new(url, None).expect("a URL") }
}

/// Serves statuses in their order, then 200. Returns the URL and a channel with path and body of each request.
async fn listener(statuses: &[u16]) -> (String, mpsc::UnboundedReceiver<(String, Value)>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let statuses = Arc::new(Mutex::new(VecDeque::from(statuses.to_vec())));
    let answer = move |uri: Uri, body: Bytes| {
        let status = statuses.lock().expect("no panic").pop_front().unwrap_or(200);
        let body = serde_json::from_slice(&body).expect("JSON");
        // The test may have ended.
        let _ = sender.send((uri.to_string(), body));
        async move { StatusCode::from_u16(status).expect("a status") }
    };
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", socket.local_addr().expect("an address"));
    tokio::spawn(axum::serve(socket, Router::new().fallback(answer)).into_future());
    (url, receiver)
}

async fn received(requests: &mut mpsc::UnboundedReceiver<(String, Value)>) -> (String, Value) {
    tokio::time::timeout(PATIENCE, requests.recv()).await.expect("a request in time").expect("a request")
}

#[tokio::test]
async fn unreachable_target_delays_no_other() {
    // A port with a listener that never accepts, and one without a listener.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_url = format!("http://{}/", silent.local_addr().expect("an address"));
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let (url, mut requests) = listener(&[]).await;
    let targets = vec![
        target("silent", TargetKind::Webhook, &silent_url),
        target("closed", TargetKind::Alertmanager, &format!("http://{closed}")),
        target("hook", TargetKind::Webhook, &url),
    ];
    let notifier = Notifier::start("lab", None, targets, Arc::new(Metrics::default())).expect("a notifier");
    for number in 0..20 {
        notifier.send(&alert(&number.to_string()));
    }
    for number in 0..20 {
        let (path, body) = received(&mut requests).await;
        assert_eq!((path.as_str(), body["id"].as_str()), ("/hook", Some(number.to_string().as_str())));
    }
    // The closed port answers at once, the silent one after the request's time.
    wait_for_error(&notifier, "alerts to closed: ").await;
    assert_eq!(notifier.finish(Duration::ZERO).await, 40);
}

async fn wait_for_error(notifier: &Notifier, start: &str) {
    let errors = async {
        while !notifier.last_errors().iter().any(|error| error.starts_with(start)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, errors).await.expect("an error in time");
}

#[tokio::test]
async fn overloaded_webhook_gets_the_alert_again_and_a_refusal_drops_it() {
    let (url, mut requests) = listener(&[503, 200, 404]).await;
    let metrics = Arc::new(Metrics::default());
    let links = PageLinks::new("https://view.example").expect("a URL");
    let targets = vec![target("hook", TargetKind::Webhook, &url)];
    let notifier = Notifier::start("lab", Some(&links), targets, Arc::clone(&metrics)).expect("a notifier");
    notifier.send(&alert("1"));
    notifier.send(&alert("2"));
    notifier.send(&resolved("1"));
    let mut bodies = Vec::new();
    for _ in 0..4 {
        let (_, body) = received(&mut requests).await;
        bodies
            .push((body["id"].as_str().expect("an id").to_owned(), body["status"].as_str().expect("text").to_owned()));
        assert_eq!(body["page"], "https://view.example/fleet/pair?from=a&to=b");
    }
    let expected = [("1", "firing"), ("1", "firing"), ("2", "firing"), ("1", "resolved")];
    assert_eq!(bodies, expected.map(|(id, status)| (id.to_owned(), status.to_owned())));
    assert_eq!(notifier.finish(PATIENCE).await, 0);
    let page = page(&metrics).await;
    for line in [
        "linerate_notifications_total{target=\"hook\",outcome=\"delivered\"} 2\n",
        "linerate_notifications_total{target=\"hook\",outcome=\"retried\"} 1\n",
        "linerate_notifications_total{target=\"hook\",outcome=\"refused\"} 1\n",
        "linerate_notification_queue{target=\"hook\"} 0\n",
        "linerate_alerts_firing{kind=\"level-changed\"} 1\n",
        "linerate_alerts_raised_total{kind=\"level-changed\"} 2\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
}

async fn page(metrics: &Arc<Metrics>) -> String {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/metrics", socket.local_addr().expect("an address"));
    tokio::spawn(axum::serve(socket, linerate_fleet::metrics::router(Arc::clone(metrics))).into_future());
    get(&url).await.expect("the page")
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

#[server_test(Program("prometheus-alertmanager"))]
fn alertmanager_shows_an_alert_until_it_is_resolved() {
    let runtime = Runtime::new().expect("a runtime");
    let server = Alertmanager::start();
    let url = format!("http://127.0.0.1:{}", server.port());
    let links = PageLinks::new("https://view.example").expect("a URL");
    let targets = vec![target("alertmanager", TargetKind::Alertmanager, &url)];
    // The server may not listen yet; the request is repeated.
    let notifier = runtime.block_on(async {
        Notifier::start("lab", Some(&links), targets, Arc::new(Metrics::default())).expect("a notifier")
    });
    notifier.send(&alert("1"));
    notifier.send(&Alert { subject: Subject::Link("oslo".to_owned()), ..alert("2") });
    let alerts = || -> Option<Vec<Value>> {
        let text = runtime.block_on(get(&format!("{url}/api/v2/alerts")))?;
        serde_json::from_str(&text).ok()
    };
    let shown = wait_until("both alerts", || alerts().filter(|alerts| alerts.len() == 2));
    let first = shown.iter().find(|alert| alert["labels"]["id"] == "1").expect("the first alert");
    assert_eq!(first["labels"]["alertname"], "linerate-level-changed");
    assert_eq!(first["labels"]["zone_name"], "z1");
    assert_eq!(first["annotations"]["summary"], "a to b fell from 941 to 310 Mbit/s.");
    assert_eq!(first["generatorURL"], "https://view.example/fleet/pair?from=a&to=b");
    assert_eq!(first["status"]["state"], "active");

    notifier.send(&resolved("1"));
    let shown = wait_until("one alert", || alerts().filter(|alerts| alerts.len() == 1));
    assert_eq!(shown[0]["labels"]["id"], "2");
    assert_eq!(runtime.block_on(notifier.finish(PATIENCE)), 0);
}
