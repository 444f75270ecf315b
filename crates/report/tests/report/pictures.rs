//! Charts as files of their own: those of the page, whole without it.

use crate::{copy, device, ladder, nfs, over_time, sample};
use linerate_model::Record;
use linerate_report::Language;
use linerate_testsuite::report_page::assert_pictures_of_page;

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
            let pictures =
                linerate_report::pictures(lang, &record).into_iter().map(|picture| (picture.name, picture.svg));
            assert_pictures_of_page(&name, &linerate_report::html(lang, &record), &pictures.collect::<Vec<_>>());
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
