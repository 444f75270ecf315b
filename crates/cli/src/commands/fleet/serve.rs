//! `linerate fleet serve`: the processes of a fleet.

use super::measure::Commands;
use super::mesh_file;
use crate::exit::Failure;
use crate::fleet_folder::FleetFolder;
use crate::options::StorePath;
use crate::output::say;
use jiff::Zoned;
use linerate_bus::BusError;
use linerate_engine::Report;
use linerate_fleet::enrolment::admit_members;
use linerate_fleet::metrics::{Metrics, Push, PushTarget, router};
use linerate_fleet::notify::PageLinks;
use linerate_fleet::{Endpoint, SchedulerOptions, WatchPost, control, ingest, schedule};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Schedule meshes, run their trials, store results, admit members
///
/// Several may run at once: one of them schedules, all run trials and store results. Each may be killed at any time: its work is
/// taken over by another.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The meshes, a TOML file; needed to schedule
    file: Option<PathBuf>,

    /// Parts: schedule, control, store or admit
    ///
    /// The default is control (trials) and store, schedule if there is a file, and admit if the keys of the fleet are here.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    roles: Vec<Part>,

    /// Serve metrics for Prometheus, at /metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// Push metrics to this address of Prometheus remote write
    ///
    /// A bearer token is read from LINERATE_REMOTE_WRITE_TOKEN.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    remote_write: Option<String>,

    /// Address of `linerate view` for people, to which alerts link, such as `https://linerate.example.net/`
    #[arg(long, value_name = "URL", value_parser = PageLinks::new, hide_short_help = true)]
    pages: Option<PageLinks>,

    /// Seed of random choices of the schedule
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    seed: u64,

    #[command(flatten)]
    store: StorePath,

    #[command(flatten)]
    folder: FleetFolder,
}

/// A part of a fleet's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Order trials, under the lease.
    Schedule,
    /// Run trials.
    Control,
    /// Store results.
    Store,
    /// Admit members.
    Admit,
}

pub(super) async fn serve(serve: Serve, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let file = serve.file.as_deref().map(mesh_file::read).transpose()?;
    let keys = serve.folder.keys()?;
    let mut parts = serve.roles.clone();
    if parts.is_empty() {
        parts.extend([Part::Control, Part::Store]);
        if file.is_some() {
            parts.push(Part::Schedule);
        }
        if keys.is_some() {
            parts.push(Part::Admit);
        }
    }
    if parts.contains(&Part::Schedule) && file.is_none() {
        return Err(Failure::usage("name the fleet's file of meshes: `schedule` needs it (docs/fleet.md)"));
    }
    let store = if parts.contains(&Part::Store) { Some(Arc::new(serve.store.open()?)) } else { None };
    let bus = serve.folder.connect().await?;
    bus.create_streams().await.map_err(Failure::measure)?;
    let pages = serve.pages.clone();
    let report = Report::new(|line| say(&format!("linerate: {line}")));
    let metrics = Arc::new(Metrics::default());
    // Dropping it ends the push.
    let _push = match &serve.remote_write {
        Some(url) => Some(push(url, &metrics)?),
        None => None,
    };
    if let Some(address) = serve.listen {
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--listen {address}: {error}")))?;
        let address = listener.local_addr().map_err(Failure::measure)?;
        say(&format!("linerate: metrics are at http://{address}/metrics"));
        let pages = router(Arc::clone(&metrics));
        tokio::spawn(async move { axum::serve(listener, pages).await });
    }
    say(&format!("linerate: serving the fleet {} with NATS at {}", bus.subjects().fleet(), bus.servers()));
    let scheduling = async {
        let Some(file) = file.filter(|_| parts.contains(&Part::Schedule)) else { return Ok(()) };
        let options = SchedulerOptions {
            holder: format!("{} {}", linerate_sys::system::host_name().unwrap_or_default(), std::process::id()),
            file,
            seed: serve.seed,
            utc_offset_s: Zoned::now().offset().seconds(),
        };
        let fleet = bus.subjects().fleet().to_string();
        let pages = pages.as_ref();
        let watch = WatchPost::new(&fleet, &options.file, pages, Arc::clone(&metrics), report.clone());
        let watch = watch.map_err(|error| Failure::usage(format!("alerts: {error}")))?;
        schedule(bus.clone(), options, watch, report.clone(), cancel.clone()).await.map_err(Failure::measure)
    };
    let controlling = async {
        if !parts.contains(&Part::Control) {
            return Ok(());
        }
        // Trials in progress are finished: another controller would have to repeat them.
        let (_never, no_cancel) = watch::channel(false);
        let commands = Commands { bus: bus.clone(), cancel: no_cancel };
        control(bus.clone(), &commands, report.clone(), cancel.clone()).await.map_err(Failure::measure)
    };
    let storing = async {
        let Some(store) = store else { return Ok(()) };
        ingest(bus.clone(), store, Arc::clone(&metrics), report.clone(), cancel.clone()).await.map_err(Failure::measure)
    };
    let admitting = async {
        let Some(keys) = keys.filter(|_| parts.contains(&Part::Admit)) else { return Ok(()) };
        until_stopped(admit_members(bus.clone(), keys), cancel.clone()).await.map_err(Failure::measure)
    };
    tokio::try_join!(scheduling, controlling, storing, admitting).map(drop)
}

async fn until_stopped(
    work: impl Future<Output = Result<(), BusError>>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), BusError> {
    tokio::select! {
        result = work => result,
        _ = stop.wait_for(|stop| *stop) => Ok(()),
    }
}

fn push(url: &str, metrics: &Arc<Metrics>) -> Result<Push, Failure> {
    let token = std::env::var("LINERATE_REMOTE_WRITE_TOKEN").ok().filter(|token| !token.is_empty());
    let endpoint = Endpoint::new(url, token).map_err(|error| Failure::usage(format!("--remote-write: {error}")))?;
    let target = PushTarget::new(endpoint);
    Push::start(Arc::clone(metrics), target).map_err(|error| Failure::usage(format!("--remote-write: {error}")))
}
