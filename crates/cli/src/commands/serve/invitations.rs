//! `linerate serve invite`, `list` and `revoke`: agent URLs with fewer powers and a life of their own.

use super::{identity_directory, network};
use crate::exit::Failure;
use crate::output::{language, print, say};
use linerate_agent::{Allowance, Identity, Invitation, InvitationState, Invitations, IpNet};
use linerate_model::{AgentUrl, Powers};
use linerate_report::{Language, said};
use linerate_units::{BitRate, Nanos};
use std::path::PathBuf;
use unicode_width::UnicodeWidthStr as _;

/// What is done with invitations.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    Invite(Invite),
    List(List),
    Revoke(Revoke),
}

/// Print an agent URL that allows less, and for a limited time
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate serve invite --for 1h
  linerate serve invite --can stream,transact --max-rate 1Gbit/s --for 1h
  linerate serve invite --peer 192.0.2.0/24

Powers: stream and transact (bulk data, requests and responses), rpc (calls of
linerate's RPC program), frames (raw frames), files (copies, and linerate's own
NFS servers), servers (existing file servers). None exceeds the agent's options.
A running agent of the same identity accepts the URL at once.")]
pub(super) struct Invite {
    /// Powers of the URL
    ///
    /// Separated by commas.
    #[arg(long, value_name = "POWERS", default_value = "stream,transact")]
    can: Powers,

    /// Maximum rate [default: the agent's]
    ///
    /// Of all its trials together, in each direction.
    #[arg(long, value_name = "RATE")]
    max_rate: Option<BitRate>,

    /// Who may use it [default: any]
    ///
    /// Network or address that may use it, and that its trials may have as peers; may be repeated.
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    peer: Vec<IpNet>,

    /// How long it can be used
    #[arg(long = "for", value_name = "TIME", default_value = "24h")]
    life: Nanos,

    /// Where the agent is reached
    ///
    /// The default is its address when it was last started.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,

    #[command(flatten)]
    of: Of,
}

/// List the invitations of this machine's agent
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Print only one JSON array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    of: Of,
}

/// End an invitation
///
/// Its agent URL is refused, and its trials under way are stopped.
#[derive(Debug, clap::Args)]
pub(super) struct Revoke {
    /// The invitation, as `linerate serve list` names it
    id: String,

    #[command(flatten)]
    of: Of,
}

/// Whose invitations.
#[derive(Debug, clap::Args)]
struct Of {
    /// Directory of the agent's certificate
    ///
    /// It holds the token too. The default is linerate/agent in the user's data directory.
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,
}

pub(super) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Invite(invite) => invite.run(),
        Command::List(list) => list.run(),
        Command::Revoke(revoke) => revoke.run(),
    }
}

impl Invite {
    fn run(self) -> Result<(), Failure> {
        if self.life.is_zero() {
            return Err(Failure::usage("--for 0: an invitation needs some time, as in --for 1h"));
        }
        let directory = identity_directory(self.of.identity)?;
        let invitations = Invitations::of(&directory);
        let kept = invitations.address().map_err(Failure::usage)?;
        let address = self.address.or(kept).ok_or_else(|| {
            Failure::usage(format!(
                "no agent with the identity in {} was started yet: start it first, or say with --address where it is reached",
                directory.display()
            ))
        })?;
        let identity = Identity::load_or_create(&directory).map_err(Failure::usage)?;
        // Before anything is kept, so that a wrong address leaves no invitation behind.
        let url = |token: &str| format!("linerate://{address}#{token}.{}", identity.fingerprint()).parse::<AgentUrl>();
        url(&"0".repeat(32)).map_err(Failure::usage)?;
        let allows = Allowance { powers: self.can, max_rate: self.max_rate, peers: self.peer };
        let (invitation, token) = invitations.invite(allows, self.life).map_err(Failure::usage)?;
        print(&url(token.as_str()).map_err(Failure::usage)?.to_string());
        say(&said!(
            language(),
            "serve-invitation",
            "linerate: invitation {invitation}; `linerate serve revoke {id}` ends it",
            invitation = line(language(), &invitation),
            id = &invitation.id
        ));
        Ok(())
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let invitations = Invitations::of(&identity_directory(self.of.identity)?).list().map_err(Failure::usage)?;
        if self.json {
            let rows: Vec<_> = invitations.iter().map(as_json).collect();
            print(&serde_json::Value::from(rows).to_string());
        } else if invitations.is_empty() {
            say(&said!(
                language(),
                "serve-no-invitations",
                "linerate: no invitations; `linerate serve invite` makes one"
            ));
        } else {
            invitations.iter().for_each(|invitation| print(&line(language(), invitation)));
        }
        Ok(())
    }
}

impl Revoke {
    fn run(self) -> Result<(), Failure> {
        let invitations = Invitations::of(&identity_directory(self.of.identity)?);
        if invitations.revoke(&self.id).map_err(Failure::usage)? {
            say(&said!(language(), "serve-revoked", "linerate: invitation {id} is revoked", id = &self.id));
            return Ok(());
        }
        Err(Failure::usage(format!(
            "there is no invitation {} that can still be used; `linerate serve list` shows them",
            self.id
        )))
    }
}

