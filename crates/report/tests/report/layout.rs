//! Where things stand on a page in a real browser: on the first screen, on a phone, on paper.

use crate::{copy, device, hostile, ladder, limits, nfs, over_time, recorded, sample, study};
use linerate_report::{Language, html};
use linerate_testsuite::servers::{OpenPage, chromium};
use linerate_testsuite::{server_test, wait_until};

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
    let mut pages: Vec<(String, String)> =
        records.iter().map(|(name, record)| (name.clone(), html(Language::English, record))).collect();
    for name in study::PUBLISHED {
        pages.push((name.to_owned(), linerate_report::study::html(Language::English, &study::published(name), None)));
    }
    pages
}

/// A browser, and the folder that its pages lie in.
struct Browser {
    folder: tempfile::TempDir,
    page: OpenPage,
}

impl Browser {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the pages");
        let page = OpenPage::open(folder.path(), "about:blank", (1_280, 900));
        Self { folder, page }
    }

    /// Opens the page at that place of the list; returns when it is whole.
    fn open(&mut self, (number, html): (usize, &str)) {
        // No two have one address, so that an answer is the page's that was asked for.
        let file = self.folder.path().join(format!("page{number}.html"));
        std::fs::write(&file, html).expect("the page is written");
        self.page.go(&format!("file://{}", file.display()));
        let is_there =
            format!("location.pathname.endsWith('/page{number}.html') && document.documentElement.dataset.ready");
        wait_until("the page is there", || self.page.evaluate(&is_there).as_str().map(str::to_owned));
    }
}

/// Engineers look before they read: the first picture stands on the first screen.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn the_first_picture_of_every_page_is_within_700_pixels() {
    let mut browser = Browser::new();
    for (number, (name, html)) in pages().iter().enumerate() {
        browser.open((number, html));
        let top = browser.page.evaluate("document.querySelector('figure').getBoundingClientRect().top");
        let top = top.as_f64().expect("a number");
        assert!((1.0..700.0).contains(&top), "{name}: the first picture begins at {top} pixels");
    }
}

/// Pages for a phone, and for a wide window.
const WIDTHS: [u32; 2] = [390, 1_280];

/// Every drawing that is shown: how far it reaches past its place, and how small its smallest text is, both in pixels; then the texts
/// that lie outside their drawing.
const DRAWN: &str = "(() => {
    const shown = [...document.querySelectorAll('.drawing svg')].filter((svg) => svg.getClientRects().length > 0);
    const measured = shown.map((svg) => {
        const [own, place] = [svg, svg.parentNode].map((one) => one.getBoundingClientRect());
        const texts = [...svg.querySelectorAll('text')];
        const scale = own.width / svg.viewBox.baseVal.width;
        const sizes = texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale);
        const outside = texts.filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < own.left - 1 || box.right > own.right + 1;
        });
        return [own.right - place.right, Math.min(99, ...sizes), outside.map((text) => text.textContent).join('; ')];
    });
    return JSON.stringify([measured, document.documentElement.scrollWidth - innerWidth]);
})()";

/// Charts are legible on a phone without being moved sideways, and so are they in a window.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn charts_fit_a_phone_and_can_be_read() {
    let mut browser = Browser::new();
    let mut all = pages();
    let japanese = Language::Japanese;
    all.extend(over_time::all().map(|(name, record)| (name.to_owned(), html(Language::English, &record))));
    all.push(("time of CPUs".to_owned(), html(Language::English, &over_time::processors())));
    all.push(("limits".to_owned(), linerate_report::limits::html(Language::English, &limits::overview())));
    all.push(("demonstration, Japanese".to_owned(), html(japanese, &sample::demonstration())));
    all.push(("device, Japanese".to_owned(), html(japanese, &device::record())));
    for name in ["kdd-1993", "l3switch-2008"] {
        let page = linerate_report::study::html(japanese, &study::published(name), None);
        all.push((format!("{name}, Japanese"), page));
    }
    all.extend(hostile::pages());
    for (number, (name, html)) in all.iter().enumerate() {
        browser.open((number, html));
        for width in WIDTHS {
            browser.page.resize((width, 900));
            let seen = browser.page.evaluate(DRAWN);
            let seen = seen.as_str().expect("text");
            let (drawings, beyond): (Vec<(f64, f64, String)>, f64) = serde_json::from_str(seen).expect("JSON");
            assert!(!drawings.is_empty() && beyond <= 0.0, "{name} at {width}: {beyond} pixels beyond the window");
            for (past, smallest, outside) in drawings {
                assert!(past < 1.0, "{name} at {width}: a chart reaches {past} pixels past its place");
                assert!(smallest >= 10.0, "{name} at {width}: a text of {smallest} pixels");
                assert_eq!(outside, "", "{name} at {width}: texts outside their chart");
            }
        }
    }
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
    browser.open((0, &html(Language::English, &recorded::record("stream-tcp"))));
    browser.page.print_media();
    for (section, is_shown) in [("caveats", true), ("hosts", false), ("path", true)] {
        let height =
            format!("document.querySelector('[aria-labelledby={section}]').getBoundingClientRect().height > 0");
        assert_eq!(browser.page.evaluate(&height).as_bool(), Some(is_shown), "{section}");
    }
    let tables = "[...document.querySelectorAll('figure details')].every((one) => one.getClientRects().length == 0)";
    assert_eq!(browser.page.evaluate(tables).as_bool(), Some(true));
}
