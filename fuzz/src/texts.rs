//! Texts from users, or from others through users.

use linerate_model::AgentUrl;
use linerate_study::StudyFile;
use std::path::Path;

/// URLs of agents and of devices that answer SNMP. An agent's is written as it reads.
pub(crate) fn urls(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(url) = text.parse::<AgentUrl>() {
        assert_eq!(url.to_string().parse::<AgentUrl>().as_ref(), Ok(&url), "it reads back");
        // A host may be called as the token is.
        let shown = url.host.contains(&url.token) || url.fingerprint.contains(&url.token);
        assert_eq!(format!("{url:?} {}", url.address()).contains(&url.token), shown, "the token stays hidden");
    }
    if let Ok(device) = text.parse::<linerate_observe::snmp::Target>() {
        let shown = device.to_string();
        assert!(shown.parse::<linerate_observe::snmp::Target>().is_ok(), "{shown} reads back");
    }
}

/// What divides an input into the study's file and the file of its data.
const DATA: &str = "\n=====\n";

/// A study, and the results that it names.
pub(crate) fn study(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (study, data) = text.split_once(DATA).unwrap_or((text, ""));
    match StudyFile::parse(Path::new("study.toml"), study) {
        Ok(StudyFile::Imported(study)) => drop(study.with_data("data.csv", data)),
        Ok(StudyFile::Measured(study)) => drop(study.runs(str::to_owned)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
