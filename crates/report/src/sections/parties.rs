//! Parties of a measurement: the title of a document.

use crate::language::Language;
use crate::records::tasks;
use crate::{said, subjects};
use linerate_model::Record;

/// Returns the parties: `a to b`, `a, b and c to receiver`.
pub(crate) fn of_record(lang: Language, record: &Record) -> String {
    let mut pairs: Vec<String> = Vec::new();
    for trial in tasks::trials(record) {
        let pair = subjects::subject(trial.task().kind()).parties(lang, trial.task());
        pairs.extend(pair.filter(|pair| !pairs.contains(pair)));
    }
    if pairs.len() > 3 {
        let more = pairs.split_off(2).len();
        pairs[1].push_str(&said!(lang, "parties-more", " and {more} more pairs", more = more));
    }
    pairs.extend(record.plan.device().map(|device| subjects::parties::between(lang, &device.ports, &device.host)));
    if pairs.is_empty() { said!(lang, "parties-none", "no path") } else { pairs.join("; ") }
}
