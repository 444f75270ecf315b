//! Charts as files of their own: those of the page, whole without it.

use crate::{copy, device, ladder, nfs, over_time, sample, study};
use linerate_model::Record;
use linerate_report::{Language, Picture};
use std::collections::BTreeSet;

/// What a file must be that a document or a slide shows: whole, named, with its title, its legend and its colours.
fn check(what: &str, page: &str, pictures: &[Picture]) {
    assert_eq!(pictures.len(), page.matches("<figure>").count(), "{what}: as many as on the page");
    let names: BTreeSet<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
    assert_eq!(names.len(), pictures.len(), "{what}: each has a name of its own");
    for (index, Picture { name, svg }) in pictures.iter().enumerate() {
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

/// Streams between all of four hosts.
fn mesh() -> Record {
    let mut record = sample::many_sources();
    let shares = &mut sample::flow(&mut record.results[0]).shares;
    let part = shares[0].clone();
    let hosts = ["a", "b", "c", "receiver"];
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (from, to))).filter(|(from, to)| from != to);
    *shares = pairs
        .enumerate()
        .map(|(index, (from, to))| linerate_model::Share {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            main: sample::summary(1e6 * (index + 1) as f64, 0.01),
            ..part.clone()
        })
        .collect();
    record
}

#[test]
fn every_chart_of_a_record_is_a_file_of_its_own() {
    let records = sample::all().into_iter().map(|(name, record)| (name.to_string(), record)).chain([
        ("ladder".to_owned(), ladder::record()),
        ("device".to_owned(), device::record()),
        ("nfs".to_owned(), nfs::record()),
        ("copy".to_owned(), copy::record()),
        ("mesh".to_owned(), mesh()),
    ]);
    let records = records.chain(over_time::all().map(|(name, record)| (name.to_owned(), record)));
    for (name, record) in records {
        for lang in Language::ALL {
            check(&name, &linerate_report::html(lang, &record), &linerate_report::pictures(lang, &record));
        }
    }
}

#[test]
fn every_chart_of_a_study_is_a_file_of_its_own() {
    for name in study::PUBLISHED {
        let report = study::published(name);
        for lang in Language::ALL {
            let page = linerate_report::study::html(lang, &report, None);
            check(name, &page, &linerate_report::study_pictures(lang, &report, None));
        }
    }
}

#[test]
fn hosts_that_all_measure_each_other_are_a_heat_map() {
    let of = |record: &Record, lang| {
        let pictures = linerate_report::pictures(lang, record);
        pictures.into_iter().find(|picture| picture.svg.contains("class=\"tile\""))
    };
    let map = of(&mesh(), Language::English).expect("a heat map").svg;
    assert_eq!(map.matches("class=\"tile\"").count(), 12);
    assert!(
        map.contains("a to receiver: 3 Mbit/s") && map.contains("the stronger the colour, the higher: 1 to 12 Mbit/s"),
        "{map}"
    );
    let map = of(&mesh(), Language::Japanese).expect("a heat map").svg;
    assert!(map.contains("a から receiver: 3 Mbit/s") && map.contains("色が濃いほど"), "{map}");
    // Three senders to one receiver are bars.
    assert!(of(&sample::many_sources(), Language::English).is_none());
}

/// Three runs each: three points, and a line.
#[test]
fn the_runs_of_a_record_are_points() {
    let record = sample::many_sources();
    let pictures = linerate_report::pictures(Language::English, &record);
    let runs = pictures.iter().find(|picture| picture.name.contains("each-run")).expect("a picture of the runs");
    assert_eq!(runs.svg.matches("class=\"mark\"").count(), 3);
    assert_eq!(runs.svg.matches("class=\"median\"").count(), 1);
    assert!(runs.svg.contains("tcp, run 1: ") && runs.svg.contains("% of the median"), "{}", runs.svg);
}
