//! The page in a real browser: its script runs, nothing complains, a point can be focused.
//!
//! Needs Chromium (Debian package `chromium`). Without it the tests are skipped aloud, and fail where CI=true.

use crate::sample;

use std::path::{Path, PathBuf};
use std::process::Command;

fn chromium() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "Chromium is missing: apt-get install chromium");
        eprintln!("SKIPPED: report in a browser: Chromium is not installed; apt-get install chromium");
    }
    found
}

/// The document after its scripts ran, and what was written to the browser's console.
fn opened(program: &Path, page: &str) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let file = folder.path().join("report.html");
    std::fs::write(&file, page).expect("the page is written");
    let output = Command::new("timeout")
        .args(["--kill-after=5", "90"])
        .arg(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(["--window-size=1200,1600", "--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("Chromium starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Chromium ended with {}: {said}", output.status);
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

#[test]
fn the_script_runs_and_nothing_complains() {
    let Some(program) = chromium() else { return };
    let (document, console) = opened(&program, &linerate_report::html(&sample::demonstration()));
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    assert!(document.contains("Download the record (JSON)"));
    assert_eq!(document.matches("<figure>").count(), 4);
    assert_eq!(console, Vec::<String>::new());
}

#[test]
fn a_focused_point_shows_its_figures_and_arrow_keys_go_on() {
    let Some(program) = chromium() else { return };
    let probe = "<script>
        const point = document.querySelectorAll('svg .s0 .point')[0];
        point.focus();
        document.body.dataset.first = document.getElementById('tip').textContent;
        point.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
        document.body.dataset.second = document.getElementById('tip').textContent;
        document.body.dataset.hidden = document.getElementById('tip').hidden;
    </script></body>";
    let page = linerate_report::html(&sample::udp_sweep()).replace("</body>", probe);
    let (document, console) = opened(&program, &page);
    for shown in [
        "data-first=\"udp 64: 277 Mbit/s payload",
        "data-second=\"udp 512: 549 Mbit/s payload",
        "data-hidden=\"false\"",
    ] {
        assert!(document.contains(shown), "{shown}: {console:?}");
    }
}

/// The page forbids itself to fetch; and a complaint would be seen, which the first test relies on.
#[test]
fn a_fetch_from_elsewhere_is_refused_and_seen() {
    let Some(program) = chromium() else { return };
    let page = linerate_report::html(&sample::udp_sweep()).replace("</body>", "<img src=\"file:///x.png\"></body>");
    let (_, console) = opened(&program, &page);
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");
}

#[test]
fn a_ladder_is_drawn_and_nothing_complains() {
    let Some(program) = chromium() else { return };
    let (document, console) = opened(&program, &linerate_report::html(&crate::ladder::record()));
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    // The ladder, and its streams.
    assert_eq!(document.matches("<figure>").count(), 2);
    assert_eq!(console, Vec::<String>::new());
}

#[test]
fn a_device_test_is_drawn_and_nothing_complains() {
    let Some(program) = chromium() else { return };
    let (document, console) = opened(&program, &linerate_report::html(&crate::device::record()));
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    assert_eq!(document.matches("<figure>").count(), 6);
    assert_eq!(console, Vec::<String>::new());
}
