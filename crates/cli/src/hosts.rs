//! Names on the command line become agents: join lines, `local`, lab hosts.

use crate::exit::Failure;
use linerate_agent::{Agent, AgentOptions, AllowedFolders, Identity, Limits, NfsService, Token};
use linerate_model::{HostName, Join, Path};
use linerate_runner::Peers;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

/// The name of this machine.
pub(crate) const LOCAL: &str = "local";

/// The hosts known by name: those of the lab a command runs in, or of a lab that was kept up.
#[derive(Debug, Default)]
pub(crate) struct HostBook {
    lab: BTreeMap<HostName, Join>,
}

/// Who takes part: the first host's side opens connections to the second.
#[derive(Debug)]
pub(crate) struct Parties {
    openers: Vec<Party>,
    listener: Party,
}

/// A host as given.
#[derive(Debug, Clone)]
struct Party {
    /// The name it goes by in the record: never a join line, which holds secrets.
    name: HostName,
    join: Option<Join>,
}

/// Reads `A,B sink`, or `sink` alone for this machine to the sink.
pub(crate) fn parties(hosts: &[String]) -> Result<Parties, String> {
    let (openers, listener) = match hosts {
        [listener] => (LOCAL, listener),
        [openers, listener] => (openers.as_str(), listener),
        _ => return Err("name a source and a sink, or a sink alone".to_owned()),
    };
    let openers: Vec<Party> = openers.split(',').map(party).collect::<Result<_, _>>()?;
    let listener = party(listener)?;
    for (index, opener) in openers.iter().enumerate() {
        if openers[..index].iter().any(|other| other.name == opener.name) {
            return Err(format!(
                "{} is named twice as a source; for more flows from one host use --flows",
                opener.name
            ));
        }
    }
    if openers.len() > 1 && openers.iter().any(|opener| opener.name == listener.name) {
        return Err(format!("{} cannot be a source and the sink at once", listener.name));
    }
    Ok(Parties { openers, listener })
}

/// Hosts that open no connections to each other, and the names they go by, in their order; some may be the same.
pub(crate) fn together(hosts: &[&str]) -> Result<(Parties, Vec<HostName>), String> {
    let all: Vec<Party> = hosts.iter().map(|host| party(host)).collect::<Result<_, _>>()?;
    let names = all.iter().map(|party| party.name.clone()).collect();
    let (listener, openers) = all.split_first().ok_or("name a host")?;
    Ok((Parties { openers: openers.to_vec(), listener: listener.clone() }, names))
}

fn party(text: &str) -> Result<Party, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a host's name is empty; give a join line, `local`, or a lab host's name".to_owned());
    }
    if text.contains("://") {
        let join: Join = text.parse().map_err(|error| format!("{error}"))?;
        return Ok(Party { name: HostName(join.address()), join: Some(join) });
    }
    Ok(Party { name: text.into(), join: None })
}

impl Parties {
    /// One path from each opener to the listener.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let path = |opener: &Party| Path { opener: opener.name.clone(), listener: self.listener.name.clone() };
        self.openers.iter().map(path).collect()
    }

    /// Whether that host takes part.
    pub(crate) fn has(&self, name: &HostName) -> bool {
        self.all().any(|party| party.name == *name)
    }

    fn all(&self) -> impl Iterator<Item = &Party> {
        self.openers.iter().chain([&self.listener])
    }
}

/// The agents of a run. An agent of this process lives as long as this.
pub(crate) struct Company {
    pub(crate) peers: Peers,
    local: Option<Agent>,
}

impl Company {
    /// Stops this process's own agent.
    pub(crate) async fn dismiss(self) {
        if let Some(agent) = self.local {
            agent.shutdown().await;
        }
    }
}

impl HostBook {
    /// The hosts of a lab.
    pub(crate) fn of_lab(hosts: &BTreeMap<HostName, Join>) -> Self {
        Self { lab: hosts.clone() }
    }

    /// Source and sink, where one host alone is the sink: the source is this machine, or in a lab, which this machine is no
    /// part of, the first of its other hosts.
    pub(crate) fn pair(&self, hosts: &[String]) -> Vec<String> {
        let [sink] = hosts else { return hosts.to_vec() };
        let source = self.lab.keys().map(|host| &host.0).find(|host| *host != sink);
        vec![source.map_or_else(|| LOCAL.to_owned(), String::clone), sink.clone()]
    }

    /// Reaches every agent that takes part.
    pub(crate) async fn gather(&self, parties: &Parties) -> Result<Company, Failure> {
        let mut company = Company { peers: Peers::default(), local: None };
        for party in parties.all() {
            self.reach(party, &mut company).await?;
        }
        Ok(company)
    }

