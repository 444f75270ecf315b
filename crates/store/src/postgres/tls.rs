//! TLS for connections to PostgreSQL.
//!
//! As with libpq, `sslmode=prefer` (the default) encrypts if the server can, and accepts any certificate. `sslmode=require` is stricter
//! than libpq: the certificate must be valid for the host, by `sslrootcert` or the system's authorities.

use super::url::PostgresUrl;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Makes TLS connections.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Prepares TLS for `url`.
    ///
    /// # Errors
    /// Certificates of authorities cannot be read.
    pub(super) fn of(url: &PostgresUrl) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = if url.is_encrypted() {
            builder.with_root_certificates(roots(url)?)
        } else {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        };
        Ok(Self(Arc::new(config.with_no_client_auth())))
    }
}

/// Reads the certificates of authorities.
fn roots(url: &PostgresUrl) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(file) = &url.root_certificates else {
        let loaded = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(loaded.certs);
        if added == 0 {
            return Err(
                "this system has no certificates of authorities; name a file with `sslrootcert=FILE`".to_owned()
            );
        }
        return Ok(roots);
    };
    let failed = |reason: String| format!("cannot read sslrootcert {}: {reason}", file.display());
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))? {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("it has no certificate".to_owned()));
    }
    Ok(roots)
}

/// Accepts every certificate, as `sslmode=prefer` asks for. Signatures of the handshake are checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Self::Error> {
        // A socket of this machine has no name, and the server encrypts nothing there.
        let name = if host.is_empty() { None } else { Some(ServerName::try_from(host.to_owned())?) };
        Ok(Handshake { connector: TlsConnector::from(self.0.clone()), name })
    }
}

/// A connection before its handshake.
pub(super) struct Handshake {
    connector: TlsConnector,
    /// Name in the server's certificate. `None` for a socket of this machine.
    name: Option<ServerName<'static>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or_else(|| io::Error::other("a socket of this machine has no name to verify"))?;
            self.connector.connect(name, stream).await.map(|stream| Encrypted(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}
