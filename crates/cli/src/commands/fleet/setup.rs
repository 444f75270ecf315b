//! Setting up a fleet: its keys, invitations, and joining it.

use crate::exit::Failure;
use crate::fleet_folder::{FleetFolder, write};
use crate::output::{print, say};
use jiff::Timestamp;
use linerate_agent::private_file;
use linerate_bus::{AgentName, FleetKeys, FleetName, KeyPair, Role};
use linerate_fleet::enrolment::{self, Invitation};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// File of a key pair whose owner has not been admitted yet.
const PENDING_KEY: &str = "pending-key";

/// Create a fleet: its keys, and a configuration of nats-server
///
/// The keys stay in the directory of the fleet on this host; whoever reads them owns the fleet.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Name of the fleet: letters, digits, dashes and underscores
    name: FleetName,

    /// NATS servers [default: nats://127.0.0.1:4222]
    ///
    /// Their addresses as members reach them, separated by commas; tls:// for TLS.
    #[arg(
        long,
        value_name = "URL,...",
        value_delimiter = ',',
        default_value = "nats://127.0.0.1:4222",
        hide_default_value = true,
        value_parser = server
    )]
    servers: Vec<String>,

    /// Address of nats-server [default: 0.0.0.0:4222]
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:4222", hide_default_value = true)]
    listen: String,

    /// Certificate authority of the servers, PEM
    ///
    /// The default is those that the system trusts.
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,

    /// Share the NATS servers of the fleet there
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,

    #[command(flatten)]
    folder: FleetFolder,
}

/// Invite hosts, operators or viewers; prints a code
///
/// A code is a secret for one purpose: to join, until it expires or is used up.
#[derive(Debug, clap::Args)]
pub(crate) struct Invite {
    /// agent, operator, viewer, controller [default: agent]
    ///
    /// Role of those who join: agents serve, operators run trials, viewers read the state, controllers schedule.
    #[arg(long, default_value = "agent", hide_default_value = true, value_parser = role)]
    role: Role,

    /// Label that it gives, as in site=berlin
    ///
    /// May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,

    /// Members that may join with the code
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    uses: u32,

    /// Life of the code
    #[arg(long, value_name = "TIME", default_value = "24h")]
    expires: Nanos,

    #[command(flatten)]
    folder: FleetFolder,
}

/// Join a fleet with the code of an invitation
#[derive(Debug, clap::Args)]
pub(crate) struct Enrol {
    /// The code, @FILE, or - for standard input
    code: String,

    /// Name in the fleet [default: this host's name]
    ///
    /// Other characters than letters, digits, dashes and underscores become dashes.
    #[arg(long, value_parser = AgentName::of_host)]
    name: Option<AgentName>,

    /// Succeed without joining if the directory has credentials of that name and fleet
    ///
    /// For hosts that run this at each start.
    #[arg(long, hide_short_help = true)]
    keep: bool,

    /// Label of this host, as in rack=7
    ///
    /// May be repeated. Those of the invitation win.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,

    #[command(flatten)]
    folder: FleetFolder,
}

fn server(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://"));
    match address {
        Some(address) if !address.is_empty() && !address.contains('@') => Ok(text.to_owned()),
        Some(_) => Err("give host:port without user and password: a fleet's members have keys".to_owned()),
        None => Err("an address of NATS is nats://host:4222 or tls://host:4222".to_owned()),
    }
}

fn role(text: &str) -> Result<Role, String> {
    [Role::Agent, Role::Operator, Role::Viewer, Role::Controller]
        .into_iter()
        .find(|role| role.name() == text)
        .ok_or_else(|| "expected agent, operator, viewer or controller".to_owned())
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is KEY=VALUE, as in site=berlin".to_owned()),
    }
}

pub(crate) fn now_unix_s() -> u64 {
    u64::try_from(Timestamp::now().as_second()).unwrap_or_default()
}

