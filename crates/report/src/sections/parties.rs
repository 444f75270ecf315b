//! Who measured with whom: the title of a document.

use crate::figures::plain;
use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::subjects::copy;
use crate::wording::listed;
use linerate_model::{HostName, Path, PortName, Record, Task};

/// Who talked to whom: `a to b`, `a, b and c to receiver`.
pub(crate) fn of_record(lang: Language, record: &Record) -> String {
    let mut pairs: Vec<String> = Vec::new();
    for trial in tasks::trials(record) {
        let pair = match trial.task() {
            Task::Frames(task) => Some(between(lang, &task.ports, &task.home)),
            Task::Copy(task) => Some(copy::parties(lang, task)),
            task => paths(lang, task.paths()),
        };
        pairs.extend(pair.filter(|pair| !pairs.contains(pair)));
    }
    if pairs.len() > 3 {
        let more = pairs.split_off(2).len();
        pairs[1].push_str(&said!(lang, "parties-more", more = more));
    }
    pairs.extend(record.plan.device().map(|device| between(lang, &device.ports, &device.host)));
    if pairs.is_empty() { said!(lang, "parties-none") } else { pairs.join("; ") }
}

/// Who talks to whom on these paths; none where there is none.
fn paths(lang: Language, paths: &[Path]) -> Option<String> {
    let mut clients: Vec<String> = Vec::new();
    let mut servers: Vec<String> = Vec::new();
    for path in paths {
        for (names, name) in [(&mut clients, &path.client), (&mut servers, path.server.name())] {
            let name = plain(&name.0);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let pair = said!(lang, "parties-to", clients = listed(lang, &clients), servers = listed(lang, &servers));
    (!clients.is_empty()).then_some(pair)
}

/// What is between these ports; `home` is the host of those that name none.
fn between(lang: Language, ports: &[PortName], home: &HostName) -> String {
    let names: Vec<String> = ports.iter().map(|port| plain(&port.to_string())).collect();
    let several = ports.iter().any(|port| port.host.as_ref().is_some_and(|host| host != home));
    let of = if several { String::new() } else { said!(lang, "parties-of-host", host = plain(&home.0)) };
    said!(lang, "parties-device", count = names.len(), ports = listed(lang, &names), value = of)
}
