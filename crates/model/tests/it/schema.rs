//! The schemas in docs are what the types say. After a wanted change of a format, run `cargo xtask snapshots` to
//! write them anew, and describe the change in docs/result-format.md or docs/live.md.

use linerate_model::{Record, StreamEvent};
use schemars::Schema;

fn check(name: &str, schema: &Schema) {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    let schema = serde_json::to_string_pretty(schema).expect("a schema is JSON") + "\n";
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        std::fs::write(&path, &schema).expect("the schema can be written");
    }
    let published = std::fs::read_to_string(&path).expect("the schema is in docs");
    assert!(published == schema, "docs/{name} is out of date; run `cargo xtask snapshots`");
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    check("record.schema.json", &schemars::schema_for!(Record));
}

#[test]
fn the_schema_of_events_is_that_of_the_types() {
    check("stream.schema.json", &schemars::schema_for!(StreamEvent));
}
