//! The connection to NATS.

use crate::{BusError, Credentials, Role, Subjects};
use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use rand::RngExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Longest pause between two attempts to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Time to connect for the first time.
const FIRST_CONNECTION: Duration = Duration::from_secs(10);

/// Whether the connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Connected.
    Up,
    /// Lost; the client connects again by itself.
    Down,
}

/// A member's connection to its fleet. Clones share it; it connects again by itself, for ever.
#[derive(Debug, Clone)]
pub struct Bus {
    client: Client,
    credentials: Arc<Credentials>,
    subjects: Subjects,
    link: watch::Receiver<Link>,
}

impl Bus {
    /// Connects with `credentials`.
    ///
    /// # Errors
    /// No server answers, or it refuses the credentials.
    pub async fn connect(credentials: Credentials) -> Result<Self, BusError> {
        let servers = credentials.servers.join(", ");
        let key = Arc::new(credentials.key()?);
        let sign = move |nonce: Vec<u8>| {
            let key = Arc::clone(&key);
            async move { key.sign(&nonce).map_err(async_nats::AuthError::new) }
        };
        let (link, watched) = watch::channel(Link::Up);
        let events = move |event: Event| {
            let state = match event {
                Event::Connected => Some(Link::Up),
                Event::Disconnected | Event::Closed => Some(Link::Down),
                _ => None,
            };
            // The first connection is no change.
            link.send_if_modified(|link| state.is_some_and(|state| std::mem::replace(link, state) != state));
            std::future::ready(())
        };
        let mut options = ConnectOptions::new()
            .jwt(credentials.token.clone(), sign)
            .name(format!("linerate {} {}", credentials.role.name(), credentials.name))
            .connection_timeout(FIRST_CONNECTION)
            .max_reconnects(None)
            .reconnect_delay_callback(pause)
            .ping_interval(Duration::from_secs(10))
            .event_callback(events);
        if let Some(authority) = &credentials.authority {
            options = options.tls_client_config(pinned_authority(authority)?);
        }
        // An agent may subscribe to its own subjects only.
        if credentials.role == Role::Invited {
            options = options
                .custom_inbox_prefix(Subjects::of(credentials.fleet.clone()).enrolled(credentials.name.as_str()));
        }
        let connecting = options.connect(credentials.servers.clone());
        let connected = tokio::time::timeout(FIRST_CONNECTION, connecting).await;
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) if is_refusal(&error) => {
                let user = format!("{} {}", credentials.role.name(), credentials.name);
                let remedy = if credentials.role == Role::Invited {
                    "ask the fleet's owner for a new invitation"
                } else {
                    "enrol this host again with a new invitation"
                };
                return Err(BusError::Refused { servers, user, remedy });
            }
            Ok(Err(error)) => return Err(BusError::Unreachable { servers, reason: error.to_string() }),
            Err(_) => {
                let reason = format!("no answer within {} s", FIRST_CONNECTION.as_secs());
                return Err(BusError::Unreachable { servers, reason });
            }
        };
        let subjects = Subjects::of(credentials.fleet.clone());
        Ok(Self { client, credentials: Arc::new(credentials), subjects, link: watched })
    }

    /// Returns the client of NATS.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the credentials of this member.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns the subjects of the fleet.
    pub fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    /// Returns whether the connection stands, and its changes.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.link.clone()
    }

    /// Returns whether the connection stands now.
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Returns the servers' addresses, for messages.
    pub fn servers(&self) -> String {
        self.credentials.servers.join(", ")
    }
}

/// Returns the pause before an attempt to connect again: doubled up to a bound, at a random half of it, so that a fleet
/// does not come back all at once.
fn pause(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt.min(8)).unwrap_or(8);
    let bound = LONGEST_PAUSE.min(Duration::from_millis(100) * 2_u32.pow(doublings));
    bound.mul_f64(rand::rng().random_range(0.5..1.0))
}

fn is_refusal(error: &async_nats::ConnectError) -> bool {
    matches!(error.kind(), ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation)
}

fn pinned_authority(pem: &str) -> Result<rustls::ClientConfig, BusError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let unusable = |reason: String| BusError::Key(format!("the certificate authority of the NATS servers: {reason}"));
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_are_spread() {
        for (attempt, bound) in [(0, 100), (1, 200), (5, 3_200), (30, 10_000)] {
            let bound = Duration::from_millis(bound);
            let pauses: Vec<Duration> = (0..20).map(|_| pause(attempt)).collect();
            assert!(pauses.iter().all(|pause| *pause >= bound / 2 && *pause <= bound), "{pauses:?}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
        }
    }
}
