//! Trust in one certificate, known by its fingerprint, instead of in authorities.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::{Arc, OnceLock};
use subtle::ConstantTimeEq as _;

/// Returns the SHA-256 of a certificate, in hexadecimal digits.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fingerprint of the one certificate that is trusted. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pinned(Arc<OnceLock<String>>);

impl Pinned {
    /// Trusts the certificate with this fingerprint.
    pub(crate) fn known(fingerprint: &str) -> Self {
        Self(Arc::new(OnceLock::from(fingerprint.to_ascii_lowercase())))
    }

    /// Trusts the first certificate that a peer presents.
    pub(crate) fn first_seen() -> Self {
        Self::default()
    }

    /// Returns the fingerprint. `None` before the first certificate.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Returns a TLS configuration that accepts only the certificate with this SHA-256 fingerprint.
///
/// # Errors
/// The cryptography of this build does not support TLS 1.3.
pub fn client_config(fingerprint: &str) -> Result<ClientConfig, Error> {
    pinned_config(&Pinned::known(fingerprint))
}

/// Returns a TLS configuration that accepts only the pinned certificate.
///
/// # Errors
/// The cryptography of this build does not support TLS 1.3.
pub(crate) fn pinned_config(pinned: &Pinned) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pin = Pin { pinned: pinned.clone(), provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pin))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns whether a certificate was refused because of its fingerprint.
pub(crate) fn is_wrong_fingerprint(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
}

/// Describes the fault of the peer that caused a TLS error.
pub(crate) fn what_is_wrong(error: &Error) -> &'static str {
    match error {
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "it does not speak TLS"
        }
        Error::PeerIncompatible(_) | Error::AlertReceived(_) | Error::NoApplicationProtocol => {
            "it does not speak TLS 1.3 as agents do"
        }
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => "its certificate cannot be used",
        _ => "its TLS cannot be used",
    }
}

/// Compares the certificate with the fingerprint, and has the handshake prove that the peer holds its key. Names and
/// dates are ignored: the fingerprint identifies the certificate.
#[derive(Debug)]
struct Pin {
    pinned: Pinned,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let presented = fingerprint(end_entity);
        let pinned = self.pinned.0.get_or_init(|| presented.clone());
        if presented.as_bytes().ct_eq(pinned.as_bytes()).into() {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
