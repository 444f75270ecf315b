//! docs/record.schema.json is what the types say. After a wanted change of the format, run this test with
//! `LINERATE_BLESS=1` to write it anew, and describe the change in docs/result-format.md.

use linerate_model::Record;

#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record.schema.json");
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Record)).expect("a schema is JSON") + "\n";
    if std::env::var_os("LINERATE_BLESS").is_some() {
        std::fs::write(path, &schema).expect("the schema can be written");
    }
    let published = std::fs::read_to_string(path).expect("docs/record.schema.json exists");
    assert!(published == schema, "docs/record.schema.json is out of date; run with LINERATE_BLESS=1");
}
