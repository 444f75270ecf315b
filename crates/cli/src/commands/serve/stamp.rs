//! `linerate serve --stamp`: a STAMP reflector next to the agent.

use super::network;
use crate::exit::Failure;
use crate::output::{language, say};
use crate::stamp_key;
use linerate_agent::IpNet;
use linerate_engine::{AllowedPeers, own_with_zone};
use linerate_probes::stamp::{Key, Mode, ReflectorOptions, StampService, local_networks};
use linerate_report::said;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Options of the STAMP reflector.
#[derive(Debug, clap::Args)]
pub(super) struct StampOptions {
    /// Answer STAMP senders too [port: 862]
    ///
    /// Runs a Session-Reflector (RFC 8762, RFC 8972) on this UDP port, at the agent's address unless ADDRESS:PORT names another.
    /// It answers senders at private, loopback and link-local addresses, or in the networks of --allow-peer; --stamp-allow names others.
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "862"
    )]
    stamp: Option<ListenAddress>,

    /// Answer only STAMP packets with an HMAC by the key in this file, in hexadecimal digits (`openssl rand -hex 32`)
    #[arg(long, value_name = "FILE", requires = "stamp", hide_short_help = true)]
    stamp_key_file: Option<PathBuf>,

    /// Network or address of STAMP senders that get replies, or `any`; may be repeated [default: those of --allow-peer, or private,
    /// loopback and link-local addresses]
    #[arg(long, value_name = "NETWORK", requires = "stamp", value_parser = networks, hide_short_help = true)]
    stamp_allow: Vec<Networks>,

    /// Most STAMP replies per second; one source gets a tenth of them
    #[arg(
        long,
        value_name = "PACKETS/s",
        requires = "stamp",
        default_value_t = ReflectorOptions::default().max_rate,
        value_parser = clap::value_parser!(u32).range(1..),
        hide_short_help = true
    )]
    stamp_rate: u32,
}

/// Port of the reflector, and its address unless it is the agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListenAddress {
    address: Option<IpAddr>,
    port: u16,
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(port) = text.parse() {
            return Ok(Self { address: None, port });
        }
        let both: SocketAddr = text
            .parse()
            .map_err(|_| "write it like --stamp=8862, --stamp=192.0.2.1:862 or --stamp=[2001:db8::1]:862".to_owned())?;
        Ok(Self { address: Some(both.ip()), port: both.port() })
    }
}

/// Networks that one value of an option names.
#[derive(Debug, Clone)]
struct Networks(Vec<IpNet>);

fn networks(text: &str) -> Result<Networks, String> {
    let names = if text == "any" { &["0.0.0.0/0", "::/0"][..] } else { &[text] };
    let networks = names.iter().map(|name| network(name)).collect::<Result<_, _>>();
    networks.map(Networks).map_err(|error| format!("{error}, or `any`"))
}

/// Sources that a reflector answers, by the option that names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sources {
    /// --stamp-allow.
    Allowed,
    /// --allow-peer.
    Peers,
    /// Neither: [`local_networks`].
    Local,
}

/// A reflector that is to be started.
pub(super) struct StampReflector {
    address: SocketAddr,
    options: ReflectorOptions,
    sources: Sources,
}

impl StampOptions {
    /// Port of the reflector.
    pub(super) fn port(&self) -> Option<u16> {
        self.stamp.map(|listen| listen.port)
    }

    /// Returns the reflector of an agent at `agent` that peers of `peers` may use. `None` without `--stamp`.
    ///
    /// # Errors
    /// The key file cannot be read, others can read it too, or it contains no key.
    pub(super) fn reflector(&self, agent: IpAddr, peers: &[IpNet]) -> Result<Option<StampReflector>, Failure> {
        let Some(ListenAddress { address, port }) = self.stamp else { return Ok(None) };
        let mode = match &self.stamp_key_file {
            Some(file) => {
                let digits = stamp_key::read("--stamp-key-file", file).map_err(Failure::usage)?;
                Mode::Authenticated(Key::from_hex(&digits).map_err(Failure::usage)?)
            }
            None => Mode::Unauthenticated,
        };
        let allowed: Vec<IpNet> = self.stamp_allow.iter().flat_map(|networks| networks.0.iter().copied()).collect();
        let (sources, networks) = match (allowed.is_empty(), peers.is_empty()) {
            (false, _) => (Sources::Allowed, allowed),
            (true, false) => (Sources::Peers, peers.to_vec()),
            (true, true) => (Sources::Local, local_networks()),
        };
        let allowed = AllowedPeers::only(networks);
        let options = ReflectorOptions { mode, allowed, max_rate: self.stamp_rate, ..ReflectorOptions::default() };
        let address = own_with_zone(SocketAddr::new(address.unwrap_or(agent), port));
        Ok(Some(StampReflector { address, options, sources }))
    }
}

