//! Agents as records of DNS-SD, and back.

use crate::message::{Message, Question, Record, RecordData, kinds};
use crate::name::{MAX_LABEL, Name, cut};
use std::net::{IpAddr, SocketAddr};

/// Most addresses of one link that are announced.
const MAX_ADDRESSES: usize = 8;
/// Time to live of records that contain addresses, in seconds (RFC 6762 section 10).
const HOST_TTL: u32 = 120;
/// Time to live of other records.
const OTHER_TTL: u32 = 4_500;
/// Bytes of the certificate's fingerprint, as text, that make an agent's names unique.
const UNIQUE: usize = 16;

/// The name of the service that agents are.
pub(crate) fn service() -> Name {
    Name::new(["_linerate", "_tcp", "local"])
}

/// The announced properties of an agent.
#[derive(Debug, Clone)]
pub struct AnnouncedAgent {
    /// Name of its host.
    pub name: String,
    /// Fingerprint of its certificate, in hexadecimal.
    pub fingerprint: String,
    /// Address and port it listens at.
    pub listening: SocketAddr,
    /// Version of linerate.
    pub version: String,
    /// Version of the agent's protocol.
    pub protocol: u32,
}

/// An agent that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundAgent {
    /// Name of its host.
    pub name: String,
    /// Address and port it answers at.
    pub address: SocketAddr,
    /// Version of linerate; empty if it names none.
    pub version: String,
    /// Version of the agent's protocol; empty if it names none.
    pub protocol: String,
}

impl AnnouncedAgent {
    fn unique(&self) -> &str {
        cut(&self.fingerprint, UNIQUE)
    }

    /// The name of this agent's service. It contains the fingerprint, so that agents of one name do not collide and no
    /// probing for conflicts (RFC 6762 section 8.1) is needed.
    fn instance(&self) -> Name {
        let suffix = format!(" {}", self.unique());
        let label = format!("{}{suffix}", cut(&self.name, MAX_LABEL - suffix.len()));
        Name::new([&*label, "_linerate", "_tcp", "local"])
    }

    /// The name of its host. The host's own name may belong to a program that announces the host.
    fn host(&self) -> Name {
        Name::new([&*format!("linerate-{}", self.unique()), "local"])
    }

    /// Returns the message that announces it on a link where it has `addresses`. With `is_over`, the one that withdraws
    /// it.
    pub(crate) fn announcement(&self, addresses: &[IpAddr], is_over: bool) -> Vec<u8> {
        let instance = self.instance();
        let host = self.host();
        let texts = [
            format!("name={}", cut(&self.name, MAX_LABEL)),
            format!("version={}", self.version),
            format!("protocol={}", self.protocol),
        ];
        let texts = texts.map(String::into_bytes).to_vec();
        let port = self.listening.port();
        let service_data = RecordData::Service { port, host: host.clone() };
        let mut records = vec![
            Record { name: service(), ttl: OTHER_TTL, data: RecordData::Pointer(instance.clone()) },
            Record { name: instance.clone(), ttl: HOST_TTL, data: service_data },
            Record { name: instance, ttl: OTHER_TTL, data: RecordData::Text(texts) },
        ];
        for address in addresses.iter().take(MAX_ADDRESSES) {
            records.push(Record { name: host.clone(), ttl: HOST_TTL, data: RecordData::Address(*address) });
        }
        if is_over {
            records.iter_mut().for_each(|record| record.ttl = 0);
        }
        Message { is_response: true, questions: Vec::new(), records }.encode()
    }

    /// Returns whether `message` asks for records of this agent that its sender does not have yet.
    pub(crate) fn is_asked_for(&self, message: &Message) -> bool {
        if message.is_response {
            return false;
        }
        let instance = self.instance();
        let host = self.host();
        // RFC 6762 section 7.1.
        let is_known = message.records.iter().any(|record| {
            record.ttl >= OTHER_TTL / 2
                && record.name == service()
                && matches!(&record.data, RecordData::Pointer(name) if *name == instance)
        });
        message.questions.iter().any(|Question { name, kind }| match *kind {
            kinds::PTR => *name == service() && !is_known,
            kinds::SRV | kinds::TXT => *name == instance,
            kinds::A | kinds::AAAA => *name == host,
            kinds::ANY => *name == service() && !is_known || *name == instance || *name == host,
            _ => false,
        })
    }

    /// Returns the addresses out of `addresses` at which it listens. Link-local IPv6 addresses are left out: they need
    /// an interface's name.
    pub(crate) fn addresses(&self, addresses: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        let listening = self.listening.ip().to_canonical();
        let listens_at = |address: &IpAddr| match listening {
            IpAddr::V4(v4) if v4.is_unspecified() => address.is_ipv4(),
            IpAddr::V6(v6) if v6.is_unspecified() => true,
            one => *address == one,
        };
        let mut addresses: Vec<IpAddr> =
            addresses.filter(|address| listens_at(address) && is_usable(address)).collect();
        addresses.sort();
        addresses
    }
}

impl FoundAgent {
    /// Returns the agents that a message announces, each with the address that others use most easily. An agent sends
    /// all of its records in one message.
    pub(crate) fn read(message: &Message) -> Vec<Self> {
        if !message.is_response {
            return Vec::new();
        }
        message.records.iter().filter_map(|record| Self::of(record, message)).collect()
    }

