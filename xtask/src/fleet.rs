//! `make fleet`: a fleet on one machine, from nothing to its pages, for three minutes.

use crate::bench::lab::build_as;
use crate::process::{Running, catch_interrupts, check_interrupt};
use anyhow::{Context, Result, bail};
use clap::Args;
use linerate_sys::namespace::may_make_networks;
use linerate_testsuite::fleet::{Database, FleetLab, FleetLabOptions, FleetServer, Site};
use linerate_testsuite::program;
use linerate_units::BitRate;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Time after which the matrix is printed, even if pairs are missing.
const MEASURED: Duration = Duration::from_secs(125);
/// Time after which the fleet ends.
const END: Duration = Duration::from_secs(170);
/// Interval of looking at the fleet.
const LOOK: Duration = Duration::from_secs(5);
/// Time for a page or a program.
const ANSWER: Duration = Duration::from_secs(20);
/// Ports on the loopback of the lab's control network.
const METRICS: u16 = 9464;
const PROMETHEUS: u16 = 9090;
const SITES: [(&str, u64); 4] = [("oslo", 200), ("rome", 20), ("lima", 200), ("bonn", 40)];
const HOSTS_OF_SITE: usize = 3;
const MEGABIT: u64 = 1_000_000;

/// Options of `cargo xtask fleet`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Use this linerate instead of one that is built now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Brings the fleet up, prints its matrix and the addresses of its pages, and takes it down.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    catch_interrupts()?;
    if !may_make_networks().unwrap_or(false) {
        bail!("the lab makes network namespaces, which needs root: run it as root, or with sudo");
    }
    for name in ["nats-server", "prometheus"] {
        if program(name).is_none() {
            bail!("{name} is missing: `scripts/install-packages.sh fleet` installs it");
        }
    }
    let linerate = match &arguments.program {
        Some(program) => program.canonicalize().with_context(|| format!("finding {}", program.display()))?,
        None => build_as("release", &["--package", "linerate", "--no-default-features"], "linerate")?,
    };
    let begin = Instant::now();
    println!("Bringing up {} agents at {} sites; rome and bonn have slow uplinks.", agents(), SITES.len());
    let mut lab = FleetLab::up(options(&linerate));
    start_prometheus(&mut lab)?;
    check_interrupt()?;
    println!("All agents are present after {:.0} s. The mesh runs.", begin.elapsed().as_secs_f64());
    let prometheus = lab.forward(PROMETHEUS);
    let mut view = start_view(&linerate, &lab.store())?;
    let address = view.first_line(ANSWER)?;
    println!("Pages:      {address}");
    println!("Prometheus: http://{}/graph?g0.expr=%7B__name__%3D~%22linerate_.%2A%22%7D", prometheus.address);

    let pairs = agents() * (agents() - 1);
    loop {
        wait(begin, LOOK)?;
        let measured = cells(&lab);
        println!("{:>4.0} s  {measured} of {pairs} pairs measured", begin.elapsed().as_secs_f64());
        if measured == pairs || begin.elapsed() > MEASURED {
            break;
        }
    }
    println!();
    println!(
        "By site: the slowest pair of hosts, and what limited it.\n{}",
        lab.run_well(&["fleet", "matrix", "--by", "site"])
    );
    println!("By host.\n{}", lab.run_well(&["fleet", "matrix"]));
    println!("{}", lab.run_well(&["fleet", "status"]));
    println!("Prometheus has {} series of linerate.", series(prometheus.address)?);
    println!("Pages: {address}");
    let left = END.saturating_sub(begin.elapsed());
    println!("The fleet ends in {} s, or with Ctrl-C.", left.as_secs());
    wait(begin, left)
}

fn agents() -> usize {
    SITES.len() * HOSTS_OF_SITE
}

/// Waits for a time, at most until the end of the fleet.
fn wait(begin: Instant, duration: Duration) -> Result<()> {
    let deadline = Instant::now() + duration.min(END.saturating_sub(begin.elapsed()));
    while Instant::now() < deadline {
        check_interrupt()?;
        thread::sleep(Duration::from_millis(100));
    }
    check_interrupt()
}