/// An invitation in a line: its name, how long it can be used, and what it allows.
fn line(lang: Language, invitation: &Invitation) -> String {
    let state = match invitation.state() {
        InvitationState::Open(left) => {
            said!(lang, "serve-invitation-left", "{time} left", time = in_words(left))
        }
        InvitationState::Expired => said!(lang, "serve-invitation-expired", "expired"),
        InvitationState::Revoked => said!(lang, "serve-invitation-revoked", "revoked"),
    };
    let columns = 16usize.saturating_sub(state.width());
    let mut parts = vec![format!("{}  {state}{:columns$}  {}", invitation.id, "", invitation.allows.powers)];
    if let Some(rate) = invitation.allows.max_rate {
        parts.push(said!(lang, "serve-invitation-rate", "at most {rate}", rate = rate));
    }
    if !invitation.allows.peers.is_empty() {
        let networks: Vec<String> = invitation.allows.peers.iter().map(ToString::to_string).collect();
        parts.push(said!(lang, "serve-invitation-peers", "for {networks}", networks = networks.join(" ")));
    }
    parts.join(&said!(lang, "list-comma", ", "))
}

fn as_json(invitation: &Invitation) -> serde_json::Value {
    let state = match invitation.state() {
        InvitationState::Open(_) => "open",
        InvitationState::Expired => "expired",
        InvitationState::Revoked => "revoked",
    };
    serde_json::json!({
        "id": invitation.id,
        "state": state,
        "ends_unix_s": invitation.ends_unix_s,
        "powers": invitation.allows.powers,
        "max_rate": invitation.allows.max_rate,
        "peers": invitation.allows.peers,
    })
}

/// A time in its two largest units, as in `1 h 5 min`.
fn in_words(time: Nanos) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let seconds = time.get() / 1_000_000_000;
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let mut left = seconds;
    let mut parts = Vec::new();
    for (unit, name) in UNITS.iter().skip(first).take(2) {
        let count = left / unit;
        left %= unit;
        if count > 0 || parts.is_empty() {
            parts.push(format!("{count} {name}"));
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: super::super::Arguments,
    }

    fn parsed(words: &[&str]) -> Result<Option<Command>, String> {
        let line = Line::try_parse_from([&["agent"], words].concat());
        line.map(|line| line.arguments.command).map_err(|error| error.to_string())
    }

    #[test]
    fn the_agent_stays_as_it_is_beside_its_commands() {
        assert!(parsed(&[]).expect("plain").is_none());
        assert!(parsed(&["--listen", "127.0.0.1:0"]).expect("its options").is_none());
        let words = ["invite", "--can", "rpc,files", "--max-rate", "1Gbit/s", "--peer", "192.0.2.0/24", "--for", "1h"];
        let Some(Command::Invite(invite)) = parsed(&words).expect("an invitation") else { panic!("not `invite`") };
        assert_eq!(invite.can.to_string(), "rpc,files");
        assert_eq!((invite.life, invite.peer.len()), (Nanos::from_secs(3_600), 1));
        let Some(Command::Invite(invite)) = parsed(&["invite"]).expect("the defaults") else { panic!("not `invite`") };
        assert_eq!((invite.can, invite.life), (Powers::of_an_invitation(), Nanos::from_secs(86_400)));
        for wrong in [&["invite", "--can", "everything"][..], &["revoke"], &["--max-time", "1s", "list"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_invitation_is_printed_listed_and_revoked() {
        let directory = tempfile::tempdir().expect("a directory");
        let of = || Of { identity: Some(directory.path().to_owned()) };
        let invite = |address: Option<&str>| Invite {
            can: Powers::of_an_invitation(),
            max_rate: None,
            peer: Vec::new(),
            life: Nanos::from_secs(60),
            address: address.map(str::to_owned),
            of: of(),
        };
        let error = invite(None).run().expect_err("nobody knows where the agent is").to_string();
        assert!(error.contains("--address"), "{error}");
        assert!(invite(Some("nowhere")).run().is_err());
        let kept = || Invitations::of(directory.path()).list().expect("read");
        assert_eq!(kept(), [], "what failed leaves nothing");
        invite(Some("192.0.2.1:4747")).run().expect("made");
        let id = kept()[0].id.clone();
        assert!(
            line(Language::English, &kept()[0]).contains("left")
                && line(Language::English, &kept()[0]).contains("stream,transact")
        );
        Revoke { id: id.clone(), of: of() }.run().expect("revoked");
        assert!(line(Language::English, &kept()[0]).contains("revoked"));
        let english = line(Language::English, &kept()[0]);
        let japanese = line(Language::Japanese, &kept()[0]);
        assert!(japanese.contains("取り消し済み"), "{japanese}");
        assert_eq!(english.width(), japanese.width(), "columns of both languages begin alike: {japanese}");
        let error = Revoke { id, of: of() }.run().expect_err("it is over").to_string();
        assert!(error.contains("linerate serve list"), "{error}");
    }

    #[test]
    fn a_time_is_told_in_two_units() {
        for (seconds, words) in
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_900, "1 h 5 min"), (86_400, "1 d"), (90_061, "1 d 1 h")]
        {
            assert_eq!(in_words(Nanos::from_secs(seconds)), words);
        }
    }
}
