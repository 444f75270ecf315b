//! `linerate probe`: what a host is, what linerate can do there, and what would change that.

use crate::exit::Failure;
use crate::hosts::{HostBook, host_arguments};
use crate::output::print;
use linerate_model::{Host, Nic};
use linerate_runner::Agents as _;
use linerate_units::ByteCount;
use std::fmt::Write as _;

/// Describe a host, and what linerate can do on it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate probe                             this machine
  linerate probe linerate://host:4747#...    the host of that agent
  linerate probe --json | jq '.capabilities[] | select(.available | not)'")]
pub(crate) struct Arguments {
    /// Agent URL, saved name, `local` or lab host
    #[arg(default_value = "local")]
    host: String,

    /// Print only one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments, book: HostBook) -> Result<(), Failure> {
    let hosts = host_arguments(&[arguments.host.clone(), arguments.host]).map_err(Failure::usage)?;
    let agents = book.gather(&hosts).await?;
    let hosts = agents.control.hosts();
    agents.close().await;
    for host in &hosts {
        print(&if arguments.json { serde_json::json!(host).to_string() } else { describe(host) });
    }
    Ok(())
}

fn describe(host: &Host) -> String {
    let mut text = format!(
        "{}: {}, {}, {} cores, {} memory, linerate {}\nCongestion control: {}\n\nInterfaces\n",
        host.name,
        host.system,
        host.cpu_model,
        host.cores,
        ByteCount::new(host.memory_bytes),
        host.version,
        host.congestion_controls.join(", ")
    );
    for nic in &host.nics {
        text += &describe_nic(nic);
    }
    if host.nics.is_empty() {
        text += "  none but loopback\n";
    }
    text += "\nWhat linerate can do here\n";
    for capability in &host.capabilities {
        let mark = if capability.available { "yes" } else { "no " };
        let _ = writeln!(text, "  {mark}  {:<28} {}", capability.name, capability.text);
    }
    text
}

fn describe_nic(nic: &Nic) -> String {
    let speed = nic.speed.map_or_else(|| "speed unknown".to_owned(), |speed| speed.to_string());
    let duplex = nic.duplex.map_or_else(String::new, |duplex| format!(", {duplex} duplex"));
    let state = if nic.up { "up" } else { "down" };
    let addresses: Vec<String> = nic.addresses.iter().map(ToString::to_string).collect();
    let driver = if nic.driver.is_empty() { "unknown driver" } else { &nic.driver };
    format!("  {:<10} {state}, {speed}{duplex}, MTU {}, {driver}, {}\n", nic.name, nic.mtu, addresses.join(" "))
}
