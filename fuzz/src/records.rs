//! Untrusted figures: counts of agents, and records, which are evaluated again and rendered in every form.

use linerate_method::{Joining, figure, join, read_record, spoilt};
use linerate_model::{HostName, Trial};
use linerate_report::{Language, Style, csv, html, json, markdown, text};

/// Reads a record's JSON and renders the record.
pub(crate) fn record(bytes: &[u8]) {
    let Ok(text_of_record) = std::str::from_utf8(bytes) else { return };
    let record = match read_record(text_of_record) {
        Ok(record) => record,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let records = [record];
    let rendered = text(&records[..], &Style::default());
    let control = rendered.chars().find(|letter| letter.is_control() && *letter != '\n');
    assert_eq!(control, None, "a control character of a record reaches the terminal");
    let page = html(Language::default(), &records[..]);
    assert!(!page.contains("<script>alert"), "a text of a record becomes part of the page's code");
    let _ = (markdown(Language::default(), &records[..]), csv(&records[..]), json(&records[..]));
}

/// Joins counts to a trial. The first line is the trial, each further line the counts of a host in its first load.
pub(crate) fn counts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let Some(Ok(trial)) = lines.next().map(serde_json::from_str::<Trial>) else { return };
    let parts = lines.zip(["alpha", "beta", "gamma"]).map(|(line, host)| {
        let counts = serde_json::from_str(line).map_err(|error| error.to_string());
        (HostName::from(host), counts)
    });
    let loads = vec![Joining { caveats: Vec::new(), parts: parts.collect() }];
    if let Ok(result) = join(&trial, 0, loads) {
        let _ = (figure(&result), spoilt(&result));
        assert!(serde_json::to_string(&result).is_ok(), "what was counted can be kept");
    }
}
