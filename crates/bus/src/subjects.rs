//! Subjects of a fleet, and what each role may do with them.

use crate::{AgentName, FleetName, Permissions, Role};

/// Subjects and streams of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subjects {
    fleet: FleetName,
}

impl Subjects {
    /// Subjects of `fleet`.
    pub fn of(fleet: FleetName) -> Self {
        Self { fleet }
    }

    /// Returns the name of the fleet.
    pub fn fleet(&self) -> &FleetName {
        &self.fleet
    }

    /// Returns the subject `name` of `agent`, to which commanders publish.
    pub fn to_agent(&self, agent: &AgentName, name: &str) -> String {
        format!("linerate.{}.agent.{agent}.{name}", self.fleet)
    }

    /// Returns the subject `name` to which `agent` publishes.
    pub fn from_agent(&self, agent: &AgentName, name: &str) -> String {
        format!("linerate.{}.from.{agent}.{name}", self.fleet)
    }

    /// Returns the subject of requests to join with the invitation of this name; `*` is all.
    pub fn enrol(&self, invitation: &str) -> String {
        format!("linerate.{}.enrol.{invitation}", self.fleet)
    }

    /// Returns the subject of answers to requests to join with the invitation of this name; `*` is all.
    pub fn enrolled(&self, invitation: &str) -> String {
        format!("linerate.{}.enrolled.{invitation}", self.fleet)
    }

    /// Returns the subject of the order of this name; `*` is all.
    pub fn order(&self, id: &str) -> String {
        format!("linerate.{}.order.{id}", self.fleet)
    }

    /// Returns the subject of one part of the record of this name; `*` is all.
    pub fn record(&self, id: &str, part: &str) -> String {
        format!("linerate.{}.record.{id}.{part}", self.fleet)
    }

    /// Returns the subject of the last trial of a pair in a mesh; `*` is all.
    pub fn pair(&self, mesh: &str, from: &str, to: &str) -> String {
        format!("linerate.{}.pair.{mesh}.{from}.{to}", self.fleet)
    }

    /// Returns the name of a stream or bucket of the fleet.
    pub fn stream(&self, name: &str) -> String {
        format!("linerate_{}_{name}", self.fleet)
    }

    /// Returns the permissions of a role: what `name` may publish and subscribe to.
    pub fn permissions(&self, role: Role, name: &str) -> Permissions {
        let fleet = &self.fleet;
        match role {
            Role::Agent => Permissions {
                publish: vec![
                    format!("linerate.{fleet}.from.{name}.>"),
                    // By it, two processes with one agent's credentials find each other.
                    format!("linerate.{fleet}.agent.{name}.instance"),
                ],
                subscribe: vec![format!("linerate.{fleet}.agent.{name}.>")],
            },
            Role::Invited => {
                Permissions { publish: vec![self.enrol(name)], subscribe: vec![format!("{}.>", self.enrolled(name))] }
            }
            Role::Viewer => {
                let readable = [self.stream("presence"), self.stream("pairs"), format!("KV_{}", self.stream("state"))];
                let mut publish = vec!["$JS.API.INFO".to_owned()];
                for stream in readable {
                    publish.push(format!("$JS.API.STREAM.INFO.{stream}"));
                    publish.push(format!("$JS.API.STREAM.MSG.GET.{stream}"));
                    publish.push(format!("$JS.API.DIRECT.GET.{stream}.>"));
                    publish.push(format!("$JS.API.CONSUMER.CREATE.{stream}"));
                    publish.push(format!("$JS.API.CONSUMER.CREATE.{stream}.>"));
                    publish.push(format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.>"));
                }
                Permissions { publish, subscribe: vec!["_INBOX.>".to_owned()] }
            }
            Role::Operator => Permissions {
                publish: vec![
                    format!("linerate.{fleet}.agent.>"),
                    "$JS.API.>".to_owned(),
                    "$JS.ACK.>".to_owned(),
                    format!("$KV.{}.>", self.stream("state")),
                ],
                subscribe: vec![format!("linerate.{fleet}.from.>"), "_INBOX.>".to_owned()],
            },
            // The account holds nothing but the fleet.
            Role::Controller => Permissions { publish: vec![">".to_owned()], subscribe: vec![">".to_owned()] },
        }
    }
}
