//! The table of records: columns, figures, and what a row shows if a figure is missing.

use crate::place::{TestView, host, of_link, record, stream_record, trial};
use linerate_model::{Confidence, Limit, RunSummary};
use linerate_report::Language;
use linerate_store::Ending;
use linerate_testsuite::servers::OpenPage;
use linerate_testsuite::{server_test, wait_until};

/// The columns of a row, by class.
const COLUMNS: [&str; 8] = ["tick", "when", "what", "figure", "share", "limit", "change", "line"];

/// Returns the content of each cell in a part of a table, as class and markup.
fn cells(part: &str) -> Vec<(&str, &str)> {
    let starts = part.match_indices("<td class=\"").chain(part.match_indices("<th class=\""));
    let mut starts: Vec<usize> = starts.map(|(at, _)| at + "<td class=\"".len()).collect();
    starts.sort_unstable();
    let cell = |at: usize| {
        let (class, rest) = part[at..].split_once('"').expect("a class ends");
        let (_, rest) = rest.split_once('>').expect("a cell begins");
        let end = rest.find("</td>").into_iter().chain(rest.find("</th>")).min().expect("a cell ends");
        (class, &rest[..end])
    };
    starts.into_iter().map(cell).collect()
}

/// Returns the visible text of some markup.
fn text(markup: &str) -> String {
    let parts = markup.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the cell of a column in the row of record `id`, as markup.
fn cell<'a>(page: &'a str, id: &str, column: &str) -> &'a str {
    let row = page.split("<tr>").find(|row| row.contains(&format!("value=\"{id}\""))).expect("a row");
    cells(row).into_iter().find(|(class, _)| *class == column).expect("a cell").1
}

fn headings(language: Language) -> Vec<String> {
    let place = TestView::speaking(language);
    place.keep(&stream_record("run", 1, &[941_000_000]));
    let page = place.get("").body;
    let head = page.split("<thead>").nth(1).and_then(|rest| rest.split("</thead>").next()).expect("a head");
    assert_eq!(head.matches("scope=\"col\"").count(), COLUMNS.len());
    let columns = cells(head);
    assert_eq!(columns.iter().map(|(class, _)| *class).collect::<Vec<_>>(), COLUMNS);
    let row = page.split("<tr>").nth(2).expect("a row");
    assert_eq!(cells(row).iter().map(|(class, _)| *class).collect::<Vec<_>>(), COLUMNS);
    columns.iter().map(|(_, content)| text(content)).collect()
}

#[test]
fn columns_are_in_order_in_both_languages() {
    let english = ["Compare", "When", "What", "Figure", "Of link", "Limit", "Change", "Last runs"];
    assert_eq!(headings(Language::English), english);
    for heading in headings(Language::Japanese) {
        assert!(!heading.is_empty() && !heading.chars().any(|c| c.is_ascii_alphabetic()), "{heading}");
    }
}

#[test]
fn a_row_has_each_fact_in_its_cell() {
    let place = TestView::new();
    let mut run = of_link(
        stream_record("run", 1_795_253_405_000_000_000, &[941_000_000, 941_000_000, 941_000_000]),
        1_000_000_000,
    );
    run.hosts = vec![host("alpha", "Linux 6.12"), host("<b>beta", "Linux 6.12")];
    place.keep(&run);
    let page = place.get("").body;
    let shown = |column| text(cell(&page, "run", column));
    assert_eq!(shown("when"), "2026-11-21 09:30 run");
    assert!(cell(&page, "run", "when").contains("title=\"2026-11-21 09:30:05\""));
    assert_eq!(shown("what"), "stream tcp alpha, &lt;b&gt;beta linerate stream alpha beta");
    assert!(cell(&page, "run", "what").contains("title=\"linerate stream alpha beta\""));
    assert!(cell(&page, "run", "figure").contains("<strong>941 Mbit/s</strong>"));
    assert_eq!(shown("share"), "94.1 %");
    assert!(cell(&page, "run", "share").contains("width:94.1%"));
    assert_eq!(shown("limit"), "wire \u{25cf}\u{25cf}\u{25cf} high");
    assert_eq!((shown("change"), shown("line")), ("\u{2013}".to_owned(), "\u{2013}".to_owned()), "the first run");
}

