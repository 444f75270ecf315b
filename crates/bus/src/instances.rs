//! Processes with the credentials of one agent: there may be one at a time.
//!
//! A process that begins publishes a notice to the agent's own subject, which all processes with these credentials
//! receive. One that runs already answers, and the newcomer gives up.

use crate::{Bus, BusError};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time for another process to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// A message between processes with the credentials of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceNotice {
    /// Random name of the process.
    pub instance: String,
    /// Host name of the process, for messages.
    #[serde(default)]
    pub host: String,
    /// Start of the process, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Whether it serves already.
    pub serves: bool,
}

/// What a notice of another process means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherInstance {
    /// It is this process's own notice.
    Own,
    /// The other one gives way; it is to be answered with this process's notice.
    GivesWay,
    /// This process gives way.
    Prevails,
}

/// This process, among those with the same credentials.
#[derive(Debug, Clone)]
pub struct Instances {
    own: InstanceNotice,
}

impl Instances {
    /// Describes this process, which does not serve yet.
    pub fn new(instance: String, host: String, started_unix_ns: u64) -> Self {
        Self { own: InstanceNotice { instance, host, started_unix_ns, serves: false } }
    }

    /// Returns the notice of this process.
    pub fn own(&self) -> &InstanceNotice {
        &self.own
    }

    /// Notes that this process serves.
    pub fn begin_to_serve(&mut self) {
        self.own.serves = true;
    }

    /// Weighs the notice of another process. One that serves prevails over one that does not, then the older one.
    pub fn weigh(&self, other: &InstanceNotice) -> OtherInstance {
        if other.instance == self.own.instance {
            return OtherInstance::Own;
        }
        let rank = |notice: &InstanceNotice| (!notice.serves, notice.started_unix_ns, notice.instance.clone());
        if rank(other) < rank(&self.own) { OtherInstance::Prevails } else { OtherInstance::GivesWay }
    }

    /// Looks for a process that prevails over this one. A process that is connected to the fleet answers at once.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn find_other(&self, bus: &Bus) -> Result<Option<InstanceNotice>, BusError> {
        let subject = bus.subjects().to_agent(&bus.credentials().name, "instance");
        let failed = |error: String| BusError::failed("looking for another process of this agent", error);
        let mut notices = bus.client().subscribe(subject).await.map_err(|error| failed(error.to_string()))?;
        self.announce(bus).await?;
        let search = async {
            while let Some(message) = notices.next().await {
                let Ok(notice) = serde_json::from_slice(&message.payload) else { continue };
                match self.weigh(&notice) {
                    OtherInstance::Prevails => return Some(notice),
                    // It may have begun to listen after this process's notice.
                    OtherInstance::GivesWay => drop(self.announce(bus).await),
                    OtherInstance::Own => {}
                }
            }
            None
        };
        Ok(tokio::time::timeout(ANSWER, search).await.ok().flatten())
    }

    /// Publishes the notice of this process.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn announce(&self, bus: &Bus) -> Result<(), BusError> {
        let subject = bus.subjects().to_agent(&bus.credentials().name, "instance");
        let notice = serde_json::to_vec(&self.own).expect("a notice has text keys only");
        let published = bus.client().publish(subject, notice.into()).await;
        published.map_err(|error| BusError::failed("looking for another process of this agent", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(instance: &str, started_unix_ns: u64, serves: bool) -> Instances {
        let mut process = Instances::new(instance.to_owned(), String::new(), started_unix_ns);
        process.own.serves = serves;
        process
    }

    #[test]
    fn one_of_two_processes_prevails() {
        let all = [process("a", 5, true), process("b", 5, true), process("c", 1, false), process("d", 2, false)];
        for (left, first) in all.iter().enumerate() {
            for (right, second) in all.iter().enumerate() {
                let expected = match left.cmp(&right) {
                    std::cmp::Ordering::Equal => OtherInstance::Own,
                    std::cmp::Ordering::Less => OtherInstance::GivesWay,
                    std::cmp::Ordering::Greater => OtherInstance::Prevails,
                };
                assert_eq!(first.weigh(second.own()), expected, "{left} {right}");
            }
        }
    }
}
