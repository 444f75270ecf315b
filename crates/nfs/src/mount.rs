//! From a server's name to the handle of an exported directory: the portmapper (RFC 1833 section 3), MOUNT version 3
//! (RFC 1813 appendix I), and what the server takes in one transfer.

use crate::answers::Answer;
use crate::calls::{Ask, Handle, handle};
use crate::session::Session;
use linerate_model::{NfsOperation, NfsServer, NfsTask, Transport};
use linerate_oncrpc::RpcError;
use linerate_oncrpc::client::Caller;
use linerate_oncrpc::message::{Credential, Procedure, Rest, put_opaque};
use linerate_units::Nanos;
use nfs3_types::mount::{self, MOUNT_PROGRAM, mountstat3};
use nfs3_types::nfs3;
use nfs3_types::portmap::{self, PMAP_PROG, mapping};
use nfs3_types::xdr_codec::{Pack as _, Unpack as _};
use std::net::SocketAddr;

/// Time limit of one set-up call.
const CALL: Nanos = Nanos::from_secs(5);
/// The most bytes of an exported directory's path: MNTPATHLEN.
const PATH_MAXIMUM: usize = mount::MNTPATHLEN;

/// Makes a connection or socket to a server's port.
pub(crate) type Dial<'a> = &'a dyn Fn(SocketAddr) -> Result<Caller, RpcError>;

/// The ports of a server that is not linerate's own: its NFS and its MOUNT service.
pub(crate) fn ports(
    server: &NfsServer,
    transport: Transport,
    dial: Dial<'_>,
) -> Result<(SocketAddr, SocketAddr), RpcError> {
    let at = |port| SocketAddr::new(server.address, port);
    let mut portmapper = None;
    let mut ask = |program, version, name: &str| -> Result<u16, RpcError> {
        let portmapper_address = at(portmap::PMAP_PORT);
        if portmapper.is_none() {
            portmapper = Some(dial(portmapper_address).map_err(|error| no_portmapper(portmapper_address, error))?);
        }
        let caller = portmapper.as_mut().expect("it was made above");
        let port = registered(caller, transport, program, version)
            .map_err(|error| no_portmapper(portmapper_address, error))?;
        if port == 0 {
            return Err(RpcError::Refused {
                server: portmapper_address,
                what: format!("the port of {name} over {transport}"),
                reason: "its portmapper knows of none; start the service, use another transport, or give the port"
                    .to_owned(),
            });
        }
        Ok(port)
    };
    let nfs = match server.nfs_port {
        Some(port) => port,
        None => ask(nfs3::PROGRAM, nfs3::VERSION, "NFS version 3")?,
    };
    let mount = match server.mount_port.or(server.nfs_port) {
        Some(port) => port,
        None => ask(mount::PROGRAM, mount::VERSION, "MOUNT version 3")?,
    };
    Ok((at(nfs), at(mount)))
}

fn no_portmapper(asked: SocketAddr, error: RpcError) -> RpcError {
    if matches!(error, RpcError::Stopped) {
        return error;
    }
    RpcError::InvalidRequest(format!(
        "{error}; {asked} is where its portmapper should be: without one, give the NFS and MOUNT ports"
    ))
}

/// GETPORT: the port that a program is registered with; 0 if it is not.
fn registered(caller: &mut Caller, transport: Transport, program: u32, version: u32) -> Result<u16, RpcError> {
    let prot = if transport == Transport::Udp { portmap::IPPROTO_UDP } else { portmap::IPPROTO_TCP };
    let mut arguments = Vec::new();
    let mapping = mapping { prog: program, vers: version, prot, port: 0 };
    mapping.pack(&mut arguments).expect("a Vec takes whatever is written");
    let to = Procedure {
        program: portmap::PROGRAM,
        version: portmap::VERSION,
        procedure: PMAP_PROG::PMAPPROC_GETPORT as u32,
    };
    let results = caller.ask("GETPORT", to, &Credential::none(), &arguments, CALL)?;
    let port = Rest(&results).word().and_then(|port| u16::try_from(port).ok());
    port.ok_or_else(|| malformed(caller.server(), "GETPORT"))
}

/// Asks the MOUNT service for the handle of `export`.
pub(crate) fn mount(caller: &mut Caller, credential: &Credential, export: &str) -> Result<Handle, RpcError> {
    let server = caller.server();
    if export.len() > PATH_MAXIMUM {
        let length = export.len();
        return Err(RpcError::InvalidRequest(format!(
            "an export of {length} bytes: its path has at most {PATH_MAXIMUM}"
        )));
    }
    let mut arguments = Vec::new();
    put_opaque(&mut arguments, export.as_bytes());
    let results = caller.ask("MNT", procedure(MOUNT_PROGRAM::MOUNTPROC3_MNT), credential, &arguments, CALL)?;
    let mut rest = Rest(&results);
    let status = rest.word().ok_or_else(|| malformed(server, "MNT"))?;
    if status == mountstat3::MNT3_OK as u32 {
        // The flavours that follow are the server's preference; a refusal will come later.
        return rest.opaque(mount::FHSIZE3).map(handle).ok_or_else(|| malformed(server, "MNT"));
    }
    let name = mountstat3::unpack(&mut &status.to_be_bytes()[..])
        .map_or_else(|_| format!("status {status}"), |(status, _)| status.to_string());
    let help = "see what it exports, and to whom, with `showmount -e`";
    Err(RpcError::Refused { server, what: format!("to mount `{export}`"), reason: format!("{name}; {help}") })
}

/// Unregisters the mount of `export` at the MOUNT service. The service keeps a list only; nothing depends on it.
pub(crate) fn unmount(caller: &mut Caller, credential: &Credential, export: &str) -> Result<(), RpcError> {
    let mut arguments = Vec::new();
    put_opaque(&mut arguments, export.as_bytes());
    caller.ask("UMNT", procedure(MOUNT_PROGRAM::MOUNTPROC3_UMNT), credential, &arguments, CALL).map(drop)
}

/// The most bytes that the server writes in one call, if it takes transfers as `spec` asks for.
pub(crate) fn limits(session: &mut Session<'_>, export: &Handle, spec: &NfsTask) -> Result<u32, RpcError> {
    let server = session.caller.server();
    let limits = session.one("asking for its limits", &Ask::Fsinfo(export), |answer| match answer {
        Answer::Limits { read, write, .. } => Ok(Ok((read, write))),
        Answer::Failed(status) => Ok(Err(status)),
        _ => Err(malformed(server, "FSINFO")),
    })?;
    let (read, write) = limits.map_err(|status| session.unfit("FSINFO", Answer::Failed(status)))?;
    let requested = spec.transfer_bytes.get();
    for (operation, most) in [(NfsOperation::Read, read), (NfsOperation::Write, write)] {
        if spec.mix.percent(operation) > 0.0 && requested > u64::from(most) {
            return Err(RpcError::InvalidRequest(format!(
                "transfers of {requested} bytes: {server} takes a {operation} of {most} at the most; use `--transfer-size {most}`"
            )));
        }
    }
    Ok(write)
}

fn procedure(procedure: MOUNT_PROGRAM) -> Procedure {
    Procedure { program: mount::PROGRAM, version: mount::VERSION, procedure: procedure as u32 }
}

fn malformed(server: SocketAddr, call: &str) -> RpcError {
    RpcError::Malformed { peer: server, what: format!("its results of {call} cannot be read") }
}
