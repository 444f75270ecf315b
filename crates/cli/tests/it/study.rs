//! Studies: imported from two files, reported in every form, and refused with the line and the field.

use crate::program::TestFolder;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn tree(path: &str) -> String {
    let path: PathBuf = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    path.canonicalize().unwrap_or(path).display().to_string()
}

fn check_schema(report: &Value) {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/study.schema.json")).expect("it is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let errors: Vec<String> =
        validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn every_published_study_comes_out_in_every_form() {
    let place = TestFolder::new();
    for name in ["filecopy-2003", "hirosaki-1998", "kdd-1993", "l3switch-2008", "switches-2020"] {
        // With and without its ending.
        let study = tree(&format!("studies/{name}.toml"));
        let report = place.run(&["report", study.trim_end_matches(".toml"), "--json"]).json();
        check_schema(&report);
        assert_eq!(report["study"]["name"], name);
        for finding in report["findings"].as_array().expect("findings") {
            assert!(finding["kind"].is_string() && finding["text"].is_string(), "{finding}");
            assert!(!finding["evidence"].as_array().expect("evidence").is_empty(), "{finding}");
        }
        for form in ["html", "md", "csv", "json", "txt"] {
            let out = place.path(&format!("{name}.{form}"));
            place.run(&["report", &study, "--out", &out.display().to_string()]).says(0, &["report written to"]);
            assert!(std::fs::metadata(&out).is_ok_and(|file| file.len() > 500), "{name}.{form}");
        }
        let page = std::fs::read(place.path(&format!("{name}.html"))).expect("the page");
        let kept = std::fs::read(tree(&format!("docs/studies/{name}.html"))).unwrap_or_default();
        // The pages have hundreds of kilobytes, which nobody wants to read here.
        assert!(page == kept, "docs/studies/{name}.html differs: run `cargo xtask snapshots`, and read `git diff`");
    }
}

#[test]
fn tables_are_by_the_factors_that_are_named() {
    let place = TestFolder::new();
    let study = tree("studies/hirosaki-1998.toml");
    let (out, charts) = (place.path("by.md"), place.path("charts"));
    let (markdown, folder) = (out.display().to_string(), charts.display().to_string());
    let by = ["--rows", "os,protocol", "--columns", "interface"];
    place.run(&[&["report", &study, "--out", &markdown][..], &by].concat()).says(0, &["report written to"]);
    let markdown = std::fs::read_to_string(&out).expect("the report");
    assert!(markdown.contains("## Throughput by operating system, protocol and interface"), "{markdown}");
    assert!(markdown.contains("| Windows NT 4.0, UDP |"), "{markdown}");
    place.run(&[&["report", &study, "--charts", &folder][..], &by].concat()).says(0, &["charts written to"]);
    assert!(charts.join("1-throughput-by-operating-system-protocol-and-interface-mbit.svg").exists());

    place.run(&["report", &study, "--rows", "weather"]).says(2, &["no factor `weather`", "`os`", "`host_a_cpu_mhz`"]);
    place.run(&["report", &study, "--rows", "os", "--columns", "os"]).says(2, &["`os` is named twice"]);
    place.run(&["report", &study, "--rows", "os", "--format", "csv"]).says(2, &["CSV and JSON have none"]);
    place.run(&["report", "--rows", "os"]).says(2, &["tables of a study"]);
}

const STUDY: &str = "title = 'x'\nabout = 'x'\nmethod = 'x'\ndata = 'links.csv'\n\
    [[factors]]\ncolumn = 'link'\nlevels = [{ name = 'slow', medium = '10base-t' }]\n\
    [[measures]]\ncolumn = 'mbps'\nunit = 'Mbit/s'\n";

#[test]
fn malformed_files_are_refused_with_line_and_field() {
    let place = TestFolder::new();
    let study = place.file("links.toml", STUDY);
    let refused = |data: &str, words: &[&str]| {
        place.file("links.csv", data);
        let out = place.path("links.html");
        place.run(&["report", &study, "--out", &out.display().to_string()]).says(2, words);
        assert!(!out.exists(), "half a report is none");
    };
    refused(
        "link,mbps\nslow,9\nslow,nine\n",
        &["links.csv, line 3, field `mbps`", "`nine` is no number", "as in 94.1"],
    );
    refused("link,mbps\nslow,9\nfast,90\n", &["links.csv, line 3, field `link`", "expected one of `slow`"]);
    refused("link,mbps\nslow\n", &["links.csv, line 2", "has 1 fields; expected 2"]);
    refused("link\nslow\n", &["links.csv, line 1", "there is no column `mbps`"]);
    refused("", &["links.csv, line 1", "there are no results"]);
    std::fs::write(place.path("links.csv"), b"link,mbps\nslow,\xff\n").expect("a file");
    place.run(&["report", &study]).says(2, &["links.csv", "UTF-8"]);
    std::fs::remove_file(place.path("links.csv")).expect("it was there");
    place.run(&["report", &study]).says(2, &["cannot read the data of the study", "links.csv"]);

    let broken = place.file("broken.toml", &STUDY.replace("10base-t", "10base-x-y"));
    place.run(&["report", &broken]).says(2, &["broken.toml", "line 7", "`10base-x-y` is no medium", "atm-oc3-lane"]);
    let unknown = place.file("unknown.toml", &STUDY.replace("unit", "units"));
    place.run(&["report", &unknown]).says(2, &["unknown.toml", "line 10", "unknown field `units`", "expected one of"]);
    let missing = place.path("none.toml").display().to_string();
    place.run(&["report", &missing]).says(2, &["cannot read the study", "none.toml"]);
}
