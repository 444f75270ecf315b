//! Names of those who measure with each other.

use crate::figures::plain;
use crate::language::Language;
use crate::said;
use crate::wording::listed;
use linerate_model::{HostName, Path, PortName};

/// Returns the parties at the ends of these paths, `None` if there are none.
pub(crate) fn of_paths(lang: Language, paths: &[Path]) -> Option<String> {
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
    let pair = said!(
        lang,
        "parties-to",
        "{clients} to {servers}",
        clients = listed(lang, &clients),
        servers = listed(lang, &servers)
    );
    (!clients.is_empty()).then_some(pair)
}

/// Returns which device is between these ports. `home` is the host of ports that name none.
pub(crate) fn between(lang: Language, ports: &[PortName], home: &HostName) -> String {
    let names: Vec<String> = ports.iter().map(|port| plain(&port.to_string())).collect();
    let several = ports.iter().any(|port| port.host.as_ref().is_some_and(|host| host != home));
    let of = if several { String::new() } else { said!(lang, "parties-of-host", " of {host}", host = plain(&home.0)) };
    said!(
        lang,
        "parties-device",
        if count == 1 { "device at port {ports}{value}" } else { "device between ports {ports}{value}" },
        count = names.len(),
        ports = listed(lang, &names),
        value = of
    )
}
