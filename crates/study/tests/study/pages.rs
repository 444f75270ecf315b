//! Pages of studies: in a real browser, by the rules of axe-core, on a phone, and their charts as files.

use crate::published::{PUBLISHED, published, published_in_japanese};
use linerate_report::Language;
use linerate_study::{html, pictures};
use linerate_testsuite::report_page::{
    assert_charts_fit, assert_first_picture_is_high, assert_pictures_of_page, axe_faults, opened,
};
use linerate_testsuite::server_test;
use linerate_testsuite::servers::axe;

/// The English page of each study, by name.
fn pages() -> Vec<(String, String)> {
    PUBLISHED.map(|name| (name.to_owned(), html(Language::English, &published(name), None))).into()
}

/// The Japanese page of a study, by name.
fn japanese(name: &str) -> (String, String) {
    (format!("{name}, Japanese"), html(Language::Japanese, &published_in_japanese(name), None))
}

#[server_test(Program("chromium|chromium-browser|google-chrome"), Program("npm"))]
fn no_page_has_a_serious_fault() {
    let script = axe();
    let mut pages = pages();
    pages.push(japanese("kdd-1993"));
    for (name, page) in &pages {
        assert_eq!(axe_faults(&script, page, 1_280, true), Vec::<String>::new(), "{name}");
    }
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_study_is_drawn_and_nothing_complains() {
    let (english, japanese) = (Language::English, Language::Japanese);
    for (name, lang, figures) in [
        ("hirosaki-1998", english, 2),
        ("kdd-1993", english, 4),
        ("kdd-1993", japanese, 4),
        ("switches-2020", english, 2),
        ("filecopy-2003", english, 2),
        ("l3switch-2008", english, 1),
    ] {
        let (document, console) = opened(&html(lang, &published_in_japanese(name), None));
        assert!(document.contains("data-ready=\"yes\""), "{name}: the script did not reach its end: {console:?}");
        let downloads = match lang {
            Language::English => ["Download the study (JSON)", "Download the data (CSV)"],
            Language::Japanese => ["（JSON）", "（CSV）"],
        };
        assert!(downloads.iter().all(|link| document.contains(link)), "{name}");
        assert_eq!(document.matches("<figure>").count(), figures, "{name}");
        assert_eq!(console, Vec::<String>::new());
    }
}

/// Engineers look before they read: the first picture stands on the first screen.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn the_first_picture_of_every_page_is_within_700_pixels() {
    assert_first_picture_is_high(&pages());
}

/// Charts are legible on a phone without being moved sideways, and so are they in a window.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn charts_fit_a_phone_and_can_be_read() {
    let mut pages = pages();
    pages.extend(["kdd-1993", "l3switch-2008"].map(japanese));
    assert_charts_fit(&pages);
}

#[test]
fn every_chart_of_a_study_is_a_file_of_its_own() {
    for name in PUBLISHED {
        let report = published_in_japanese(name);
        for lang in Language::ALL {
            let pictures = pictures(lang, &report, None).into_iter().map(|picture| (picture.name, picture.svg));
            assert_pictures_of_page(name, &html(lang, &report, None), &pictures.collect::<Vec<_>>());
        }
    }
}
