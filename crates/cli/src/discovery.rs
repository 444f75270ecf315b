//! Agents on the local network, found by multicast DNS (RFC 6762, RFC 6763). An announcement has no secret: whoever finds an agent still
//! needs its URL. Nor does it prove anything: the fingerprint in the URL tells which agent answers.

use linerate_control::PROTOCOL;
use linerate_model::HostName;
use mdns_sd::{IfKind, IfPredicate, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// The type of service that agents are.
const SERVICE: &str = "_linerate._tcp.local.";
/// The longest label of a name (RFC 1035 section 2.3.4), bytes.
const LABEL: usize = 63;
/// Other hosts are told within this that an agent ends.
const GOODBYE: Duration = Duration::from_secs(1);

/// An agent that announces itself; dropping it tells other hosts that it ends.
pub(crate) struct Announcement(ServiceDaemon);

/// An agent that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundAgent {
    /// What it calls itself.
    pub(crate) name: String,
    /// Where it answers.
    pub(crate) address: SocketAddr,
    /// Its version, and that of its protocol; empty if it does not say.
    pub(crate) version: String,
    pub(crate) protocol: String,
}

impl FoundAgent {
    /// Whether it says that it works with this version of linerate.
    pub(crate) fn is_of_this_protocol(&self) -> bool {
        self.protocol == PROTOCOL.to_string()
    }

    /// An agent as it announced itself; none without an address that can be used.
    fn of(service: &ResolvedService) -> Option<Self> {
        let addresses = service.addresses.iter().map(|address| address.to_ip_addr());
        let said = |key| in_a_line(service.get_property_val_str(key).unwrap_or_default());
        let suffix = format!(".{}", service.ty_domain);
        Some(Self {
            name: in_a_line(service.fullname.strip_suffix(&suffix).unwrap_or(&service.fullname)),
            address: SocketAddr::new(best(addresses)?, service.port),
            version: said("version"),
            protocol: said("protocol"),
        })
    }
}

/// A text that anyone may have sent, as a part of one line.
fn in_a_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LABEL).collect()
}

/// Of the addresses of a host, the one that others use most easily. Link-local ones of IPv6 need the name of an interface, and are left out.
fn best(addresses: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let is_of_use = |address: &IpAddr| match address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local()),
    };
    addresses.filter(is_of_use).min_by_key(|address| (address.is_loopback(), address.is_ipv6(), *address))
}

/// Announces the agent `name`, which listens at `listening` and whose certificate has `fingerprint`, until the returned value is dropped.
///
/// # Errors
/// It cannot be announced; the text says why.
pub(crate) fn announce(name: &HostName, listening: SocketAddr, fingerprint: &str) -> Result<Announcement, String> {
    let address = listening.ip().to_canonical();
    if address.is_loopback() {
        return Err(format!(
            "an agent at {address} is reached from this host only; --announce needs an address that others reach"
        ));
    }
    let failed = |error| format!("cannot announce the agent by multicast DNS: {error}");
    let daemon = daemon().map_err(failed)?;
    let version = env!("CARGO_PKG_VERSION");
    let said = [("version", version), ("protocol", &PROTOCOL.to_string())];
    // A name of its own: that of the host may belong to a program that announces the host.
    let host = format!("linerate-{fingerprint:.16}.local.");
    if !address.is_unspecified() {
        daemon.disable_interface(IfKind::All).map_err(failed)?;
        let is_listened_at = IfPredicate::new(move |interface| interface.ip() == address);
        daemon.enable_interface(IfKind::Predicate(is_listened_at)).map_err(failed)?;
    } else if address.is_ipv4() {
        // At 0.0.0.0 nobody is answered over IPv6.
        daemon.disable_interface(IfKind::IPv6).map_err(failed)?;
    }
    // Addresses are found by themselves, so that an interface that comes up later has the agent announced there.
    let service = ServiceInfo::new(SERVICE, label(&name.0), &host, (), listening.port(), &said[..]);
    let service = service.map_err(failed)?.enable_addr_auto();
    daemon.register(service).map_err(failed)?;
    Ok(Announcement(daemon))
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Whoever hears no goodbye forgets the agent later.
        if let Ok(ended) = self.0.shutdown() {
            let _ = ended.recv_timeout(GOODBYE);
        }
    }
}

