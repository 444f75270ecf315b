//! Study files that are read, and those that are refused.

use super::{Imported, StudyError, StudyFile};
use crate::study::Study;
use linerate_model::{Medium, Transport};
use linerate_report::Language;
use linerate_units::BitRate;
use proptest::prelude::*;
use std::path::Path;

const STUDY: &str = "\
title = 'Two links'
about = 'Which is faster?'
method = 'One stream.'
data = 'links.csv'
currency = 'yen'

[[factors]]
column = 'link'
levels = [
    { name = 'slow', medium = '10base-t', price = 1000 },
    { name = 'fast', medium = '100base-tx', price = [5000, 8000] },
]

[[factors]]
column = 'cpu_mhz'
unit = 'MHz'
of = 'host'
optional = true

[[measures]]
column = 'mbps'
unit = 'Mbit/s'
counts = 'payload'

[path]
transport = 'tcp'
";

const DATA: &str = "\
# made up
link,cpu_mhz,mbps
slow,200,8.9
slow,75,8.8
fast,,90
fast,75,40.5
fast,75,41.5
";

fn read(toml: &str, csv: &str) -> Result<Study, StudyError> {
    imported(Path::new("studies/links.toml"), toml)?.with_data("studies/links.csv", csv)
}

fn imported(path: &Path, toml: &str) -> Result<Imported, StudyError> {
    match StudyFile::parse(path, toml)? {
        StudyFile::Imported(study) => Ok(study),
        StudyFile::Measured(_) => panic!("{} names no data", path.display()),
    }
}

#[test]
fn factors_levels_and_repeats() {
    let study = read(STUDY, DATA).expect("the example is well-formed");
    assert_eq!((study.name.as_str(), study.cells.len()), ("links", 4));
    let clock = &study.factors[1];
    assert_eq!(clock.title, "cpu mhz");
    assert_eq!(clock.levels.iter().map(|level| level.value).collect::<Vec<_>>(), [Some(75.0), Some(200.0)]);
    let price = study.factors[0].levels[1].price.expect("a price");
    assert_eq!((price.low, price.high), (5000.0, 8000.0));

    let repeated = study.cells.last().expect("a cell");
    assert_eq!(
        (repeated.levels.clone(), repeated.values.clone()),
        (vec![Some(1), Some(0)], vec![vec![40.5e6, 41.5e6]])
    );
    assert_eq!(repeated.median(0), Some(41e6));
    assert_eq!(study.cells[2].levels, [Some(1), None]);
    let path = study.conditions(repeated, 0);
    assert_eq!(path.medium, Some(Medium::Ethernet(BitRate::per_second(100_000_000))));
    assert_eq!(path.transport, Some(Transport::Tcp));
}

/// Every file of the tree that is said to be a study is one.
#[test]
fn the_published_studies_are_read() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies"));
    let mut cells = Vec::new();
    for name in ["filecopy-2003", "hirosaki-1998", "kdd-1993", "l3switch-2008", "switches-2020"] {
        let path = folder.join(name).with_extension("toml");
        let file = imported(&path, &std::fs::read_to_string(&path).expect("the file")).expect(name);
        let data = folder.join(file.data());
        let study = file.with_data(name, &std::fs::read_to_string(data).expect("the data")).expect(name);
        cells.push(study.cells.len());
    }
    assert_eq!(cells, [8, 88, 15, 7, 16]);
}

