//! Questions to a device, repeated until answered or given up.

use super::error::SnmpError;
use super::target::{Access, AuthProtocol, PrivacyProtocol, Secret, Target};
use snmp2::v3::{self, Cipher, KeyExtension, Security};
use snmp2::{AsyncSession, Oid, Pdu, Value};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Time that a request waits for its answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of attempts for a request.
const ATTEMPTS: u32 = 3;
/// Rows asked for at once. Few enough that the answer fits a usual frame.
const ROWS: u32 = 24;
/// A column has no more rows than this. A chassis of many thousand ports has fewer; a faulty device goes on for ever.
const MOST_ROWS: usize = 65_536;
/// Pause before asking a port again that nothing listened on: its service may be starting.
const CLOSED_PAUSE: Duration = Duration::from_millis(200);

/// The error status of what may not be read so, RFC 3416 section 3.
const AUTHORIZATION_ERROR: u32 = 16;

/// The name of an object or column: its numbers.
pub(super) type Name = Vec<u64>;

/// A value that a device gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Counter32(u32),
    Counter64(u64),
    Number(i64),
    Text(String),
}

impl Answer {
    /// Converts a value. `None` for types that linerate never requests, and for the marks of an absent object.
    fn from_value(value: &Value<'_>) -> Option<Self> {
        match *value {
            Value::Counter32(count) => Some(Self::Counter32(count)),
            Value::Counter64(count) => Some(Self::Counter64(count)),
            Value::Integer(number) => Some(Self::Number(number)),
            Value::Unsigned32(number) | Value::Timeticks(number) => Some(Self::Number(number.into())),
            Value::OctetString(text) => Some(Self::Text(String::from_utf8_lossy(text).trim().to_owned())),
            _ => None,
        }
    }

    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<i64> {
        match *self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn counter_32(&self) -> Option<u32> {
        match *self {
            Self::Counter32(count) => Some(count),
            _ => None,
        }
    }
}

/// The way to a device.
pub(super) struct Wire {
    target: Target,
    address: SocketAddr,
    /// None until asked, and after a question that got no proper answer: its answer may still come, and must not be
    /// taken for that to the next question.
    connection: Option<AsyncSession>,
}

/// Reason for the failure of one attempt.
enum Fault {
    Socket(io::Error),
    Snmp(snmp2::Error),
    /// The device answered with an error status (RFC 3416 section 3).
    Status(u32),
    Silent,
}

impl Wire {
    pub(super) async fn new(target: &Target) -> Result<Self, SnmpError> {
        let resolve = |source| SnmpError::Resolve { host: target.host.clone(), source };
        let address = tokio::net::lookup_host((target.host.as_str(), target.port))
            .await
            .map_err(resolve)?
            .next()
            .ok_or_else(|| resolve(io::Error::new(io::ErrorKind::NotFound, "no address")))?;
        Ok(Self { target: target.clone(), address, connection: None })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The values of these objects, in order; none where the device has no such object.
    pub(super) async fn get(&mut self, names: &[Name]) -> Result<Vec<Option<Answer>>, SnmpError> {
        let answers = self.ask(names, None).await?;
        Ok(names.iter().map(|name| answers.iter().find(|(got, _)| got == name)?.1.clone()).collect())
    }

    /// The rows of a column, each with its index.
    pub(super) async fn column(&mut self, column: &[u64]) -> Result<Vec<(Name, Answer)>, SnmpError> {
        let mut rows = Vec::new();
        let mut last = column.to_vec();
        loop {
            let answers = self.ask(std::slice::from_ref(&last), Some(ROWS)).await?;
            if answers.is_empty() {
                return Ok(rows);
            }
            for (name, answer) in answers {
                // The device goes on into the next column or table; a faulty one goes round in circles.
                if !name.starts_with(column) || name <= last {
                    return Ok(rows);
                }
                if rows.len() == MOST_ROWS {
                    let reason = format!("a table of more than {MOST_ROWS} rows");
                    return Err(SnmpError::Answer { address: self.address, reason });
                }
                if let Some(answer) = answer {
                    rows.push((name[column.len()..].to_vec(), answer));
                }
                last = name;
            }
        }
    }

    /// Asks for these objects, or with `rows` for so many that follow the first of them.
    async fn ask(&mut self, names: &[Name], rows: Option<u32>) -> Result<Vec<(Name, Option<Answer>)>, SnmpError> {
        let mut fault = Fault::Silent;
        for _ in 0..ATTEMPTS {
            let connection = self.connection.take();
            fault = match timeout(REPLY_TIMEOUT, attempt(connection, &self.target, self.address, names, rows)).await {
                Ok(Ok((connection, answers))) => {
                    self.connection = Some(connection);
                    return Ok(answers);
                }
                Ok(Err(fault)) => fault,
                Err(_) => Fault::Silent,
            };
            if matches!(fault, Fault::Snmp(snmp2::Error::Receive | snmp2::Error::Send)) {
                sleep(CLOSED_PAUSE).await;
            }
        }
        Err(self.error(fault))
    }

    fn error(&self, fault: Fault) -> SnmpError {
        let address = self.address;
        let user = match &self.target.access {
            Access::Community(_) => None,
            Access::User { name, .. } => Some(name.clone()),
        };
        match (fault, user) {
            (Fault::Silent, user) => {
                SnmpError::Silent { address, waited: REPLY_TIMEOUT, times: ATTEMPTS, user: user.is_some() }
            }
            (Fault::Socket(source), _) => SnmpError::Socket { address, source },
            (Fault::Snmp(snmp2::Error::Receive | snmp2::Error::Send), _) => SnmpError::Closed { address },
            // Of a device that signs, any report is unsigned; of one that need not, the crate calls it a wrong type.
            (Fault::Snmp(snmp2::Error::AuthFailure(v3::AuthErrorKind::NotAuthenticated)), Some(user))
            | (Fault::Snmp(snmp2::Error::AsnWrongType), Some(user)) => {
                let reason = "it reports an unknown user, a wrong password or too low a level".to_owned();
                SnmpError::Refused { address, user, reason }
            }
            (Fault::Snmp(error @ (snmp2::Error::AuthFailure(_) | snmp2::Error::Crypto(_))), Some(user)) => {
                SnmpError::Refused { address, user, reason: error.to_string() }
            }
            (Fault::Status(AUTHORIZATION_ERROR), Some(user)) => {
                let reason = "it lets this user read nothing at this level".to_owned();
                SnmpError::Refused { address, user, reason }
            }
            (Fault::Snmp(error), _) => SnmpError::Answer { address, reason: error.to_string() },
            (Fault::Status(status), _) => SnmpError::Answer { address, reason: format!("error status {status}") },
        }
    }
}

/// One question and its answer. The connection comes back only with a proper answer.
async fn attempt(
    connection: Option<AsyncSession>,
    target: &Target,
    address: SocketAddr,
    names: &[Name],
    rows: Option<u32>,
) -> Result<(AsyncSession, Vec<(Name, Option<Answer>)>), Fault> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => connect(target, address).await?,
    };
    let oids = names
        .iter()
        .map(|name| Oid::from(name).map_err(|_| Fault::Snmp(snmp2::Error::AsnParse)))
        .collect::<Result<Vec<_>, _>>()?;
    let oids: Vec<&Oid<'_>> = oids.iter().collect();
    // The first answer of version 3 may only bring the device's clock; then the question is repeated.
    let mut may_repeat = true;
    loop {
        let result = match rows {
            Some(rows) => connection.getbulk(&oids, 0, rows).await,
            None => connection.get_many(&oids).await,
        };
        match result {
            Ok(pdu) if pdu.error_status != 0 => return Err(Fault::Status(pdu.error_status)),
            Ok(pdu) => {
                let answers = answers(&pdu);
                return Ok((connection, answers));
            }
            Err(snmp2::Error::AuthUpdated) if may_repeat => may_repeat = false,
            Err(error) => return Err(Fault::Snmp(error)),
        }
    }
}

