//! The trend of a command.

use crate::place::{TestView, host, of_link, stream_record};

const DAY: u64 = 86_400_000_000_000;
const START: u64 = 1_795_253_400_000_000_000;

/// Keeps a run a day, each of three repeats around a rate in Mbit/s; from run 20 on of another version and kernel.
pub(crate) fn keep(place: &TestView, rates: &[u64]) {
    for (day, rate) in (0_u64..).zip(rates) {
        let around = [rate * 1_000_000, rate * 1_000_000 + 400_000, rate * 1_000_000 - 300_000];
        let mut run = of_link(stream_record(&format!("run-{day:02}"), START + day * DAY, &around), 1_000_000_000);
        run.version = if day < 20 { "0.1.0" } else { "0.2.0" }.into();
        run.hosts = vec![host("alpha", if day < 20 { "Linux 6.12.1" } else { "Linux 6.18.44" })];
        place.keep(&run);
    }
}

/// 20 runs near 941 Mbit/s and 12 near 800.
pub(crate) fn stepped() -> Vec<u64> {
    (0..32).map(|day| if day < 20 { 940 + day % 3 } else { 799 + day % 3 }).collect()
}

/// The marks in the drawing for wide screens. That for narrow ones follows it.
fn marks(page: &str) -> usize {
    let wide = page.split("<div class=\"drawing narrow\">").next().unwrap_or_default();
    wide.matches("class=\"mark\"").count()
}

#[test]
fn a_trend_shows_the_change_and_what_changed_with_it() {
    let place = TestView::new();
    keep(&place, &stepped());
    let page = place.get("trend?id=run-05");
    assert_eq!(page.status, 200);
    let answer = "the level changed at 2026-12-11 09:30, 941 Mbit/s \u{2192} 800 Mbit/s (-15.0 %).";
    assert!(page.at(answer) < page.at("<svg"), "the answer comes before the picture");
    assert_eq!(marks(&page.body), 32 + 2, "each run, the change, and the other version");
    let compare = "href=\"compare?with=run-19&amp;with=run-20\"";
    assert!(page.at("linerate 0.1.0 \u{2192} 0.2.0, alpha: Linux 6.12.1 \u{2192} Linux 6.18.44") < page.at(compare));
    assert!(page.at("record?id=run-31") < page.at("record?id=run-00"), "newest first");
    assert!(page.body.contains("at most 1 % are said to have one"), "the rate of false alarms is stated");
    assert!(!page.body.contains("<script>") && page.body.contains("<details>"), "it works without its script");

    assert!(place.get("").body.contains("href=\"trend?id=run-31\""), "the list leads to it");
    assert!(place.get("record?id=run-31").body.contains("href=\"trend?id=run-31\""), "a record does");
    assert_eq!(place.get("trend?id=nosuch").status, 404);
    assert_eq!(place.get("trend").status, 404);
}

#[test]
fn few_runs_are_told_in_words() {
    let place = TestView::new();
    place.keep(&stream_record("empty", START, &[]));
    let empty = place.get("trend?id=empty");
    assert!(empty.body.contains("No finished run of this command has a firm figure yet."), "{}", empty.body);
    keep(&place, &[941]);
    let one = place.get("trend?id=run-00");
    assert!(one.body.contains("one run, 941 Mbit/s") && !one.body.contains("<svg"), "{}", one.body);
    let place = TestView::new();
    keep(&place, &[941, 800]);
    let two = place.get("trend?id=run-00");
    assert!(two.body.contains("2 runs, 800 to 941 Mbit/s, the newest 800 Mbit/s"), "{}", two.body);
    assert!(
        two.body.contains("<svg") && two.body.contains("from 12 runs on") && !two.body.contains("Changes of level")
    );
}

#[test]
fn only_the_newest_runs_of_many_are_drawn() {
    let place = TestView::new();
    let run = stream_record("run", START, &[941_000_000]);
    place.keep(&run);
    let connection = rusqlite::Connection::open(place.store.file().expect("a file")).expect("open");
    connection
        .execute_batch(
            "CREATE TEMP TABLE one AS SELECT * FROM run;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO run SELECT number + i, id || i, started_unix_ns + i, changed_unix_ns, command, kind, search_text, study,
                    grp, state, locked, boot, results, trials, attempts, headline, verdict, changed, command_key, limit_name
             FROM one, n;
             INSERT OR IGNORE INTO plan SELECT number, '{}' FROM run",
        )
        .expect("filled");
    let page = place.get("trend?id=run300");
    assert!(page.body.contains("Only the newest 300 runs are shown."), "{}", page.body);
    assert_eq!(marks(&page.body), 300);
    assert_eq!(page.body.matches("href=\"record?").count(), 50);
}

/// The list shows how much of the link a figure is.
#[test]
fn the_list_shows_the_share_of_the_link() {
    let place = TestView::new();
    keep(&place, &[941]);
    place.keep(&stream_record("unknown", 1, &[941_000_000]));
    let list = place.get("").body;
    assert_eq!(list.matches(">94.1 %<").count(), 1, "{list}");
    assert_eq!(list.matches("class=\"meter\"").count(), 1, "no share is shown if the link is not known");
}