/// Tells of each agent that announces itself within `time`, once.
///
/// # Errors
/// This host cannot ask; the text says why.
pub(crate) fn discover(time: Duration, mut found: impl FnMut(&FoundAgent)) -> Result<usize, String> {
    let failed = |error| format!("cannot ask by multicast DNS: {error}");
    let daemon = daemon().map_err(failed)?;
    let answers = daemon.browse(SERVICE).map_err(failed)?;
    let until = Instant::now() + time;
    let count = tell(std::iter::from_fn(|| answers.recv_deadline(until).ok()), &mut found);
    // The process is about to end all the same.
    let _ = daemon.shutdown();
    Ok(count)
}

/// Tells of each agent in `events` once, and returns how many there are.
fn tell(events: impl Iterator<Item = ServiceEvent>, found: &mut impl FnMut(&FoundAgent)) -> usize {
    let mut names = BTreeSet::new();
    for event in events {
        if let ServiceEvent::ServiceResolved(service) = event
            && let Some(agent) = FoundAgent::of(&service)
            && names.insert(service.fullname.clone())
        {
            found(&agent);
        }
    }
    names.len()
}

fn daemon() -> mdns_sd::Result<ServiceDaemon> {
    let daemon = ServiceDaemon::new()?;
    daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
    Ok(daemon)
}

/// A name that fits into a label.
fn label(name: &str) -> &str {
    &name[..name.floor_char_boundary(LABEL)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mdns_sd::ServiceEvent::ServiceResolved;

    fn resolved(name: &str, addresses: &[IpAddr]) -> ResolvedService {
        let said = [("version", "1.2.3"), ("protocol", "4")];
        ServiceInfo::new(SERVICE, name, "host.local.", addresses, 4747, &said[..])
            .expect("it can be")
            .as_resolved_service()
    }

    #[test]
    fn an_agent_has_the_address_that_others_use_most_easily() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (addresses, chosen) in [
            (&["fe80::1", "2001:db8::1", "192.0.2.1"][..], Some("192.0.2.1")),
            (&["fe80::1", "2001:db8::1"], Some("2001:db8::1")),
            (&["127.0.0.1", "2001:db8::1"], Some("2001:db8::1")),
            (&["0.0.0.0", "224.0.0.1", "fe80::1"], None),
        ] {
            assert_eq!(best(addresses.iter().map(|text| ip(text))), chosen.map(ip), "{addresses:?}");
        }
    }

    #[test]
    fn each_agent_is_told_once() {
        let here = ["192.0.2.1".parse().expect("an address")];
        let services = [resolved("rack-1", &here), resolved("rack-1", &here), resolved("nowhere", &[])];
        let mut told = Vec::new();
        let events = services.into_iter().map(|service| ServiceResolved(Box::new(service)));
        let count = tell(events, &mut |agent| told.push(format!("{agent:?}")));
        assert_eq!(count, 1);
        assert!(
            told[0].contains("rack-1") && told[0].contains("192.0.2.1:4747") && told[0].contains("1.2.3"),
            "{told:?}"
        );
    }

    #[test]
    fn what_an_agent_says_of_itself_stays_in_its_line() {
        let here: &[IpAddr] = &["192.0.2.1".parse().expect("an address")];
        let said = [("version", "1\nlinerate: to save it, type: ..."), ("protocol", "4")];
        let service = ServiceInfo::new(SERVICE, "rack\t1", "host.local.", here, 4747, &said[..]).expect("it can be");
        let agent = FoundAgent::of(&service.as_resolved_service()).expect("an agent");
        assert!(agent.version.starts_with("1linerate:") && agent.name == "rack1", "{agent:?}");
    }

    #[test]
    fn an_agent_that_only_this_host_reaches_is_not_announced() {
        for address in ["127.0.0.1:4747", "[::1]:4747"] {
            let error =
                announce(&HostName("a".into()), address.parse().expect("an address"), "0f").err().expect("refused");
            assert!(error.contains("--announce"), "{error}");
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(label("rack-1"), "rack-1");
        let long = "ö".repeat(40);
        assert_eq!(label(&long), "ö".repeat(31));
    }
}