#[test]
fn an_unclear_limit_differs_from_one_of_low_confidence() {
    let place = TestView::new();
    for (id, limit) in [("unclear", Limit::CannotTell), ("low", Limit::Shaper)] {
        let mut run = stream_record(id, 1, &[941_000_000]);
        (run.results[0].verdict.limit, run.results[0].verdict.confidence) = (limit, Confidence::Low);
        place.keep(&run);
    }
    let page = place.get("").body;
    assert_eq!(text(cell(&page, "unclear", "limit")), "? cannot tell");
    assert_eq!(text(cell(&page, "low", "limit")), "shaper \u{25cf}\u{25cb}\u{25cb} low");
}

/// No figure, one of a later version, and one below zero.
#[test]
fn a_missing_figure_is_not_shown_as_zero() {
    let place = TestView::new();
    place.keep(&record("none", 1, "linerate transact alpha beta"));
    for (id, start) in [("later", 2), ("negative", 3)] {
        place.keep(&of_link(stream_record(id, start, &[941_000_000]), 1_000_000_000));
    }
    let connection = rusqlite::Connection::open(place.store.file().expect("a file")).expect("open");
    let changed = r#"UPDATE run SET headline = '{"result":"x","quantity":"colour"}', verdict = '{"limit":"moon"}' WHERE id = 'later';
                     UPDATE run SET headline = json_set(headline, '$.value', -5.0) WHERE id = 'negative'"#;
    connection.execute_batch(changed).expect("written");
    let page = place.get("").body;
    for id in ["none", "later", "negative"] {
        let figure = text(cell(&page, id, "figure"));
        assert!(figure.starts_with("no figure") && !figure.contains('0'), "{id}: {figure}");
        for column in ["share", "change", "line"] {
            assert_eq!(text(cell(&page, id, column)), "\u{2013}", "{id}: {column}");
        }
    }
    assert_eq!(text(cell(&page, "later", "limit")), "\u{2013}");
}

#[test]
fn a_change_has_a_sign_and_a_mark() {
    let place = TestView::new();
    for (number, rate) in (1..).zip([800_000_000, 880_000_000, 748_000_000, 748_000_000, 740_520_000]) {
        place.keep(&stream_record(&format!("run-{number}"), number, &[rate, rate, rate]));
    }
    let page = place.get("").body;
    for (id, class, shown) in [
        ("run-2", "better", "\u{25b2} +10.0 %"),
        ("run-3", "worse", "\u{25bc} -15.0 %"),
        ("run-4", "steady", "= 0.0 %"),
        ("run-5", "steady", "\u{25bc} -1.0 %"),
    ] {
        let change = cell(&page, id, "change");
        assert_eq!(text(change), shown, "{id}");
        assert!(change.starts_with(&format!("<a class=\"{class}\" href=\"compare?")), "{change}");
    }
    assert!(cell(&page, "run-3", "change").contains("title=\"worse: -15.0 % against the run before\""));
    // Five runs in a picture for ten: the newest bar is at the right end.
    let line = cell(&page, "run-5", "line");
    assert!(line.contains("aria-label=\"5 runs of this command, to 741 Mbit/s\""), "{line}");
    assert!(
        line.contains("d=\"M50 24v-21.8h7v21.8zM60 24v-24.0h7v24.0z") && line.contains("d=\"M90 24v-20.2h7v20.2z\""),
        "{line}"
    );
}

#[test]
fn a_state_stands_in_the_place_of_the_figure() {
    for (language, words) in
        [(Language::English, ["running", "interrupted", "failed"]), (Language::Japanese, ["実行中", "中断", "失敗"])]
    {
        let place = TestView::speaking(language);
        let mut open = Vec::new();
        for (id, ending) in
            [("running", None), ("interrupted", Some(Ending::Interrupted)), ("failed", Some(Ending::Failed))]
        {
            let run = stream_record(id, 1, &[941_000_000]);
            let mut live = place.store.begin(&run).expect("begin");
            live.trial(&trial(941_000_000), &RunSummary::of(&run.results)).expect("trial");
            match ending {
                Some(ending) => live.end(&run, ending).expect("end"),
                None => open.push(live),
            }
        }
        let page = place.get("").body;
        for (id, word) in ["running", "interrupted", "failed"].into_iter().zip(words) {
            let figure = cell(&page, id, "figure");
            assert!(figure.starts_with("<strong class=\"state"), "{figure}");
            assert_eq!(text(figure), format!("{word} 941 Mbit/s"), "{id}");
        }
    }
}