    /// Reaches one more agent, and says the name it goes by.
    pub(crate) async fn admit(&self, host: &str, company: &mut Company) -> Result<HostName, Failure> {
        let party = party(host).map_err(Failure::usage)?;
        self.reach(&party, company).await?;
        Ok(party.name)
    }

    async fn reach(&self, party: &Party, company: &mut Company) -> Result<(), Failure> {
        if company.peers.find(&party.name).is_ok() {
            return Ok(());
        }
        let join = match &party.join {
            Some(join) => join.clone(),
            None => self.named(&party.name, company).await?,
        };
        company.peers.add(party.name.clone(), &join).await.map_err(Failure::measure)
    }

    async fn named(&self, name: &HostName, company: &mut Company) -> Result<Join, Failure> {
        if let Some(join) = self.lab.get(name) {
            return Ok(join.clone());
        }
        if name.0 == LOCAL {
            let agent = start_local().await?;
            let join = agent.join().clone();
            company.local = Some(agent);
            return Ok(join);
        }
        // A command in a lab must not reach into another one that was kept.
        let kept = if self.lab.is_empty() { linerate_lab::kept().map_err(Failure::measure)? } else { None };
        let kept = kept.map(|kept| kept.hosts()).unwrap_or_default();
        if let Some(join) = kept.get(name) {
            return Ok(join.clone());
        }
        let known: Vec<&str> = self.lab.keys().chain(kept.keys()).map(|host| host.0.as_str()).collect();
        let lab = if known.is_empty() {
            "no lab is up (`linerate lab -- COMMAND` runs a command in one)".to_owned()
        } else {
            format!("the lab's hosts are {}", known.join(", "))
        };
        Err(Failure::usage(format!(
            "no host is called `{name}`: give the join line its agent printed (linerate://...), `{LOCAL}` for this machine, or \
             a lab host's name; {lab}"
        )))
    }
}

/// All folders, as far as the user's own permissions go.
fn everywhere() -> AllowedFolders {
    AllowedFolders { allowed: vec![PathBuf::from("/")], scratch: Some(std::env::temp_dir()) }
}

/// An agent in this process, for this process only.
pub(crate) async fn start_local() -> Result<Agent, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| {
        Failure::measure(format!("cannot listen on 127.0.0.1 for this process's own agent: {error}"))
    })?;
    let options = AgentOptions {
        listener,
        advertise: None,
        identity: Identity::generate().map_err(Failure::measure)?,
        token: Token::generate(),
        name: LOCAL.into(),
        // Who runs this program may send frames, and read and write files, by other programs too.
        limits: Limits { frames: true, copies: everywhere(), ..Limits::default() },
        link_speeds: BTreeMap::new(),
        data_addresses: Vec::new(),
        timeouts: linerate_agent::Timeouts::default(),
        nfs: NfsService::default(),
    };
    Agent::start(options).await.map_err(Failure::measure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hosts: &[&str]) -> Result<Vec<String>, String> {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Ok(parties(&hosts)?.paths().iter().map(|path| format!("{}>{}", path.opener, path.listener)).collect())
    }

    #[test]
    fn one_host_is_the_sink_and_commas_make_several_sources() {
        assert_eq!(names(&["b"]), Ok(vec!["local>b".to_owned()]));
        assert_eq!(names(&["a,c", "b"]), Ok(vec!["a>b".to_owned(), "c>b".to_owned()]));
        assert!(names(&["a,a", "b"]).is_err() && names(&["a,b", "b"]).is_err() && names(&["a,", "b"]).is_err());
    }

    #[test]
    fn in_a_lab_another_host_is_the_source() {
        let join: Join =
            format!("linerate://192.0.2.1:4747#{}.{}", "0f".repeat(16), "ab".repeat(32)).parse().expect("a join line");
        let lab =
            HostBook::of_lab(&BTreeMap::from(["a".into(), "b".into()].map(|host: HostName| (host, join.clone()))));
        let pair =
            |book: &HostBook, hosts: &[&str]| book.pair(&hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
        assert_eq!(pair(&lab, &["b"]), ["a", "b"]);
        assert_eq!(pair(&lab, &["a"]), ["b", "a"]);
        assert_eq!(pair(&lab, &["local", "b"]), ["local", "b"]);
        assert_eq!(pair(&HostBook::default(), &["b"]), ["local", "b"]);
    }

    #[test]
    fn secrets_do_not_become_names() {
        let line = format!("linerate://192.0.2.1:4747#{}.{}", "0f".repeat(16), "ab".repeat(32));
        assert_eq!(names(&[&line]), Ok(vec!["local>192.0.2.1:4747".to_owned()]));
    }
}
