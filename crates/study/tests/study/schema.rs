//! The schema in docs is what the types say. After a wanted change of the format, run `cargo xtask snapshots` to write
//! it anew, and describe the change in docs/studies.md.

use linerate_study::StudyReport;

#[test]
fn the_schema_of_studies_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/study.schema.json");
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(StudyReport)).expect("a schema is JSON") + "\n";
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        std::fs::write(path, &schema).expect("the schema can be written");
    }
    let published = std::fs::read_to_string(path).expect("the schema is in docs");
    assert!(published == schema, "docs/study.schema.json is out of date; run `cargo xtask snapshots`");
}
