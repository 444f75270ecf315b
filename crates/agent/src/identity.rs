//! The agent's certificate and its key. No authority signs it: clients pin its fingerprint.

use crate::{StartError, private_file};
use linerate_control::fingerprint;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A certificate and its private key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new one, for an agent that does not outlive its use.
    pub fn generate() -> Result<Self, StartError> {
        Self::read(&generate_pem()?).map_err(StartError::Identity)
    }

    /// The one kept in `directory`, made on first use: a standing agent keeps its fingerprint.
    pub fn load_or_create(directory: &Path) -> Result<Self, StartError> {
        let path = directory.join("agent.pem");
        let pem = private_file::read_or_create(&path, generate_pem)?;
        Self::read(&pem).map_err(|problem| StartError::Corrupt { path, expected: "a certificate and its key", problem })
    }

    fn read(pem: &str) -> Result<Self, String> {
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| format!("certificate: {e}"))?;
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|e| format!("private key: {e}"))?;
        let identity = Self { certificate, key };
        identity.server_config().map_err(|error| error.to_string())?;
        Ok(identity)
    }

    /// SHA-256 of the certificate, in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.certificate)
    }

    /// TLS as the agent speaks it.
    pub(crate) fn server_config(&self) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Shows the fingerprint only.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint()).finish()
    }
}

/// A new key and certificate in one PEM text, so that a file of them is whole or absent.
fn generate_pem() -> Result<String, StartError> {
    let failed = |error: rcgen::Error| StartError::Identity(error.to_string());
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["linerate-agent".to_owned()]).map_err(failed)?;
    Ok(format!("{}{}", cert.pem(), signing_key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_identity_keeps_its_fingerprint_and_new_ones_differ() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Identity::load_or_create(directory.path()).expect("created").fingerprint();
        assert_eq!(Identity::load_or_create(directory.path()).expect("read").fingerprint(), first);
        assert_ne!(Identity::generate().expect("generated").fingerprint(), first);
        assert_eq!(first.len(), 64);
    }

    #[test]
    fn a_broken_or_mismatched_file_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        Identity::load_or_create(directory.path()).expect("created");
        let path = directory.path().join("agent.pem");
        let (mine, other) = (std::fs::read_to_string(&path).expect("read"), generate_pem().expect("generated"));
        let key_at = |text: &str| text.find("-----BEGIN PRIVATE").expect("a key");
        let foreign_key = format!("{}{}", &mine[..key_at(&mine)], &other[key_at(&other)..]);
        for content in ["", &mine[..key_at(&mine)], &foreign_key] {
            std::fs::write(&path, content).expect("write");
            let error = Identity::load_or_create(directory.path()).expect_err("broken").to_string();
            assert!(error.contains("agent.pem") && error.contains("delete it"), "{error}");
        }
    }
}
