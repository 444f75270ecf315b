//! `linerate fleet`: a mesh of agents on NATS.

mod control;
mod matrix;
mod measure;
mod members;
mod mesh_file;
mod plan;
mod serve;
mod setup;

use crate::exit::Failure;
use clap::Subcommand;
use tokio::sync::watch;

/// Run a mesh of agents, with NATS between them and PostgreSQL for their records
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate fleet create acme --servers nats://nats.example.org:4222
  nats-server -c ~/.local/share/linerate/fleet/nats-server.conf
  linerate fleet serve fleet.toml --store postgres://db.example.org/linerate
  linerate fleet invite --label site=berlin --uses 20
  linerate fleet enrol CODE && linerate serve --fleet      on each host
  linerate fleet plan fleet.toml --dry-run
  linerate fleet status

Agents dial out to NATS; docs/fleet.md sets up a fleet in ten commands.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(setup::Create),
    Invite(setup::Invite),
    Enrol(setup::Enrol),
    List(members::List),
    Revoke(members::Revoke),
    Plan(plan::Plan),
    Serve(serve::Serve),
    Status(control::Status),
    Matrix(matrix::Matrix),
    Run(control::Run),
    Pause(control::Pause),
    Resume(control::Resume),
}

pub(crate) async fn run(arguments: Arguments, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    match arguments.action {
        Action::Create(create) => setup::create(create).await,
        Action::Invite(invite) => setup::invite(invite).await,
        Action::Enrol(enrol) => setup::enrol(enrol).await,
        Action::List(list) => members::list(list).await,
        Action::Revoke(revoke) => members::revoke(revoke).await,
        Action::Plan(plan) => plan::plan(plan).await,
        Action::Serve(serve) => Box::pin(serve::serve(serve, cancel)).await,
        Action::Status(status) => control::status(status).await,
        Action::Matrix(matrix) => matrix::matrix(matrix),
        Action::Run(run) => control::run(run).await,
        Action::Pause(pause) => control::pause(pause).await,
        Action::Resume(resume) => control::resume(resume).await,
    }
}