fn options(linerate: &Path) -> FleetLabOptions {
    let sites = SITES.iter().map(|(name, rate)| Site {
        name: (*name).to_owned(),
        hosts: HOSTS_OF_SITE,
        uplink: BitRate::per_second(rate * MEGABIT),
    });
    let metrics = ["--listen".to_owned(), format!("127.0.0.1:{METRICS}")];
    FleetLabOptions {
        program: linerate.to_owned(),
        sites: sites.collect(),
        host_rate: BitRate::per_second(500 * MEGABIT),
        slow_hosts: BTreeMap::new(),
        file: file(),
        servers: vec![FleetServer { options: metrics.to_vec(), ..FleetServer::new("fleet", "") }],
        database: Database::PostgreSql,
        stream_space: None,
    }
}

/// Returns the fleet's file: a mesh of all hosts, and the uplinks as they were ordered from a carrier.
fn file() -> String {
    let mut file = String::from("[[group]]\nname = \"hosts\"\nhosts = [");
    for (site, _) in SITES {
        for number in 1..=HOSTS_OF_SITE {
            file += &format!("\"{site}-{number}\", ");
        }
    }
    file += "]\n";
    for (site, _) in SITES {
        file +=
            &format!("\n[[link]]\nname = \"{site}-uplink\"\nlabels = {{ site = \"{site}\" }}\nrate = \"200Mbit/s\"\n");
    }
    file += "\n[[mesh]]\nname = \"rate\"\nbetween = [\"hosts\"]\ntest = \"stream --time 0.5s --warmup 0.2s --repeats 1\"\nevery = \"1min\"\n";
    file += "slip = \"1min\"\n\n[[alert]]\nname = \"slow\"\nmesh = \"rate\"\nbelow = \"100Mbit/s\"\n";
    file
}

fn start_prometheus(lab: &mut FleetLab) -> Result<()> {
    let configuration = lab.path("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 5s}}\n\
         scrape_configs: [{{job_name: linerate, honor_labels: true, static_configs: [{{targets: ['127.0.0.1:{METRICS}']}}]}}]\n"
    );
    std::fs::write(&configuration, text).context("writing the configuration of Prometheus")?;
    let arguments = [
        format!("--config.file={}", configuration.display()),
        format!("--storage.tsdb.path={}", lab.path("prometheus").display()),
        format!("--web.listen-address=127.0.0.1:{PROMETHEUS}"),
    ];
    let prometheus = program("prometheus").context("prometheus is missing")?;
    lab.add_program("prometheus", &prometheus, &arguments.each_ref().map(String::as_str));
    Ok(())
}

fn start_view(linerate: &Path, store: &str) -> Result<Running> {
    let mut command = Command::new(linerate);
    command.args(["view", "--store", store]);
    if ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| std::env::var_os(name).is_some()) {
        command.arg("--open");
    }
    Running::start(command)
}

/// Returns the number of pairs with a result.
fn cells(lab: &FleetLab) -> usize {
    let output = lab.run(&["fleet", "matrix", "--json"]);
    let matrix: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    matrix["cells"].as_array().map_or(0, Vec::len)
}

/// Returns the number of series that Prometheus has of linerate.
fn series(address: SocketAddr) -> Result<usize> {
    let mut stream = TcpStream::connect(address).context("reaching Prometheus")?;
    stream.set_read_timeout(Some(ANSWER))?;
    let query = "/api/v1/label/__name__/values?match[]=%7Bjob%3D%22linerate%22%7D";
    write!(stream, "GET {query} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("reading the answer of Prometheus")?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let names: Value = serde_json::from_str(body).context("the answer of Prometheus is no JSON")?;
    let names = names["data"].as_array().cloned().unwrap_or_default();
    Ok(names.iter().filter_map(Value::as_str).filter(|name| name.starts_with("linerate_")).count())
}
