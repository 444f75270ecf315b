//! Steering a fleet: its status, pause, and trials at once.

use crate::exit::Failure;
use crate::fleet_folder::FleetFolder;
use crate::output::{print, say};
use linerate_fleet::{Pause as PauseState, ScheduleStatus, request_run, set_pause};
use linerate_units::{Nanos, grouped};

/// Show agents present, trials in progress, missed slots, alerts
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,

    #[command(flatten)]
    folder: FleetFolder,
}

/// Pause the fleet: no trial begins; those in progress are finished
#[derive(Debug, clap::Args)]
pub(crate) struct Pause {
    /// Reason, shown by `linerate fleet status`
    #[arg(long)]
    reason: Option<String>,

    #[command(flatten)]
    folder: FleetFolder,
}

/// End a pause
#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    folder: FleetFolder,
}

/// Run all pairs of a mesh now, once, in addition to its schedule
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Name of the mesh in the fleet's file
    mesh: String,

    #[command(flatten)]
    folder: FleetFolder,
}

pub(super) async fn status(status: Status) -> Result<(), Failure> {
    let bus = status.folder.connect().await?;
    let schedule = linerate_fleet::status(&bus).await.map_err(Failure::measure)?;
    let paused = linerate_fleet::pause(&bus).await.map_err(Failure::measure)?;
    if status.json {
        let value = serde_json::json!({ "schedule": schedule, "pause": paused });
        print(&serde_json::to_string_pretty(&value).map_err(Failure::measure)?);
        return Ok(());
    }
    if let Some(pause) = &paused {
        let reason = if pause.reason.is_empty() { String::new() } else { format!(": {}", pause.reason) };
        print(&format!("paused by {}{reason}; `linerate fleet resume` ends the pause", pause.by));
    }
    let Some(schedule) = schedule else {
        print("no scheduler has run yet: start one with `linerate fleet serve FILE`");
        return Ok(());
    };
    let now = bus.server_unix_ns().await.map_err(Failure::measure)? / 1_000_000_000;
    for line in lines(&schedule, now) {
        print(&line);
    }
    Ok(())
}

/// Formats the status of a schedule.
fn lines(schedule: &ScheduleStatus, now_unix_s: u64) -> Vec<String> {
    let mut lines = vec![
        format!("scheduler    {}", schedule.scheduler),
        format!("agents       {} present", grouped(schedule.present as u64)),
        format!("in progress  {} trials", grouped(schedule.outstanding_count as u64)),
    ];
    for order in schedule.outstanding.iter().take(20) {
        lines.push(format!("             {}: {} to {}", order.mesh, order.from, order.to));
    }
    if let Some(next) = schedule.next_unix_s {
        let wait = Nanos::from_secs(next.saturating_sub(now_unix_s));
        lines.push(format!("next         {}", if wait.is_zero() { "now".to_owned() } else { format!("in {wait}") }));
    }
    for (reason, count) in &schedule.missed {
        lines.push(format!("missed       {}: {reason}", grouped(*count)));
    }
    lines.extend(schedule.warnings.iter().map(|warning| format!("warning      {warning}")));
    lines.extend(schedule.alerts.iter().map(|alert| format!("alert        {alert}")));
    if schedule.alerts.is_empty() {
        lines.push("alerts       none".to_owned());
    }
    lines
}

pub(super) async fn pause(pause: Pause) -> Result<(), Failure> {
    let bus = pause.folder.connect().await?;
    let by = bus.credentials().name.to_string();
    set_pause(&bus, Some(&PauseState { by, reason: pause.reason.unwrap_or_default() }))
        .await
        .map_err(Failure::measure)?;
    say("linerate: the fleet is paused; trials in progress are finished");
    Ok(())
}

pub(super) async fn resume(resume: Resume) -> Result<(), Failure> {
    let bus = resume.folder.connect().await?;
    set_pause(&bus, None).await.map_err(Failure::measure)?;
    say("linerate: the fleet goes on");
    Ok(())
}

pub(super) async fn run(run: Run) -> Result<(), Failure> {
    let bus = run.folder.connect().await?;
    let is_plain = run.mesh.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !is_plain || run.mesh.is_empty() {
        return Err(Failure::usage(format!(
            "`{}` is no name of a mesh; `linerate fleet plan FILE` lists them",
            run.mesh
        )));
    }
    request_run(&bus, &run.mesh).await.map_err(Failure::measure)?;
    say(&format!(
        "linerate: all pairs of {} run as soon as their hosts are free; `linerate fleet status` shows them",
        run.mesh
    ));
    Ok(())
}
