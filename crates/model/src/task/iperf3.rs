//! The other end of a stream where iperf3 runs and no agent.

use crate::checked::{OutOfRange, check_when_read, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The end of a path where iperf3 runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Iperf3End {
    /// A server that is there already.
    Server(Iperf3Server),
    /// A client that began the test by itself, at an agent that serves such. Nobody can ask for such a trial.
    Client(Iperf3Client),
}

/// An iperf3 client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Iperf3Client {
    /// Its address.
    pub address: IpAddr,
}

/// An iperf3 server. It takes one test at a time, and says what its end counted when the test is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Iperf3Server {
    /// Its address.
    pub address: IpAddr,
    /// Its port, TCP and UDP.
    pub port: u16,
    /// Whether it is asked for its own report (`--get-server-output` of iperf3), which then stands among what it told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub report: bool,
    /// Who logs in; none where the server asks for no login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Iperf3Login>,
}

impl Iperf3Server {
    /// The port that iperf3 listens on unless told otherwise.
    pub const PORT: u16 = 5201;
    /// Bytes that it takes or gives in one call at the most.
    pub const MOST_TCP_BYTES: u64 = 1 << 20;
    /// Flows of each direction at the most.
    pub const MOST_FLOWS: u16 = 128;
    /// Warm-up at the most, in whole seconds.
    pub const MOST_WARMUP_S: u64 = 600;
}

/// Who logs in to an iperf3 server. The user's password is not a part of it: it must not get into a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Iperf3Login {
    /// The user's name (`--username` of iperf3).
    pub user: String,
    /// The server's public key, which the login is encrypted with: RSA, as PEM (`--rsa-public-key-path` of iperf3 names a file of it).
    /// Its text, not the name of a file: another host may ask the server.
    pub public_key: String,
}

impl Iperf3Login {
    /// Bytes of a user's name at the most.
    pub const MOST_USER_BYTES: usize = 256;
    /// Bytes of a public key at the most. One of 8,192 bits has 1,500.
    pub const MOST_KEY_BYTES: usize = 4_096;

    fn check(&self) -> Result<(), OutOfRange> {
        within("bytes of a user's name", self.user.len(), 1..=Self::MOST_USER_BYTES)?;
        within("bytes of a public key", self.public_key.len(), 1..=Self::MOST_KEY_BYTES)
    }
}

check_when_read!(Iperf3Login);
