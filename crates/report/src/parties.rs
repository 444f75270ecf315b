//! Who measured with whom: the title of a document.

use crate::copy;
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use crate::sentences::listed;
use linerate_model::Record;

/// Who talked to whom: `a to b`, `a, b and c to sink`.
pub(crate) fn of_record(lang: Language, record: &Record) -> String {
    let mut pairs: Vec<String> = Vec::new();
    for cell in &record.plan.cells {
        let mut openers: Vec<String> = Vec::new();
        let mut listeners: Vec<String> = Vec::new();
        for path in &cell.paths {
            for (names, name) in [(&mut openers, &path.opener), (&mut listeners, &path.listener)] {
                let name = plain(&name.0);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let pair = said!(lang, "parties-to", openers = listed(lang, &openers), listeners = listed(lang, &listeners));
        if !openers.is_empty() && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    if pairs.len() > 3 {
        let more = pairs.split_off(2).len();
        pairs[1].push_str(&said!(lang, "parties-more", more = more));
    }
    pairs.extend(record.plan.device.as_ref().map(|device| {
        let ports: Vec<String> = device.ports.iter().map(|port| plain(&port.to_string())).collect();
        let of = if device.has_several_hosts() {
            String::new()
        } else {
            said!(lang, "parties-of-host", host = plain(&device.host.0))
        };
        said!(lang, "parties-device", ports = listed(lang, &ports), value = of)
    }));
    pairs.extend(record.plan.copy.as_ref().map(|plan| copy::parties(lang, plan)));
    if pairs.is_empty() { said!(lang, "parties-none") } else { pairs.join("; ") }
}
