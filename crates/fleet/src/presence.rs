//! The agents of a fleet as the scheduler sees them: members, and when each was heard.

use async_nats::{Message, Subscriber};
use linerate_bus::{AgentName, Bus, BusError, Member, Presence, Role};
use linerate_model::HostName;
use linerate_schedule::FleetHost;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time without a sign of life after which an agent counts as absent.
const PRESENT: Duration = Duration::from_secs(30);

/// Time without a sign of a second instance after which an agent no longer counts as cloned.
const CLONED: Duration = Duration::from_secs(60);

/// An agent.
#[derive(Debug, Clone)]
struct AgentState {
    labels: BTreeMap<String, String>,
    instance: String,
    heard: Option<Instant>,
    /// Time at which another instance of the same name was heard last.
    cloned: Option<Instant>,
}

/// The agents of a fleet.
#[derive(Debug, Clone, Default)]
pub struct PresentAgents {
    agents: BTreeMap<AgentName, AgentState>,
}

impl PresentAgents {
    /// Reads the members of the fleet and their last signs of life.
    ///
    /// # Errors
    /// The streams are missing.
    pub(crate) async fn read(bus: &Bus) -> Result<Self, BusError> {
        let mut all = Self::default();
        for member in bus.members().await? {
            all.add(member);
        }
        let server_now = bus.server_unix_ns().await?;
        let now = Instant::now();
        for presence in bus.presences().await? {
            let age = Duration::from_nanos(server_now.saturating_sub(presence.published_unix_ns));
            all.take(presence.value, now.checked_sub(age));
        }
        Ok(all)
    }

    /// Subscribes to signs of life.
    ///
    /// # Errors
    /// The connection was closed.
    pub(crate) async fn subscribe(&self, bus: &Bus) -> Result<Subscriber, BusError> {
        let subject = format!("linerate.{}.from.*.presence", bus.subjects().fleet());
        let subscribed = bus.client().subscribe(subject).await;
        subscribed.map_err(|error| BusError::failed("following the agents", error))
    }

    fn add(&mut self, member: Member) {
        if member.role == Role::Agent {
            let state = AgentState { labels: member.labels, instance: String::new(), heard: None, cloned: None };
            self.agents.insert(member.name, state);
        }
    }

    /// Takes a sign of life.
    pub(crate) fn hear(&mut self, message: &Message) {
        if let Ok(presence) = serde_json::from_slice::<Presence>(&message.payload) {
            self.take(presence, Some(Instant::now()));
        }
    }

    fn take(&mut self, presence: Presence, heard: Option<Instant>) {
        let state = self.agents.entry(presence.name).or_insert_with(|| AgentState {
            labels: BTreeMap::new(),
            instance: presence.instance.clone(),
            heard: None,
            cloned: None,
        });
        let was_present = state.heard.is_some_and(|heard| heard.elapsed() < PRESENT);
        // An agent that ends says so, and one that was killed is silent for longer.
        if was_present && !state.instance.is_empty() && state.instance != presence.instance {
            state.cloned = Some(Instant::now());
        }
        if !presence.labels.is_empty() {
            state.labels = presence.labels;
        }
        state.instance = presence.instance;
        state.heard = if presence.leaving { None } else { heard };
    }

    /// Returns the hosts for the planner. A cloned agent counts as absent: its two processes would disturb each other.
    pub(crate) fn hosts(&self) -> Vec<FleetHost> {
        let host = |(name, state): (&AgentName, &AgentState)| FleetHost {
            name: HostName(name.to_string()),
            labels: state.labels.clone(),
            present: state.is_present(),
        };
        self.agents.iter().map(host).collect()
    }

    /// Returns the number of agents that are present.
    pub fn present(&self) -> usize {
        self.agents.values().filter(|state| state.is_present()).count()
    }

    /// Returns each agent with its labels, and whether it is present.
    pub fn all(&self) -> impl Iterator<Item = (&AgentName, &BTreeMap<String, String>, bool)> {
        self.agents.iter().map(|(name, state)| (name, &state.labels, state.is_present()))
    }

    /// Returns the agents that run twice.
    pub fn cloned_agents(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.iter().filter(|(_, state)| state.is_cloned()).map(|(name, _)| name)
    }
}

impl AgentState {
    fn is_present(&self) -> bool {
        !self.is_cloned() && self.heard.is_some_and(|heard| heard.elapsed() < PRESENT)
    }

    fn is_cloned(&self) -> bool {
        self.cloned.is_some_and(|cloned| cloned.elapsed() < CLONED)
    }
}
