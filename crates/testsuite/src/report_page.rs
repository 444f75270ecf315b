//! Pages of reports in a real browser, and the charts of a page as files.

use crate::servers::{OpenPage, chromium};
use crate::wait_until;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Runs the rules on the page as it is, whose charts and folds are open or not, and keeps the faults as JSON.
const RUN: &str = "document.querySelectorAll('details').forEach((fold) => (fold.open = FOLDS));
    axe.run(document, { preload: false }).then((found) => (window.faults = JSON.stringify(found.violations.map(
        (fault) => [fault.id, fault.impact, fault.nodes.map((node) => node.html).slice(0, 3)]))));";

/// Returns the serious faults of a page in a window of this width. `script` is [`axe`](crate::servers::axe).
pub fn axe_faults(script: &str, page: &str, width: u32, are_open: bool) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let file = folder.path().join("page.html");
    let run = RUN.replace("FOLDS", if are_open { "true" } else { "false" });
    let probe = format!("<script>{script}</script><script>{run}</script></body>");
    std::fs::write(&file, page.replace("</body>", &probe)).expect("the page is written");
    let mut open = OpenPage::open(folder.path(), &format!("file://{}", file.display()), (width, 900));
    let found = wait_until("axe has run", || open.evaluate("window.faults").as_str().map(str::to_owned));
    let found: Vec<Value> = serde_json::from_str(&found).expect("JSON");
    let serious = |fault: &&Value| matches!(fault[1].as_str(), Some("serious" | "critical"));
    found.iter().filter(serious).map(Value::to_string).collect()
}

/// Returns the document after its scripts ran, and what was written to the browser's console.
pub fn opened(page: &str) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let file = folder.path().join("report.html");
    std::fs::write(&file, page).expect("the page is written");
    chromium::dump(folder.path(), &format!("file://{}", file.display()), Duration::from_secs(2), &[])
}

/// A browser, and the folder of its pages.
pub struct Browser {
    folder: tempfile::TempDir,
    /// The page that is open.
    pub page: OpenPage,
}

impl Browser {
    /// Starts a browser.
    #[expect(clippy::new_without_default, reason = "starts a program")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the pages");
        let page = OpenPage::open(folder.path(), "about:blank", (1_280, 900));
        Self { folder, page }
    }

    /// Opens the page `number` of a list; returns when it is whole.
    pub fn open(&mut self, number: usize, html: &str) {
        // No two have one address, so that an answer is the page's that was asked for.
        let file = self.folder.path().join(format!("page{number}.html"));
        std::fs::write(&file, html).expect("the page is written");
        self.page.go(&format!("file://{}", file.display()));
        let is_there =
            format!("location.pathname.endsWith('/page{number}.html') && document.documentElement.dataset.ready");
        wait_until("the page is there", || self.page.evaluate(&is_there).as_str().map(str::to_owned));
    }
}

/// Asserts that the first picture of each page, given with its name, stands on the first screen.
///
/// # Panics
/// One does not.
pub fn assert_first_picture_is_high(pages: &[(String, String)]) {
    let mut browser = Browser::new();
    for (number, (name, html)) in pages.iter().enumerate() {
        browser.open(number, html);
        let top = browser.page.evaluate("document.querySelector('figure').getBoundingClientRect().top");
        let top = top.as_f64().expect("a number");
        assert!((1.0..700.0).contains(&top), "{name}: the first picture begins at {top} pixels");
    }
}

/// Pages for a phone, and for a wide window.
const WIDTHS: [u32; 2] = [390, 1_280];

/// Every drawing that is shown: how far it reaches past its place, and how small its smallest text is, both in pixels;
/// then the texts that lie outside their drawing.
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

/// Asserts that the charts of each page, given with its name, fit a phone and a window, and can be read there.
///
/// # Panics
/// One does not fit.
pub fn assert_charts_fit(pages: &[(String, String)]) {
    let mut browser = Browser::new();
    for (number, (name, html)) in pages.iter().enumerate() {
        browser.open(number, html);
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

/// Asserts that pictures, by name, are those of a page, and that each is whole: with its title, its legend and its
/// colours.
///
/// # Panics
/// One is not.
pub fn assert_pictures_of_page(what: &str, page: &str, pictures: &[(String, String)]) {
    assert_eq!(pictures.len(), page.matches("<figure>").count(), "{what}: as many as on the page");
    let names: BTreeSet<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), pictures.len(), "{what}: each has a name of its own");
    for (index, (name, svg)) in pictures.iter().enumerate() {
        let safe = name.chars().all(|c| c.is_alphanumeric() || c == '-');
        assert!(safe && name.starts_with(&format!("{}-", index + 1)), "{what}: {name}");
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>"),
            "{what}: {name}"
        );
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count(), "{what}: {name}");
        assert!(svg.contains("<title>") && svg.contains("class=\"heading\""), "{what}: {name}");
        // Most programs that read SVG know no variables, and no style sheet but its own.
        for missing in ["var(", "height=\"0\"", "NaN", "http://www.w3.org/1999/xhtml"] {
            assert!(!svg.contains(missing), "{what}: {name}: {missing}");
        }
    }
}