/// The example of docs/studies.md is a study.
#[test]
fn the_documented_example_is_read() {
    let page = include_str!("../../../../docs/studies.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let study = read(example, "link,cpu_mhz,mbps\nold,500,90\nnew,,800\n").expect("the example is well-formed");
    assert_eq!((study.cells.len(), study.measures[0].title.as_str()), (2, "throughput"));
    assert!(study.conditions(&study.cells[1], 0).carried().is_ok_and(|carried| carried.len() == 1));
}

#[test]
fn toml_errors_name_field_and_line() {
    for (from, to, parts) in [
        ("currency = 'yen'", "currency = ", ["line 5", "studies/links.toml", ""]),
        ("title = 'Two links'\n", "", ["line 1", "missing field `title`", ""]),
        ("title = ", "titel = ", ["line 1", "unknown field `titel`", "expected one of `title`"]),
        ("'10base-t'", "'10base-x-y'", ["line 10", "`10base-x-y` is no medium", "atm-oc3-lane"]),
        ("price = 1000", "price = -1", ["line 10", "`price`", "[50000, 80000]"]),
        ("price = 1000", "price = 'much'", ["line 10", "price = 'much'", "a price, or the lowest and the highest"]),
        ("[5000, 8000]", "[8000, 5000]", ["line 11", "`price`", "the lowest and the highest"]),
        ("name = 'fast'", "name = 'slow'", ["line 11", "`slow` stands twice", "`name`"]),
        ("column = 'cpu_mhz'", "column = 'link'", ["line 15", "`link` stands twice", "`column`"]),
        ("of = 'host'", "of = 'hosts'", ["line 17", "unknown variant `hosts`", "`host`"]),
        ("unit = 'Mbit/s'", "unit = 'Mbaud'", ["line 22", "`Mbaud` is no unit", "expected one as bit/s"]),
        ("counts = 'payload'", "counts = 'bits'", ["line 23", "unknown variant `bits`", "`payload`"]),
        ("transport = 'tcp'", "transport = 'sctp'", ["line 26", "unknown variant `sctp`", "`tcp`"]),
        ("transport = 'tcp'", "transport = 'tcp'\nmtu = 70000", ["line 3", "an MTU of 70000", "give at most 65535"]),
    ] {
        assert!(STUDY.contains(from), "{from}");
        let error = read(&STUDY.replacen(from, to, 1), DATA).expect_err(to).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{to}: {error}");
    }
    let twice = format!("{STUDY}\n[[measures]]\ncolumn = 'pps'\ntitle = 'mbps'\nunit = 'pps'\n");
    let error = read(&twice, DATA).expect_err("two of one title").to_string();
    assert!(error.contains("line 29, field `title`: `mbps` stands twice"), "{error}");
    let compare = format!("{STUDY}\n[[compare]]\nmeasures = ['mbps', 'pps']\nby = 'link'\n");
    let error = read(&compare, DATA).expect_err("no such measure").to_string();
    assert!(error.contains("line 29, field `measures`: `pps` is no measure") && error.contains("`mbps`"), "{error}");
}

#[test]
fn data_errors_name_column_and_line() {
    for (from, to, message) in [
        (
            "slow,75,8.8",
            "slow,75,fast",
            "line 4, field `mbps`: `fast` is no number; expected one that is not negative, as in 94.1",
        ),
        ("slow,75,8.8", "slow,75,-1", "line 4, field `mbps`: `-1` is no number"),
        ("slow,75,8.8", "slow,75,inf", "line 4, field `mbps`: `inf` is no number"),
        ("slow,75,8.8", "slow,75,1e300", "line 4, field `mbps`: `1e300` is more than any link carries"),
        ("slow,75,8.8", "slow,75,", "line 4, field `mbps`: is empty; expected a number"),
        ("slow,75,8.8", "slow,,8.8\n,75,8.8", "line 5, field `link`: is empty; expected a level"),
        ("slow,75,8.8", "slow,75 MHz,8.8", "line 4, field `cpu_mhz`: `75 MHz` is no number"),
        (
            "slow,75,8.8",
            "Slow,75,8.8",
            "line 4, field `link`: `Slow` is no level of link of this study; expected one of `slow`, `fast`",
        ),
        ("slow,75,8.8", "slow,75", "line 4: has 2 fields; expected 3, as the header has"),
        ("slow,75,8.8", "slow,75,8.8,1", "line 4: has 4 fields; expected 3"),
        ("slow,75,8.8", "\"slow,75,8.8", "line 4: a field goes on over the end of the line"),
        (
            "link,cpu_mhz",
            "link,cpu",
            "line 2: there is no column `cpu_mhz`, which the study names; there are link, cpu, mbps",
        ),
        ("link,cpu_mhz", "mbps,cpu_mhz", "line 2: there is no column `link`"),
        ("cpu_mhz,mbps", "cpu_mhz,mbps,os", "line 3: has 3 fields; expected 4"),
    ] {
        assert!(DATA.contains(from), "{from}");
        let error = read(STUDY, &DATA.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.starts_with("studies/links.csv, ") && error.contains(message), "{to}: {error}");
    }
    let with_os = "link,cpu_mhz,mbps,os\nslow,75,8.8,NT\n";
    let error = read(STUDY, with_os).expect_err("an unknown column").to_string();
    assert!(error.contains("line 1, field `os`: the study names no such factor or measure"), "{error}");
    for empty in ["", "\n\n", "link,cpu_mhz,mbps\n", "# nothing\n"] {
        assert!(read(STUDY, empty).expect_err(empty).to_string().contains("there are no results"), "{empty:?}");
    }
}

#[test]
fn ranges_and_bounds_are_read() {
    for (text, low, high, value) in [
        ("about 9", Some(8.1), Some(9.9), Some(9.0)),
        ("at most 9", Some(0.0), Some(9.0), None),
        ("less than 9", Some(0.0), Some(9.0), None),
        ("at least 9", Some(9.0), None, None),
        ("more than 9", Some(9.0), None, None),
        ("8.5 to 9", Some(8.5), Some(9.0), None),
    ] {
        let study = read(STUDY, &DATA.replace("slow,75,8.8", &format!("slow,75,{text}"))).expect(text);
        let cell = study.cells.iter().find(|cell| cell.stated.contains_key(&0)).expect(text);
        let stated = cell.stated[&0];
        let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => (one / 1e6 - other).abs() < 1e-9,
            (one, other) => one == other,
        };
        assert!(near(stated.low, low) && near(stated.high, high), "{text}: {stated:?}");
        assert!(near(cell.median(0), value), "{text}");
    }
    for (from, to, message) in [
        (
            "slow,75,8.8",
            "slow,75,9 to 8",
            "line 4, field `mbps`: `9 to 8` has its ends swapped; expected the lower one first",
        ),
        ("slow,75,8.8", "slow,75,about fast", "line 4, field `mbps`: `fast` is no number"),
        ("slow,75,8.8", "slow,75,around 9", "line 4, field `mbps`: `around 9` is no number"),
        ("slow,75,8.8", "slow,75,at most 1e300", "line 4, field `mbps`: `at most 1e300` is more than any link carries"),
        ("fast,75,41.5", "fast,75,at most 41", "line 7, field `mbps`: stands beside another value of the same levels"),
    ] {
        assert!(DATA.contains(from), "{from}");
        let error = read(STUDY, &DATA.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn message_sizes_are_whole_bytes() {
    let study = STUDY.replace("of = 'host'", "of = 'message'");
    let error = read(&study, &DATA.replace("slow,75,", "slow,75.5,")).expect_err("half a byte").to_string();
    assert!(error.contains("line 4, field `cpu_mhz`: `75.5` is no size of a message"), "{error}");
}

proptest! {
    #[test]
    fn no_text_panics(toml in ".{0,200}", csv in ".{0,200}") {
        let _ = StudyFile::parse(Path::new("x.toml"), &toml);
        let _ = read(STUDY, &csv);
    }

    /// One character changed, left out or put in, anywhere in either file: read whole, or refused in words.
    #[test]
    fn no_typing_error_panics(at in 0usize..800, with in "[\\x00-\\x7f]{0,2}", drop in 0usize..3) {
        let broken = |text: &str| {
            let (at, end) = (at.min(text.len()), (at + drop).min(text.len()).max(at.min(text.len())));
            format!("{}{with}{}", &text[..at], &text[end..])
        };
        for result in [read(&broken(STUDY), DATA), read(STUDY, &broken(DATA))] {
            match result {
                Ok(study) => {
                    let (factors, measures) = (study.factors.len(), study.measures.len());
                    let whole = study.cells.iter().all(|cell| (cell.levels.len(), cell.values.len()) == (factors, measures));
                    prop_assert!(whole);
                }
                Err(error) => prop_assert!(error.to_string().contains("studies/links.")),
            }
        }
    }
}

const TEXTS: &str = "\
title = '2 本のリンク'
method = '1 本のストリーム。'
currency = '円'
caveats = []

[factors.link]
title = 'リンク'
levels = { slow = '低速', fast = '高速' }

[measures]
mbps = 'スループット'
";

fn translated(texts: &str) -> Result<Study, StudyError> {
    let study = read(STUDY, DATA).expect("a good study");
    study.translated(Language::Japanese, Path::new("studies/links.ja.toml"), texts)
}

#[test]
fn a_translation_is_read_and_used() {
    let study = translated(TEXTS).expect("good texts");
    let japanese = study.in_language(Language::Japanese);
    assert_eq!((japanese.title.as_str(), japanese.currency.as_deref()), ("2 本のリンク", Some("円")));
    assert_eq!(japanese.about, "（英語）Which is faster?", "a text without a translation is marked");
    assert_eq!(japanese.factors[0].levels[1].name, "高速");
    assert_eq!(japanese.factors[1].title, "cpu mhz", "a name without a translation stands as it is");
    assert_eq!(japanese.measures[0].title, "スループット");
    assert_eq!(
        *study.in_language(Language::English),
        read(STUDY, DATA).map(|plain| Study { translation: study.translation.clone(), ..plain }).expect("a good study")
    );
}

#[test]
fn errors_in_a_translation_name_field_and_line() {
    for (from, to, parts) in [
        ("title = '2", "titel = '2", ["line 1", "unknown field `titel`", "expected one of `title`"]),
        ("method = ", "method = 1 #", ["line 2", "invalid type: integer", "expected a string"]),
        ("currency = '円'", "question = 'どちらが速いか？'", ["line 3", "`question`", "the study does not have"]),
        ("caveats = []", "caveats = ['x']", ["line 4", "`caveats`", "has 1 texts; expected 0"]),
        ("[factors.link]", "[factors.links]", ["line 6", "`links` is no factor", "`link`, `cpu_mhz`"]),
        ("title = 'リンク'", "unit = 'm'", ["line 7", "`unit`", "the study does not have"]),
        ("slow = ", "slower = ", ["line 8", "`slower` is no level", "`slow`, `fast`"]),
        ("'高速'", "'低速'", ["line 8", "`低速` stands twice", "`levels`"]),
        ("mbps = ", "bps = ", ["line 11", "`bps` is no measure", "`mbps`"]),
    ] {
        assert!(TEXTS.contains(from), "{from}");
        let error = translated(&TEXTS.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.starts_with("studies/links.ja.toml"), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{to}: {error}");
    }
}

/// The example of docs/languages.md goes with the example of docs/studies.md.
#[test]
fn the_documented_translation_is_read() {
    let example = |page: &'static str| {
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example")
    };
    let toml = example(include_str!("../../../../docs/studies.md"));
    let study = read(toml, "link,cpu_mhz,mbps\nold,500,90\nnew,,800\n").expect("the example is well-formed");
    let texts = example(include_str!("../../../../docs/languages.md"));
    let study = study.translated(Language::Japanese, Path::new("links.ja.toml"), texts).expect("it fits");
    assert!(study.translation.is_some());
}