#[test]
fn an_unknown_kind_is_refused() {
    let place = TestView::new();
    place.keep(&stream_record("run", 1, &[941_000_000]));
    let page = place.get("?kind=strem");
    assert_eq!(page.status, 400);
    assert!(page.body.contains("no record of the kind `strem`: choose a kind of the list"), "{}", page.body);
    assert!(!page.body.contains("No record fits"));
}

/// Figures are aligned, and the keys that the hint names move, open and search.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn the_table_is_aligned_and_used_by_keyboard() {
    let place = TestView::new();
    for number in 1..=3 {
        place.keep(&stream_record(&format!("run-{number}"), number, &[941_000_000]));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut open = OpenPage::open(folder.path(), &place.url(""), (1280, 800));
    let mut page = |what: &str, expression: &str| {
        wait_until(what, || open.evaluate(expression).as_bool().filter(|is_so| *is_so));
    };
    page("the script is ready", "document.documentElement.dataset.ready === 'yes'");
    page("the hint is shown", "document.getElementById('keys').checkVisibility()");
    page(
        "filters are one line",
        "new Set([...document.querySelectorAll('.filter label')].map((one) => one.getBoundingClientRect().top)).size === 1",
    );
    page(
        "filters are shown without a fold",
        "document.querySelector('.filter button').checkVisibility({ contentVisibilityAuto: true })",
    );
    let style = "getComputedStyle(document.querySelector('tbody td.figure'))";
    page(
        "figures are aligned",
        &format!("{style}.textAlign === 'right' && {style}.fontVariantNumeric === 'tabular-nums'"),
    );
    page("figures are bold", "getComputedStyle(document.querySelector('td.figure strong')).fontWeight >= 600");
    let press = |key: &str| {
        format!(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true, cancelable: true }}))"
        )
    };
    let at = |id: &str| format!("document.activeElement.search === '?id={id}'");
    for (keys, id) in [
        (&["j"][..], "run-3"),
        (&["j", "ArrowDown"], "run-1"),
        (&["j"], "run-1"),
        (&["k"], "run-2"),
        (&["ArrowUp"], "run-3"),
    ] {
        let pressed: Vec<String> = keys.iter().map(|key| press(key)).collect();
        // Once, and not until it is so.
        page("keys are pressed", &format!("{}, true", pressed.join(", ")));
        page(&format!("{keys:?} leads to {id}"), &at(id));
    }
    page("a slash is pressed", &format!("{}, true", press("/")));
    page("the search has the focus", "document.activeElement.name === 'text'");
    page("letters are typed there", &format!("{}, document.activeElement.name === 'text'", press("j")));
}

/// On a phone filters are folded, and nothing is wider than the screen.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_phone_shows_cards_and_folds_the_filters() {
    let place = TestView::new();
    let mut run = of_link(stream_record("run", 1, &[941_000_000]), 1_000_000_000);
    run.command.push("--very-long-option".repeat(20));
    place.keep(&run);
    let folder = tempfile::tempdir().expect("a folder");
    let mut open = OpenPage::open(folder.path(), &place.url(""), (1280, 800));
    open.resize((390, 800));
    let mut page = |what: &str, expression: &str| {
        wait_until(what, || open.evaluate(expression).as_bool().filter(|is_so| *is_so));
    };
    page("it is loaded", "document.documentElement.dataset.ready === 'yes' && innerWidth === 390");
    page(
        "filters are folded",
        "!document.querySelector('.filter button').checkVisibility({ contentVisibilityAuto: true })",
    );
    page("the fold can be opened", "document.querySelector('.filters > summary').checkVisibility()");
    page("nothing is cut off", "document.documentElement.scrollWidth <= 390");
    for (column, is_shown) in [("figure", true), ("limit", true), ("share", false), ("change", false), ("line", false)]
    {
        page(column, &format!("document.querySelector('td.{column}').checkVisibility() === {is_shown}"));
    }
}