    fn of(record: &Record, message: &Message) -> Option<Self> {
        let RecordData::Service { port, host } = &record.data else { return None };
        if record.ttl == 0 || !record.name.is_child_of(&service()) {
            return None;
        }
        let addresses = message.records.iter().filter_map(|other| match other.data {
            RecordData::Address(address) if other.name == *host => Some(address),
            _ => None,
        });
        let texts = message.records.iter().find_map(|other| match &other.data {
            RecordData::Text(texts) if other.name == record.name => Some(texts),
            _ => None,
        })?;
        let value = |key: &str| {
            let value = texts.iter().find_map(|text| text.strip_prefix(key.as_bytes())?.strip_prefix(b"="));
            in_a_line(&String::from_utf8_lossy(value.unwrap_or_default()))
        };
        let address = SocketAddr::new(best(addresses)?, *port);
        Some(Self { name: value("name"), address, version: value("version"), protocol: value("protocol") })
    }
}

/// Returns a text that anyone may have sent as a part of one line.
fn in_a_line(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MAX_LABEL).collect()
}

/// Returns whether other hosts can connect to `address` without naming an interface.
fn is_usable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local()),
    }
}

/// Returns the address of a host that others use most easily.
fn best(addresses: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    addresses.filter(is_usable).min_by_key(|address| (address.is_loopback(), address.is_ipv6(), *address))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn rack(listening: &str) -> AnnouncedAgent {
        AnnouncedAgent {
            name: "rack-1".to_owned(),
            fingerprint: "0f".repeat(32),
            listening: listening.parse().expect("an address"),
            version: "1.2.3".to_owned(),
            protocol: 4,
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    pub(crate) fn asks(name: Name, kind: u16) -> Message {
        Message { questions: vec![Question { name, kind }], ..Message::default() }
    }

    #[test]
    fn an_agent_is_found_as_it_was_announced() {
        let message = rack("192.0.2.1:4747").announcement(&[ip("192.0.2.1")], false);
        let message = Message::read(&message).expect("a message");
        let found = FoundAgent {
            name: "rack-1".to_owned(),
            address: "192.0.2.1:4747".parse().expect("an address"),
            version: "1.2.3".to_owned(),
            protocol: "4".to_owned(),
        };
        assert_eq!(FoundAgent::read(&message), [found]);
        let over = rack("192.0.2.1:4747").announcement(&[ip("192.0.2.1")], true);
        assert_eq!(FoundAgent::read(&Message::read(&over).expect("a message")), []);
    }

    #[test]
    fn agents_of_one_name_do_not_collide() {
        let (one, two) = (rack("192.0.2.1:4747"), AnnouncedAgent { fingerprint: "1f".repeat(32), ..rack("[::]:1") });
        assert!(one.instance() != two.instance() && one.host() != two.host());
        let long = AnnouncedAgent { name: "ö".repeat(40), ..one.clone() };
        assert_ne!(long.instance(), AnnouncedAgent { fingerprint: "1f".repeat(32), ..long.clone() }.instance());
    }

    #[test]
    fn an_agent_has_the_address_that_others_use_most_easily() {
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
    fn only_addresses_that_the_agent_listens_at_are_announced() {
        let all = ["192.0.2.1", "198.51.100.1", "2001:db8::1", "fe80::1"].map(ip);
        for (listening, announced) in [
            ("0.0.0.0:1", &["192.0.2.1", "198.51.100.1"][..]),
            ("[::]:1", &["192.0.2.1", "198.51.100.1", "2001:db8::1"]),
            ("198.51.100.1:1", &["198.51.100.1"]),
            ("203.0.113.1:1", &[]),
        ] {
            let announced: Vec<IpAddr> = announced.iter().map(|text| ip(text)).collect();
            assert_eq!(rack(listening).addresses(all.into_iter()), announced, "{listening}");
        }
    }

    #[test]
    fn only_questions_for_the_agent_are_answered() {
        let agent = rack("0.0.0.0:4747");
        for (name, kind, is_answered) in [
            (service(), kinds::PTR, true),
            (service(), kinds::ANY, true),
            (agent.instance(), kinds::SRV, true),
            (agent.host(), kinds::A, true),
            (service(), kinds::A, false),
            (Name::new(["_ipp", "_tcp", "local"]), kinds::PTR, false),
        ] {
            assert_eq!(agent.is_asked_for(&asks(name.clone(), kind)), is_answered, "{name:?} {kind}");
        }
        let mut known = asks(service(), kinds::PTR);
        let data = RecordData::Pointer(agent.instance());
        known.records.push(Record { name: service(), ttl: OTHER_TTL, data });
        assert!(!agent.is_asked_for(&known), "its sender knows the agent");
        let response = Message { is_response: true, ..asks(service(), kinds::PTR) };
        assert!(!agent.is_asked_for(&response));
    }

    #[test]
    fn text_of_an_announcement_stays_in_its_line() {
        let hostile = AnnouncedAgent {
            name: "rack\t1".to_owned(),
            version: "1\nlinerate: to save it, type: ...".to_owned(),
            ..rack("192.0.2.1:1")
        };
        let message = Message::read(&hostile.announcement(&[ip("192.0.2.1")], false)).expect("a message");
        let [found] = &FoundAgent::read(&message)[..] else { panic!("one agent") };
        assert!(found.version.starts_with("1linerate:") && found.name == "rack1", "{found:?}");
    }
}
