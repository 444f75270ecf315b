//! Where things stand on a page in a real browser: on the first screen, on a phone, on paper.

use crate::{copy, device, hostile, ladder, limits, nfs, over_time, recorded, sample};
use linerate_report::{Language, html};
use linerate_testsuite::report_page::{Browser, assert_charts_fit, assert_first_picture_is_high};
use linerate_testsuite::server_test;
use linerate_testsuite::servers::chromium;

/// A page of every kind, by name.
fn pages() -> Vec<(String, String)> {
    let recorded = ["stream-tcp", "stream-udp", "stream-proven", "copy-proven", "device-throughput", "transact", "nfs"];
    let mut records: Vec<(String, linerate_model::Record)> =
        recorded.iter().map(|name| ((*name).to_owned(), recorded::record(name))).collect();
    records.extend([
        ("ladder".to_owned(), ladder::record()),
        ("device".to_owned(), device::record()),
        ("not firm".to_owned(), device::not_firm()),
        ("curve".to_owned(), nfs::record()),
        ("copy".to_owned(), copy::record()),
        ("demonstration".to_owned(), sample::demonstration()),
    ]);
    records.iter().map(|(name, record)| (name.clone(), html(Language::English, record))).collect()
}

/// Engineers look before they read: the first picture stands on the first screen.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn the_first_picture_of_every_page_is_within_700_pixels() {
    assert_first_picture_is_high(&pages());
}

/// Charts are legible on a phone without being moved sideways, and so are they in a window.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn charts_fit_a_phone_and_can_be_read() {
    let mut all = pages();
    let japanese = Language::Japanese;
    all.extend(over_time::all().map(|(name, record)| (name.to_owned(), html(Language::English, &record))));
    all.push(("time of CPUs".to_owned(), html(Language::English, &over_time::processors())));
    all.push(("limits".to_owned(), linerate_report::limits::html(Language::English, &limits::overview())));
    all.push(("demonstration, Japanese".to_owned(), html(japanese, &sample::demonstration())));
    all.push(("device, Japanese".to_owned(), html(japanese, &device::record())));
    all.extend(hostile::pages());
    assert_charts_fit(&all);
}

/// The pages that a report has on paper.
fn printed(html: &str) -> usize {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let file = folder.path().join("page.html");
    std::fs::write(&file, html).expect("the page is written");
    chromium::printed_pages(folder.path(), &format!("file://{}", file.display()))
}

/// One stream takes two pages, whatever was sampled of it, in either language.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_stream_is_printed_on_two_pages() {
    let mut records = ["stream-tcp", "stream-udp", "stream-proven"].map(|name| (name, recorded::record(name))).to_vec();
    records.push(("over time", over_time::stream()));
    for (name, record) in &records {
        for lang in [Language::English, Language::Japanese] {
            let pages = printed(&html(lang, record));
            assert!((1..=2).contains(&pages), "{name} in {lang:?}: {pages} pages");
        }
    }
}

/// The demonstration is a ladder: streams, transactions, RPC and NFS, each with charts over time, and raw frames.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_demonstration_is_printed_on_ten_pages() {
    let mut records = ["transact", "rpc", "nfs", "frames"].map(recorded::record).to_vec();
    records.extend([ladder::record(), over_time::stream(), over_time::requests(), over_time::lossy()]);
    let pages = printed(&html(Language::English, &records));
    assert!((3..=10).contains(&pages), "{pages} pages");
}

/// The heading of the doubts names them, also on paper, where nothing folded can be opened.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn doubts_are_printed_and_what_is_folded_is_not() {
    let mut browser = Browser::new();
    browser.open(0, &html(Language::English, &recorded::record("stream-tcp")));
    browser.page.print_media();
    for (section, is_shown) in [("caveats", true), ("hosts", false), ("path", true)] {
        let height =
            format!("document.querySelector('[aria-labelledby={section}]').getBoundingClientRect().height > 0");
        assert_eq!(browser.page.evaluate(&height).as_bool(), Some(is_shown), "{section}");
    }
    let tables = "[...document.querySelectorAll('figure details')].every((one) => one.getClientRects().length == 0)";
    assert_eq!(browser.page.evaluate(tables).as_bool(), Some(true));
}
