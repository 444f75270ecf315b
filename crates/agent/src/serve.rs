//! The agent: who may ask, and the server that answers.

use crate::api_listener::{ApiAddress, ApiListener};
use crate::connection_gate::{ConnectionGate, GatedConnection};
use crate::error_response::ErrorResponse;
use crate::fleet::FleetMembership;
use crate::grant::Credentials;
use crate::options::AgentOptions;
use crate::pairing::Pairing;
use crate::routes::{is_for_strangers, router};
use crate::sessions::Sessions;
use crate::shared::Shared;
use crate::{Confined, StartError, advertise, engines};
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use hyper_util::rt::TokioTimer;
use linerate_bus::Bus;
use linerate_control::{PROTOCOL, PROTOCOL_HEADER};
use linerate_engine::{Engine, PortServer, Reserve, StrangerReplies};
use linerate_model::AgentUrl;
use linerate_observe::HostOptions;
use linerate_sys::descriptors;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Connections that were admitted and then idle for longer are closed. Clients drop theirs earlier.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Answers under way get this long at shutdown.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// A session goes on for so long, at the most, after its credential has ended.
const REVOCATION_CHECK: Duration = Duration::from_millis(500);

/// A running agent. Dropping it stops it at once; [`Agent::shutdown`] waits until its sessions have let go of
/// everything.
pub struct Agent {
    url: AgentUrl,
    confined: Option<Confined>,
    shared: Arc<Shared>,
    handle: Handle<ApiAddress>,
    /// Sorts what comes to its port; none if that is the API's alone.
    port: Option<PortServer>,
    server: JoinHandle<std::io::Result<()>>,
    /// Ends sessions whose invitation has ended; none where there can be no invitations.
    revoking: Option<JoinHandle<()>>,
    /// Service to a fleet. `None` for an agent of no fleet.
    fleet: Option<FleetMembership>,
}

impl Agent {
    /// Serves the API until shut down.
    ///
    /// # Errors
    /// The listener or the identity cannot be used.
    pub async fn start(options: AgentOptions) -> Result<Self, StartError> {
        let engines = engines::table(&options.engines);
        Self::start_with(options, engines).await
    }

    /// The same, with `engines` in place of the agent's own.
    ///
    /// # Errors
    /// The listener or the identity cannot be used.
    pub async fn start_with(options: AgentOptions, engines: Vec<Box<dyn Engine>>) -> Result<Self, StartError> {
        // Sessions may have as many as the budget counts on.
        descriptors::raise_limit();
        let failed = |call| move |source| StartError::Serve { call, source };
        let address = options.listener.local_addr().map_err(failed("getsockname"))?;
        let url = AgentUrl {
            host: options.advertise.clone().unwrap_or_else(|| advertise::host(address)),
            port: address.port(),
            token: options.token.as_str().to_owned(),
            fingerprint: options.identity.fingerprint(),
        };
        if let Some(invitations) = &options.invitations {
            // A folder that cannot be written serves an agent all the same: inviting then needs the address as an
            // option.
            let _ = invitations.note_address(&url.address());
        }
        // Before a thread is there that it would not bind, and before anyone is answered.
        let confinement = options.confinement.as_ref();
        let confined = confinement.map(|confinement| confinement.apply(&options)).transpose()?;
        if let Some(invitations) = &options.invitations {
            // With what the agent has kept: root without its capabilities reads no files of others.
            invitations.check_readable()?;
        }
        let AgentOptions { listener, shares_port, identity, token, invitations, name, limits, timeouts, .. } = options;
        let (listener, port) = if shares_port {
            let (handed_over, hand_over) = ApiListener::port(address);
            (handed_over, Some(PortServer::start(listener, Box::new(hand_over))?))
        } else {
            listener.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
            let listener = tokio::net::TcpListener::from_std(listener);
            (ApiListener::Own(listener.map_err(failed("epoll_ctl on the listener"))?), None)
        };
        let has_invitations = invitations.is_some();
        let (fingerprint, secret) = (url.fingerprint.clone(), url.token.clone());
        let pair = |code| Pairing::new(code, fingerprint, secret, Instant::now(), options.report.clone());
        let pairing = options.pairing.map(pair);
        let credentials = Arc::new(Credentials::new(token, invitations));
        let host = HostOptions {
            name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            link_speeds: options.link_speeds,
            link_duplexes: options.link_duplexes,
            data_addresses: options.data_addresses,
        };
        let sessions = Arc::new(Sessions::new(
            engines,
            limits.clone(),
            port.as_ref(),
            timeouts,
            options.report,
            options.session_log,
        ));
        let shared = Arc::new(Shared { limits, timeouts, host, sessions, pairing, credentials });
        let gate = ConnectionGate::new(Arc::clone(&shared), timeouts.unadmitted);
        let app = router(Arc::clone(&shared)).layer(from_fn_with_state(Arc::clone(&shared), admit));

        let tls = identity.server_config().map_err(|error| StartError::Identity(error.to_string()))?;
        let tls = RustlsAcceptor::new(RustlsConfig::from_config(Arc::new(tls))).handshake_timeout(timeouts.handshake);
        let acceptor = tls.acceptor(gate);
        let handle = Handle::new();
        let mut server = axum_server::Server::<ApiAddress>::from_listener(listener)
            .acceptor(acceptor)
            .handle(handle.clone())
            .http1_only();
        server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        let server = tokio::spawn(server.serve(app.into_make_service()));
        let revoking = has_invitations.then(|| tokio::spawn(stop_without_credential(Arc::clone(&shared))));
        Ok(Self { url, confined, shared, handle, port, server, revoking, fleet: None })
    }