pub(super) async fn create(create: Create) -> Result<(), Failure> {
    let folder = create.folder.path()?;
    if let Some(keys) = create.folder.keys()? {
        return Err(Failure::usage(format!(
            "{} holds the keys of the fleet {} already: name another directory with --dir",
            folder.display(),
            keys.fleet
        )));
    }
    let neighbour = match create.beside {
        Some(directory) => Some(FleetFolder::of(Some(directory)).owned()?),
        None => None,
    };
    if let Some(neighbour) = &neighbour
        && neighbour.fleet == create.name
    {
        return Err(Failure::usage(format!("{} is the name of that fleet: give this one another", create.name)));
    }
    let servers = neighbour.as_ref().map_or(create.servers, |neighbour| neighbour.servers.clone());
    let mut keys = FleetKeys::generate(create.name, servers, neighbour.as_ref()).map_err(Failure::measure)?;
    if let Some(file) = &create.authority {
        let pem = std::fs::read_to_string(file);
        keys.authority = Some(pem.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?);
    }
    let now = now_unix_s();
    let owner: AgentName = "owner".parse().map_err(Failure::measure)?;
    let credentials = keys.credentials(owner, Role::Controller, None, now).map_err(Failure::measure)?;
    create.folder.keep_keys(&keys)?;
    create.folder.keep_credentials(&credentials)?;
    if neighbour.is_some() {
        enrolment::push_account(&keys, now).await.map_err(Failure::measure)?;
        say(&format!("linerate: the fleet {} is created on the NATS servers of the other fleet", keys.fleet));
    } else {
        let configuration = folder.join("nats-server.conf");
        let data = folder.display().to_string();
        let text = keys.server_configuration(&create.listen, &data, now).map_err(Failure::measure)?;
        write(&configuration, &text)?;
        say(&format!(
            "linerate: the fleet {} is created; start NATS with: nats-server -c {}",
            keys.fleet,
            configuration.display()
        ));
    }
    say("linerate: then: linerate fleet serve FILE, and linerate fleet invite for each host");
    Ok(())
}

pub(super) async fn invite(invite: Invite) -> Result<(), Failure> {
    let keys = invite.folder.owned()?;
    let bus = invite.folder.connect().await?;
    bus.create_streams().await.map_err(Failure::measure)?;
    let now = now_unix_s();
    let labels: BTreeMap<String, String> = invite.label.into_iter().collect();
    let life = invite.expires.get() / 1_000_000_000;
    let invitation =
        Invitation { role: invite.role, uses: invite.uses, labels, expires_unix_s: now.saturating_add(life) };
    let code = enrolment::invite(&bus, &keys, &invitation, now).await.map_err(Failure::measure)?;
    print(&code);
    say(&format!(
        "linerate: on the host: linerate fleet enrol CODE; {} may join within {}",
        if invite.uses == 1 { "one member".to_owned() } else { format!("{} members", invite.uses) },
        invite.expires
    ));
    Ok(())
}

pub(super) async fn enrol(enrol: Enrol) -> Result<(), Failure> {
    let folder = enrol.folder.path()?;
    let name = match enrol.name {
        Some(name) => name,
        None => AgentName::of_host(&linerate_sys::system::host_name().unwrap_or_default())
            .map_err(|error| Failure::usage(format!("{error}; give the name with --name")))?,
    };
    let code = match enrol.code.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("{file}: {error}")))?,
        None if enrol.code == "-" => std::io::read_to_string(std::io::stdin()).map_err(Failure::usage)?,
        None => enrol.code,
    };
    let invitation = enrolment::invited(&code).map_err(Failure::usage)?;
    if let Ok(credentials) = enrol.folder.credentials() {
        if enrol.keep && credentials.name == name && credentials.fleet == invitation.fleet {
            say(&format!("linerate: {name} belongs to the fleet {} already", credentials.fleet));
            return Ok(());
        }
        return Err(Failure::usage(format!(
            "{} holds the credentials of {} in the fleet {} already: name another directory with --dir, or remove it first",
            folder.display(),
            credentials.name,
            credentials.fleet
        )));
    }
    // Kept until the member is admitted, so that a repeated request is the same member.
    let pending = folder.join(PENDING_KEY);
    let seed = match private_file::read(&pending).map_err(Failure::usage)? {
        Some(seed) => seed,
        None => {
            let seed = KeyPair::new_user().seed().map_err(Failure::measure)?;
            write(&pending, &seed)?;
            seed
        }
    };
    let key = KeyPair::from_seed(seed.trim())
        .map_err(|error| Failure::usage(format!("{}: {error}; remove the file", pending.display())))?;
    let labels = enrol.label.into_iter().collect();
    let credentials = enrolment::join(invitation, name, &key, labels).await.map_err(Failure::measure)?;
    enrol.folder.keep_credentials(&credentials)?;
    // What is left is a key of the same member.
    let _ = std::fs::remove_file(&pending);
    let next = match credentials.role {
        Role::Agent => "; start it with: linerate serve --fleet",
        Role::Operator => "; for example: linerate stream fleet:A fleet:B",
        Role::Viewer => "; for example: linerate fleet status",
        Role::Controller | Role::Invited => "",
    };
    say(&format!(
        "linerate: {} joined the fleet {} as {}{next}",
        credentials.name,
        credentials.fleet,
        credentials.role.name()
    ));
    Ok(())
}