/// Starts a reflector, and says where it listens and which senders it answers.
pub(super) fn serve(reflector: StampReflector) -> Result<StampService, Failure> {
    let StampReflector { address, options, sources } = reflector;
    let is_authenticated = matches!(options.mode, Mode::Authenticated(_));
    let service = StampService::start(&[address], options).map_err(Failure::measure)?;
    let listening = service.addresses().first().map_or(address, |address| *address);
    say(&if is_authenticated {
        said!(
            language(),
            "serve-stamp-authenticated",
            "linerate: answers STAMP senders with the key at {address}, UDP port {port}",
            address = listening.ip().to_string(),
            port = listening.port().to_string()
        )
    } else {
        said!(
            language(),
            "serve-stamp",
            "linerate: answers STAMP senders at {address}, UDP port {port}",
            address = listening.ip().to_string(),
            port = listening.port().to_string()
        )
    });
    if sources == Sources::Local && !listening.ip().is_loopback() {
        say(&said!(
            language(),
            "serve-stamp-local",
            "linerate: STAMP senders outside private, loopback and link-local networks get no reply; --stamp-allow NETWORK allows them"
        ));
    }
    Ok(service)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use linerate_testsuite::files::set_mode;
    use std::fs::write;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: StampOptions,
    }

    fn parsed(options: &[&str]) -> Result<StampOptions, String> {
        let line = Line::try_parse_from([&["serve"], options].concat());
        line.map(|line| line.options).map_err(|error| error.to_string())
    }

    fn reflector(options: &[&str], peers: &[IpNet]) -> Option<StampReflector> {
        let agent = "192.0.2.7".parse().expect("an address");
        parsed(options).expect("options").reflector(agent, peers).map_err(|_| ()).expect("a reflector")
    }

    #[test]
    fn the_reflector_listens_at_the_agents_address_by_default() {
        assert!(reflector(&[], &[]).is_none());
        for (option, address) in [
            ("--stamp", "192.0.2.7:862"),
            ("--stamp=8862", "192.0.2.7:8862"),
            ("--stamp=127.0.0.1:8862", "127.0.0.1:8862"),
            ("--stamp=[::1]:862", "[::1]:862"),
        ] {
            let reflector = reflector(&[option], &[]).expect("a reflector");
            assert_eq!(reflector.address.to_string(), address, "{option}");
        }
        for wrong in ["--stamp=box.example:862", "--stamp=192.0.2.1", "--stamp=99999"] {
            assert!(parsed(&[wrong]).err().is_some_and(|error| error.contains("--stamp=8862")), "{wrong}");
        }
    }

    #[test]
    fn only_local_senders_get_replies_unless_others_are_named() {
        let peers: [IpNet; 1] = ["198.18.0.0/15".parse().expect("a network")];
        let stamp: &[&str] = &["--stamp"];
        let allow: &[&str] = &["--stamp", "--stamp-allow", "203.0.113.0/24"];
        let any: &[&str] = &["--stamp", "--stamp-allow", "any"];
        for (options, peers, answered) in [
            (stamp, &[][..], [true, false, false]),
            (stamp, &peers[..], [false, true, false]),
            (allow, &peers[..], [false, false, true]),
            (any, &[][..], [true, true, true]),
        ] {
            let allowed = reflector(options, peers).expect("a reflector").options.allowed;
            let sources = ["10.0.0.1", "198.18.0.1", "203.0.113.1"].map(|source| source.parse().expect("an address"));
            assert_eq!(sources.map(|source: IpAddr| allowed.allow(source)), answered, "{options:?}");
        }
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        let name = file.to_str().expect("UTF-8").to_owned();
        let error = stamp_key::read("--stamp-key-file", &file).expect_err("there is none");
        assert!(error.contains(&name) && error.contains("openssl rand"), "{error}");
        write(&file, "00".repeat(32)).expect("written");
        set_mode(&file, 0o644);
        let error = stamp_key::read("--stamp-key-file", &file).expect_err("others can read it");
        assert!(error.contains(&name) && error.contains("chmod"), "{error}");
        set_mode(&file, 0o600);
        assert!(stamp_key::read("--stamp-key-file", &file).is_ok());
        write(&file, "00").expect("written");
        assert!(stamp_key::read("--stamp-key-file", &file).err().is_some_and(|error| error.contains("16")));
        assert!(parsed(&["--stamp-key-file", &name]).is_err(), "it needs --stamp");
    }
}
