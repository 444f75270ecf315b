//! The charts of a study: heat maps, points along numbers, repeats.

use crate::published::{PUBLISHED, pivot, published, reported};
use linerate_report::Language;
use linerate_report::Picture;
use linerate_study::Pivot;
use linerate_study::StudyReport;

/// Two factors of one pivot, and hosts that measure each other, are drawn as heat maps.
#[test]
fn two_factors_are_a_heat_map() {
    let report = published("switches-2020");
    let drawn = |report: &StudyReport, pivot: Option<&Pivot>| {
        let pictures = linerate_study::pictures(Language::English, report, pivot);
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
    let markdown = linerate_study::markdown(Language::English, &mesh, both.as_ref());
    assert!(
        markdown.contains("| from | a | b | c |") && markdown.contains("| a | \u{2013} | 941 Mbit/s | 94 Mbit/s |"),
        "{markdown}"
    );
    let page = linerate_study::html(Language::Japanese, &mesh, None);
    assert!(page.contains("a、b: mbps 941 Mbit/s") && page.contains("色が濃いほど"), "{page}");
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
        let pictures = linerate_study::pictures(Language::English, report, None);
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
fn levels_are_not_joined_by_lines() {
    let page = linerate_study::html(Language::English, &published("hirosaki-1998"), None);
    let series =
        |class: &str| page.matches(&format!("<g class=\"{class}\"><polyline class=\"line\" points=\"\">")).count();
    assert!(series("s0") > 0 && page.matches("<g class=\"s0\"><polyline").count() == series("s0"), "lines are empty");
}

/// Repeats are points; the published studies have none.
#[test]
fn every_repeat_is_a_point() {
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
        let pictures = linerate_study::pictures(lang, &report, None);
        let runs = pictures.iter().find(|picture| picture.svg.contains(title)).expect("a picture of the runs");
        assert_eq!(runs.svg.matches("class=\"mark\"").count(), 2 * 3 * 5);
        assert_eq!(runs.svg.matches("class=\"median\"").count(), 2 * 3);
    }
    for name in PUBLISHED {
        assert!(
            !linerate_study::html(Language::English, &published(name), None).contains("class=\"median\""),
            "{name}"
        );
    }
}

/// The picture whose title begins so.
fn titled<'a>(pictures: &'a [Picture], title: &str) -> &'a str {
    let heading = format!("class=\"heading\" x=\"16\" y=\"28\">{title}");
    let found = pictures.iter().find(|picture| picture.svg.contains(&heading));
    &found
        .unwrap_or_else(|| panic!("{title}: {:?}", pictures.iter().map(|picture| &picture.name).collect::<Vec<_>>()))
        .svg
}

/// Systems and protocols have a small chart each; what their axes count is said once.
#[test]
fn facets_of_one_scale_share_axes() {
    let report = published("hirosaki-1998");
    let pictures = linerate_study::pictures(Language::English, &report, None);
    let drawn = titled(&pictures, "Throughput by operating system and protocol, A-B<");
    assert!(drawn.contains("class=\"multiples\""));
    let names: Vec<&str> = drawn
        .split("<text class=\"name\"")
        .filter_map(|rest| Some(rest.split_once('>')?.1.split_once('<')?.0))
        .filter(|name| name.starts_with("Windows"))
        .collect();
    let expected = ["Windows 95, TCP", "Windows 95, UDP", "Windows NT 4.0, TCP", "Windows NT 4.0, UDP"];
    assert_eq!(names, expected, "systems below each other, protocols beside each other");
    let ticks = |text: &str| drawn.matches(&format!("text-anchor=\"end\">{text}</text>")).count();
    assert_eq!((ticks("100"), ticks("0")), (2, 2), "the left charts alone have figures");
    assert_eq!(drawn.matches("text-anchor=\"middle\">200</text>").count(), 2, "and the lower ones");
    assert_eq!(drawn.matches("class=\"title\"").count(), 2, "each axis has one title");
    let marks = drawn.split("<g class=\"limit\">").count() - 1;
    assert!(marks >= 4 * 3, "the limits of three media in each: {marks}");
    assert!(drawn.contains("what the medium can carry<"), "limits of TCP and UDP differ: no figure holds for both");

    let page = linerate_study::html(Language::English, &report, None);
    let figure = page.split("<figure>").nth(1).expect("a chart");
    assert_eq!(figure.matches("<svg class=\"multiples\"").count(), 2, "for windows and for phones");
    assert_eq!(figure.matches("<th scope=\"row\">").count(), 80, "one table has the figures of all");
}

#[test]
fn facets_of_different_scales_are_separate_charts() {
    let report = published("switches-2020");
    let pictures = linerate_study::pictures(Language::English, &report, None);
    for title in ["Port speed 100 Mbit/s<", "Port speed 1000 Mbit/s<"] {
        assert!(!titled(&pictures, title).contains("class=\"multiples\""), "{title}");
    }
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'device'\n\
        [[factors]]\ncolumn = 'size'\nunit = 'B'\n[[factors]]\ncolumn = 'place'\n[[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";
    let of_places = |places: &[(&str, u32)]| {
        let mut csv = "device,size,place,mbps\n".to_owned();
        for (place, rate) in places {
            for device in ["red", "blue"] {
                [64, 512, 1472].iter().for_each(|size| csv.push_str(&format!("{device},{size},{place},{rate}\n")));
            }
        }
        linerate_study::pictures(Language::English, &reported("x", toml, &csv), None)
    };
    assert!(!titled(&of_places(&[("here", 90)]), "Mbps<").contains("class=\"multiples\""));
    let pictures = of_places(&[("here", 900), ("near", 950), ("far", 10)]);
    assert_eq!(pictures.len(), 2);
    assert!(titled(&pictures, "Mbps by place<").contains(">near</text>"));
    assert!(!titled(&pictures, "Far<").contains("class=\"multiples\""));
}

/// Many bars are split by a factor of few levels: names of groups and bars stand once, at the left.
#[test]
fn many_groups_of_bars_form_panels() {
    let toml = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'x.csv'\n[[factors]]\ncolumn = 'device'\n[[factors]]\n\
        column = 'mode'\n[[factors]]\ncolumn = 'place'\n[[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";
    let of_modes = |modes: &[&str]| {
        let mut csv = "device,mode,place,mbps\n".to_owned();
        for (index, device) in ["red", "blue"].iter().enumerate() {
            for mode in modes {
                for place in ["here", "there"] {
                    csv.push_str(&format!("{device},{mode},{place},{}\n", 100 + index));
                }
            }
        }
        reported("x", toml, &csv)
    };
    let report = of_modes(&["plain", "tagged", "routed"]);
    let pictures = linerate_study::pictures(Language::English, &report, None);
    let drawn = titled(&pictures, "Mbps<");
    assert!(drawn.contains("class=\"multiples\""));
    for (name, count) in [("tagged", 1), ("here", 1), ("there", 1), ("red", 4), ("100 Mbit/s", 6)] {
        assert_eq!(drawn.matches(&format!(">{name}</text>")).count(), count, "{name}: {drawn}");
    }
    let page = linerate_study::html(Language::English, &report, None);
    assert!(page.contains(">here, tagged</text>"), "on a phone they stand below each other");
    let few = linerate_study::pictures(Language::English, &of_modes(&["plain", "tagged"]), None);
    assert!(!titled(&few, "Mbps<").contains("class=\"multiples\""));
}
