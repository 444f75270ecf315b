//! Pages held to the rules of axe-core: contrast, names, order, keyboard.

use crate::{copy, device, ladder, limits, nfs, over_time, recorded, sample};
use linerate_report::{Language, html};
use linerate_testsuite::report_page::axe_faults;
use linerate_testsuite::server_test;
use linerate_testsuite::servers::axe;

#[server_test(Program("chromium|chromium-browser|google-chrome"), Program("npm"))]
fn no_page_has_a_serious_fault() {
    let script = axe();
    let english = Language::English;
    let mut pages = vec![
        ("stream", html(english, &recorded::record("stream-udp"))),
        ("demonstration", html(english, &sample::demonstration())),
        ("losses", html(english, &sample::lossy())),
        ("ladder", html(english, &ladder::record())),
        ("device", html(english, &device::record())),
        ("not firm", html(english, &device::not_firm())),
        ("curve", html(english, &nfs::record())),
        ("copy", html(english, &copy::record())),
        ("Japanese", html(Language::Japanese, &sample::demonstration())),
        ("limits", linerate_report::limits::html(english, &limits::overview())),
    ];
    pages.extend(over_time::all().iter().map(|(name, record)| (*name, html(english, record))));
    for (name, page) in &pages {
        assert_eq!(axe_faults(&script, page, 1_280, true), Vec::<String>::new(), "{name}");
    }
    // As it is opened, and on a narrow screen.
    for (name, page) in &pages[..3] {
        assert_eq!(axe_faults(&script, page, 500, false), Vec::<String>::new(), "{name}, narrow");
    }
}

/// The rules see what they should: a picture without a name, and pale letters.
#[server_test(Program("chromium|chromium-browser|google-chrome"), Program("npm"))]
fn a_planted_fault_is_seen() {
    let planted = "<main><img src=\"data:,\"><p style=\"color:#ddd;background:#fff\">pale</p>";
    let page = html(Language::English, &recorded::record("stream-tcp")).replace("<main>", planted);
    let found = axe_faults(&axe(), &page, 1_280, false);
    assert!(found.len() == 2 && found[0].contains("color-contrast") && found[1].contains("image-alt"), "{found:?}");
}

/// Relative luminance of `#rrggbb` (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("two hexadecimal digits")) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

/// Colours of marks stand out from the page by 3:1 (WCAG 2.2, 1.4.11), light and dark.
#[test]
fn every_colour_of_a_chart_stands_out() {
    let page = html(Language::English, &sample::udp_sweep());
    let themes: Vec<&str> = page.split(":root {").skip(1).take(2).collect();
    assert_eq!(themes.len(), 2, "light and dark");
    for theme in themes {
        let colour = |name: &str| {
            let rest = theme.split_once(&format!("--{name}: ")).unwrap_or_else(|| panic!("no {name}: {theme}")).1;
            luminance(&rest[..7])
        };
        let names = (0..8).map(|series| format!("s{series}")).chain(["limit", "tester", "warn"].map(str::to_owned));
        for name in names {
            let (one, other) = (colour(&name), colour("paper"));
            let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(contrast >= 3.0, "{name}: {contrast:.2}");
        }
    }
}

/// Hundreds of points are no stops of the tab key where no script joins them.
#[test]
fn without_a_script_no_point_stops_the_tab_key() {
    for record in [sample::demonstration(), device::record()] {
        let page = html(Language::English, &record);
        let charts: Vec<&str> = page.split("<svg").skip(1).filter_map(|rest| rest.split("</svg>").next()).collect();
        assert!(charts.iter().any(|chart| chart.contains("class=\"point\"")), "points are drawn");
        assert!(charts.iter().all(|chart| !chart.contains("tabindex")), "{charts:?}");
    }
}