fn answers(pdu: &Pdu<'_>) -> Vec<(Name, Option<Answer>)> {
    pdu.varbinds
        .clone()
        .map(|(name, value)| (name.iter().map(Iterator::collect).unwrap_or_default(), Answer::from_value(&value)))
        .collect()
}

/// Reads an answer of version 2c, or of version 3 to a user without a password.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_answer(bytes: &[u8]) {
    if let Ok(pdu) = Pdu::from_bytes(bytes) {
        let _ = answers(&pdu);
    }
    if let Ok(pdu) = Pdu::from_bytes_with_security(bytes, Some(&mut security("user", None, None))) {
        let _ = answers(&pdu);
    }
}

async fn connect(target: &Target, address: SocketAddr) -> Result<AsyncSession, Fault> {
    match &target.access {
        Access::Community(community) => {
            AsyncSession::new_v2c(address, community.bytes(), 1).await.map_err(Fault::Socket)
        }
        Access::User { name, auth, privacy } => {
            let security = security(name, auth.as_ref(), privacy.as_ref());
            let mut connection = AsyncSession::new_v3(address, 1, security).await.map_err(Fault::Socket)?;
            connection.init().await.map_err(Fault::Snmp)?;
            Ok(connection)
        }
    }
}

/// The user in the terms of the crate.
fn security(
    name: &str,
    auth: Option<&(AuthProtocol, Secret)>,
    privacy: Option<&(PrivacyProtocol, Secret)>,
) -> Security {
    let Some((auth_protocol, password)) = auth else {
        return Security::new(name.as_bytes(), &[]).with_auth(v3::Auth::NoAuthNoPriv);
    };
    let security = Security::new(name.as_bytes(), password.bytes()).with_auth_protocol(match auth_protocol {
        AuthProtocol::Md5 => v3::AuthProtocol::Md5,
        AuthProtocol::Sha1 => v3::AuthProtocol::Sha1,
        AuthProtocol::Sha224 => v3::AuthProtocol::Sha224,
        AuthProtocol::Sha256 => v3::AuthProtocol::Sha256,
        AuthProtocol::Sha384 => v3::AuthProtocol::Sha384,
        AuthProtocol::Sha512 => v3::AuthProtocol::Sha512,
    });
    let Some((privacy_protocol, password)) = privacy else {
        return security.with_auth(v3::Auth::AuthNoPriv);
    };
    let (cipher, extension) = match privacy_protocol {
        PrivacyProtocol::Des => (Cipher::Des, KeyExtension::Blumenthal),
        PrivacyProtocol::Aes128 => (Cipher::Aes128, KeyExtension::Blumenthal),
        PrivacyProtocol::Aes192 => (Cipher::Aes192, KeyExtension::Blumenthal),
        PrivacyProtocol::Aes256 => (Cipher::Aes256, KeyExtension::Blumenthal),
        PrivacyProtocol::Aes192Cisco => (Cipher::Aes192, KeyExtension::Reeder),
        PrivacyProtocol::Aes256Cisco => (Cipher::Aes256, KeyExtension::Reeder),
    };
    security
        .with_auth(v3::Auth::AuthPriv { cipher, privacy_password: password.bytes().to_vec() })
        .with_key_extension_method(extension)
}