    /// Serves the API to the fleet that `bus` connects to, too. The connection is made again for ever; meanwhile, sessions
    /// that nobody leads are stopped.
    ///
    /// # Errors
    /// Another process serves with the same credentials, or the connection is closed.
    pub async fn join_fleet(&mut self, bus: Bus) -> Result<(), StartError> {
        self.fleet = Some(FleetMembership::begin(bus, Arc::clone(&self.shared)).await?);
        Ok(())
    }

    /// Returns the URL by which clients reach the agent.
    pub fn url(&self) -> &AgentUrl {
        &self.url
    }

    /// What strangers may be sent beside its sessions, for services of this host outside the API.
    pub fn stranger_replies(&self) -> &Arc<StrangerReplies> {
        &self.shared.sessions.replies
    }

    /// Takes parts of its budget for services of this host outside the API, beside its sessions.
    pub fn reserve(&self) -> Reserve {
        let shared = Arc::clone(&self.shared);
        Reserve(Arc::new(move |needs| shared.sessions.reserve(needs)))
    }

    /// Returns the restrictions in force. `None` unless the agent was to be confined.
    pub fn confined(&self) -> Option<&Confined> {
        self.confined.as_ref()
    }

    /// Returns the description of this host.
    pub fn host_options(&self) -> &HostOptions {
        &self.shared.host
    }

    /// Stops all sessions, lets their runners know, and ends once they have let go of everything: at once as a rule,
    /// later where files have to be removed.
    pub async fn shutdown(mut self) {
        self.shared.sessions.shut_down().await;
        if let Some(fleet) = &mut self.fleet {
            fleet.leave().await;
        }
        self.handle.graceful_shutdown(Some(LAST_WORDS));
        let _ = tokio::time::timeout(LAST_WORDS * 2, &mut self.server).await;
    }
}

/// Shows where it is, without secrets.
impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent").field(&self.url).finish()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.sessions.stop_all();
        self.port = None;
        self.handle.shutdown();
        self.server.abort();
        if let Some(revoking) = &self.revoking {
            revoking.abort();
        }
    }
}

/// Lets a request pass that has the token of a credential, with what that grants, or that needs none. Tells others
/// nothing else.
async fn admit(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<GatedConnection>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(connection.origin());
    if is_for_strangers(request.uri().path()) {
        return next.run(request).await;
    }
    let granted = shared.credentials.find(bearer(&request), &shared.limits).and_then(|grant| {
        grant.check_peer(connection.peer())?;
        connection.admit(&grant.credential)?;
        Ok(grant)
    });
    match granted {
        Ok(grant) => {
            request.extensions_mut().insert(grant);
            let mut response = next.run(request).await;
            response.headers_mut().insert(PROTOCOL_HEADER, HeaderValue::from(PROTOCOL));
            response
        }
        Err(error) => {
            shared.sessions.metrics.turned_away.add(1);
            // One guess for each connection.
            let close = [(header::CONNECTION, HeaderValue::from_static("close"))];
            (close, ErrorResponse::from(error)).into_response()
        }
    }
}

/// Stops sessions whose credential was revoked or has expired. Ends with the agent.
async fn stop_without_credential(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(REVOCATION_CHECK).await;
        shared.sessions.stop_ended(&shared.credentials);
    }
}

/// RFC 6750 section 2.1.
fn bearer(request: &Request) -> Option<&[u8]> {
    let value = request.headers().get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}
