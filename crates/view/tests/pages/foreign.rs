//! Names and records that no program of this version writes: each page shows them, or says in words why not.

use crate::place::{TestView, host, of_link, stream_record};

/// Markup, a text that turns the direction of writing, Arabic, and 255 characters.
const NAMES: [&str; 3] = ["<img src=x onerror=alert(1)>&\"'", "\u{202e}evil\u{2066}", "\u{645}\u{636}\u{64a}\u{641}"];

#[test]
fn names_of_hosts_break_no_page() {
    let long = "h".repeat(255);
    for name in NAMES.into_iter().chain([long.as_str()]) {
        let place = TestView::new();
        for (number, system) in [(1, "Linux 6.12"), (2, name)] {
            let mut run =
                of_link(stream_record(&format!("run-{number}"), number, &[94_000_000, 94_100_000]), 100_000_000);
            run.hosts = vec![host(name, system), host("beta", "Linux 6.12")];
            run.command = ["linerate", "stream", name, "beta"].map(str::to_owned).into();
            place.keep(&run);
        }
        for page in ["", "record?id=run-1", "compare?with=run-1&with=run-2", "trend?id=run-2", "?text=beta"] {
            let answer = place.get(page);
            assert_eq!(answer.status, 200, "{page} with {name}");
            // The record itself, at the end of a report, is data.
            let shown = answer.body.split("id=\"record\"").next().expect("a beginning");
            assert!(!shown.contains("<img src=x"), "{page} with {name}: {shown}");
            assert!(!shown.contains(['\u{202e}', '\u{2066}']), "{page} turns the direction of writing");
            assert!(shown.contains("94.1 Mbit/s") || shown.contains("94.05 Mbit/s") || shown.contains("94 "), "{page}");
        }
    }
}

#[test]
fn a_record_of_a_later_version_is_listed_and_refused_in_words() {
    let place = TestView::new();
    for (id, start) in [("known", 1), ("later", 2)] {
        place.keep(&stream_record(id, start, &[941_000_000, 941_000_000]));
    }
    let connection = rusqlite::Connection::open(place.store.file().expect("a file")).expect("open");
    let later = r#"UPDATE run SET headline = '{"result":"x","quantity":"colour"}', verdict = '{"limit":"moon"}' WHERE id = 'later';
                   UPDATE plan SET body = json_set(body, '$.schema', 'linerate.record/99')
                   WHERE run = (SELECT number FROM run WHERE id = 'later')"#;
    connection.execute_batch(later).expect("written");
    let list = place.get("");
    assert!(
        list.status == 200 && list.body.contains("record?id=later") && list.body.contains("941 Mbit/s"),
        "{}",
        list.body
    );
    for page in ["record?id=later", "compare?with=known&with=later"] {
        let refused = place.get(page);
        assert_eq!(refused.status, 500, "{page}");
        for part in ["record later", "linerate.record/99", "use linerate 0.1.0, which wrote it", "href=\"./\""] {
            assert!(refused.body.contains(part), "{part}: {}", refused.body);
        }
    }
    let trend = place.get("trend?id=later");
    assert!(trend.status == 200 && trend.body.contains("one run, 941 Mbit/s"), "{}", trend.body);
}
