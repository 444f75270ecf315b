//! The charts of a study: heat maps, points along numbers, repeats.

use crate::study::{PUBLISHED, pivot, published, reported};
use linerate_model::StudyReport;
use linerate_report::Language;
use linerate_report::study::{self, Pivot};

/// Two factors of one pivot, and hosts that measure each other, are drawn as heat maps.
#[test]
fn two_factors_are_a_heat_map() {
    let report = published("switches-2020");
    let drawn = |report: &StudyReport, pivot: Option<&Pivot>| {
        let pictures = linerate_report::study_pictures(Language::English, report, pivot);
        pictures.iter().filter(|picture| picture.svg.contains("class=\"tile\"")).count()
    };
    assert_eq!(drawn(&report, None), 0);
    let asked = pivot(&report, &["payload_bytes"], &["device"]).expect("it has both").expect("a pivot");
    assert_eq!(drawn(&report, Some(&asked)), 1);

    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'from'\n[[factors]]\ncolumn = 'to'\n\
        [[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";
    let mesh = reported("x", toml, "from,to,mbps\na,b,941\na,c,94\nb,a,940\nb,c,93\nc,a,92\nc,b,91\n");
    assert_eq!(drawn(&mesh, None), 1);
    // Hosts stand in one order both ways, though the data have them in another.
    let both = pivot(&mesh, &["from"], &["to"]).expect("it has both");
    let markdown = study::markdown(Language::English, &mesh, both.as_ref());
    assert!(
        markdown.contains("| from | a | b | c |") && markdown.contains("| a | \u{2013} | 941 Mbit/s | 94 Mbit/s |"),
        "{markdown}"
    );
    let page = study::html(Language::Japanese, &mesh, None);
    assert!(page.contains("a, b: mbps 941 Mbit/s") && page.contains("色が濃いほど"), "{page}");
}

#[test]
fn the_only_two_factors_are_a_heat_map_by_default() {
    let study_of = |third: &str, unit: &str| {
        let toml = format!(
            "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'device'\n[[factors]]\n\
             column = 'mode'\n{unit}[[factors]]\ncolumn = 'place'\n[[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n"
        );
        let mut csv = "device,mode,place,mbps\n".to_owned();
        for (device, at) in [("red", 1), ("blue", 2)] {
            for mode in [1, 2, 3] {
                csv.push_str(&format!("{device},{mode},here,{}\n", 100 * at + mode));
                csv.push_str(third);
            }
        }
        reported("x", &toml, &csv)
    };
    let drawn = |report: &StudyReport| {
        let pictures = linerate_report::study_pictures(Language::English, report, None);
        pictures.iter().filter(|picture| picture.svg.contains("class=\"tile\"")).count()
    };
    assert_eq!(drawn(&study_of("", "")), 1);
    assert_eq!(drawn(&study_of("", "unit = 'B'\n")), 0, "numbers have an axis");
    assert_eq!(drawn(&study_of("red,1,there,9\n", "")), 0, "three factors");
    // Each of its devices is of one kind.
    assert_eq!(drawn(&published("l3switch-2008")), 0);
}

/// What was measured at some levels is drawn as points: nothing stands between them.
#[test]
fn nothing_is_drawn_between_levels() {
    let page = study::html(Language::English, &published("hirosaki-1998"), None);
    let series =
        |class: &str| page.matches(&format!("<g class=\"{class}\"><polyline class=\"line\" points=\"\">")).count();
    assert!(series("s0") > 0 && page.matches("<g class=\"s0\"><polyline").count() == series("s0"), "lines are empty");
}

/// Repeats are points; the published studies have none.
#[test]
fn every_repeat_is_drawn() {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'device'\n\
        [[factors]]\ncolumn = 'size'\nunit = 'B'\n[[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";
    let mut csv = "device,size,mbps\n".to_owned();
    for (index, device) in ["red", "blue"].into_iter().enumerate() {
        for size in [64, 512, 1472] {
            (0..5).for_each(|repeat| csv.push_str(&format!("{device},{size},{}\n", size / 2 + 10 * index + repeat)));
        }
    }
    let report = reported("x", toml, &csv);
    for (lang, title) in
        [(Language::English, "each run against the median"), (Language::Japanese, "中央値に対する各回")]
    {
        let pictures = linerate_report::study_pictures(lang, &report, None);
        let runs = pictures.iter().find(|picture| picture.svg.contains(title)).expect("a picture of the runs");
        assert_eq!(runs.svg.matches("class=\"mark\"").count(), 2 * 3 * 5);
        assert_eq!(runs.svg.matches("class=\"median\"").count(), 2 * 3);
    }
    for name in PUBLISHED {
        assert!(!study::html(Language::English, &published(name), None).contains("class=\"median\""), "{name}");
    }
}
