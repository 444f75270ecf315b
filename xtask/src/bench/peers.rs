//! Command lines of the peers for each work, as their users would write them.
//!
//! Each peer gets the same CPUs as linerate (the sender 0, the receiver 1), and cubic if it can choose the congestion
//! control. If it cannot, its row names the machine's default. A work that a peer does not support is omitted.

use super::figure::Figure;
use super::read::{self, WorkUnit, Written};
use super::work::{Flags, Load, Wait, Way};
use anyhow::Result;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lowest port of a server.
const FIRST_PORT: u16 = 5301;

/// Number of ports used in turn from [`FIRST_PORT`] on. They are below the ephemeral ports.
const PORTS: u32 = 27_000;

/// Returns the port for run number `run` of a peer. The next port is free for tools with a separate data port.
///
/// Every run has its own port, because some servers cannot bind to a port that was just used.
pub(super) fn port(run: u32) -> u16 {
    FIRST_PORT + u16::try_from(run % (PORTS / 2)).map_or(0, |run| run * 2)
}

/// Sizes of a write that qperf and netperf are tried with.
const SIZES: [&str; 3] = ["64K", "256K", "1M"];

/// Programs of the peers.
const PROGRAMS: &[&str] = &["iperf3", "iperf", "nuttcp", "sockperf", "qperf", "netperf", "netserver"];

/// The peers of this machine.
#[derive(Default)]
pub(super) struct Installed {
    programs: BTreeMap<&'static str, PathBuf>,
    iperf3_help: String,
}

/// One way to call one peer.
#[derive(Debug)]
pub(super) struct Peer {
    /// Name of its program. Of several ways to call one program the fastest is found first ([`super::flags`]).
    pub(super) program: String,
    /// The tool and the flags that matter, as printed.
    pub(super) tool: String,
    /// Whether it chose cubic. Otherwise TCP runs with the machine's default.
    pub(super) cubic: bool,
    /// Whether the goal refers to this peer.
    pub(super) counts: bool,
    /// Port of its server.
    pub(super) port: u16,
    pub(super) server: Vec<String>,
    pub(super) client: Vec<String>,
    /// Signal that ends its server. Some servers report only then.
    pub(super) stop: Signal,
    pub(super) read: fn(&Written<'_>, WorkUnit) -> Result<Figure>,
}

/// Finds a program in `folder`, then in PATH.
pub(super) fn find_program(name: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = folder.map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    let file = folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))?;
    file.canonicalize().ok()
}

impl Installed {
    /// Looks in `folder` first, then in PATH.
    pub(super) fn find(folder: Option<&Path>) -> Self {
        let programs: BTreeMap<_, _> =
            PROGRAMS.iter().filter_map(|&name| Some((name, find_program(name, folder)?))).collect();
        // Its fast paths depend on its version.
        let help = programs.get("iperf3").and_then(|iperf3| Command::new(iperf3).arg("--help").output().ok());
        let iperf3_help = help.map(|help| String::from_utf8_lossy(&help.stdout).into_owned()).unwrap_or_default();
        Self { programs, iperf3_help }
    }

    /// Returns the names of the installed peers and of the missing ones.
    pub(super) fn present_and_missing(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        PROGRAMS.iter().filter(|name| **name != "netserver").partition(|name| self.programs.contains_key(**name))
    }

    /// Returns every way to call an installed peer for this load. `to` is the receiver's address.
    pub(super) fn peers(&self, load: Load, to: &str, port: u16, seconds: u32) -> Vec<Peer> {
        let mut list = List { installed: self, port, peers: Vec::new() };
        match load {
            Load::Tcp { flows, flags } => list.tcp(flows, flags, to, seconds),
            Load::Udp { size, way } => list.udp(size, way == Way::Offload, to, seconds),
            Load::Transact { udp, wait } => list.transact(udp, wait, to, seconds),
        }
        list.peers
    }

    fn iperf3_knows(&self, flag: &str) -> bool {
        self.iperf3_help.contains(flag)
    }
}

/// The list of peers as it grows.
struct List<'a> {
    installed: &'a Installed,
    port: u16,
    peers: Vec<Peer>,
}

impl List<'_> {
    /// Adds a peer if both of its programs are here. The first word of `server` and `client` is a program of
    /// [`PROGRAMS`].
    fn add(&mut self, tool: &str, server: &str, client: &str, read: fn(&Written<'_>, WorkUnit) -> Result<Figure>) {
        if let (Some(server), Some(client)) = (self.command(server), self.command(client)) {
            let cubic = client.iter().any(|word| word == "cubic");
            self.peers.push(Peer {
                program: tool.split(' ').next().unwrap_or(tool).to_owned(),
                tool: tool.to_owned(),
                cubic,
                counts: true,
                port: self.port,
                server,
                client,
                stop: Signal::SIGINT,
                read,
            });
        }
    }

    fn command(&self, line: &str) -> Option<Vec<String>> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let program = self.installed.programs.get(words.next()?.as_str())?;
        Some(std::iter::once(program.to_string_lossy().into_owned()).chain(words).collect())
    }

    fn iperf3(&mut self, flags: &str, common: &str) {
        let port = self.port;
        let tool = format!("iperf3 {flags}");
        self.add(
            tool.trim_end(),
            &format!("iperf3 -s -1 -p {port}"),
            &format!("iperf3 -J -p {port} {common} {flags}"),
            read::iperf3,
        );
    }

    fn iperf(&mut self, flags: &str, server: &str, common: &str) {
        let port = self.port;
        let tool = format!("iperf {flags}");
        let server = format!("iperf -s -y C -p {port} {server}");
        self.add(tool.trim_end(), &server, &format!("iperf -p {port} {common} {flags}"), read::iperf);
    }

    fn nuttcp(&mut self, flags: &str, to: &str, seconds: u32) {
        // Without --nofork it may run on as a daemon.
        let ports = format!("-P {} -p {}", self.port, self.port + 1);
        let tool = format!("nuttcp {flags}");
        let client = format!("nuttcp {ports} -T {seconds} -fparse {flags} {to}");
        self.add(tool.trim_end(), &format!("nuttcp -1 --nofork {ports}"), &client, read::nuttcp);
    }

    fn qperf(&mut self, test: &str, flags: &str, to: &str, seconds: u32) {
        let port = self.port;
        let client = format!("qperf -lp {port} -v -uu -t {seconds} {flags} {to} {test}");
        self.add(
            &format!("qperf {flags} {test}").replace("  ", " "),
            &format!("qperf -lp {port}"),
            &client,
            read::qperf,
        );
    }

    fn netperf(&mut self, test: &str, flags: &str, to: &str, seconds: u32) {
        let port = self.port;
        const KEYS: &str = "LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,ELAPSED_TIME,TRANSACTION_RATE,P50_LATENCY";
        let client = format!("netperf -H {to} -p {port} -P 0 -t {test} -l {seconds} -- {flags} -k {KEYS}");
        self.add(&format!("netperf {test} {flags}"), &format!("netserver -D -4 -p {port}"), &client, read::netperf);
    }

    fn tcp(&mut self, flows: u16, flags: Flags, to: &str, seconds: u32) {
        let parallel = if flows > 1 { format!("-P {flows}") } else { String::new() };
        let streams = if flows > 1 { format!("-N {flows}") } else { String::new() };
        let iperf3 = format!("-c {to} -t {seconds} -O 1 -C cubic {parallel}");
        let iperf = format!("-c {to} -t {seconds} -Z cubic {parallel}");
        match flags {
            Flags::Plain => {
                self.iperf3("", &iperf3);
                self.iperf("", "", &iperf);
                self.nuttcp(&streams, to, seconds);
                if flows == 1 {
                    self.qperf("tcp_bw", "", to, seconds);
                    self.netperf("TCP_STREAM", "-K cubic", to, seconds);
                }
            }
            Flags::Best => {
                let mut copies = vec!["", "-Z"];
                if self.installed.iperf3_knows("--skip-rx-copy") {
                    copies.extend(["--skip-rx-copy", "-Z --skip-rx-copy"]);
                }
                for copy in copies {
                    for length in ["", "-l 256K", "-l 1M"] {
                        self.iperf3(format!("{copy} {length}").trim(), &iperf3);
                    }
                }
                self.iperf3("-Z -w 4M", &iperf3);
                for flags in ["", "-l 256K", "-l 1M", "-l 1M -w 4M"] {
                    self.iperf(flags, "", &iperf);
                }
                for flags in ["", "-l128k", "-l256k", "-l1m", "-l256k -w4m"] {
                    self.nuttcp(format!("{flags} {streams}").trim(), to, seconds);
                }
                if flows == 1 {
                    for size in SIZES {
                        self.qperf("tcp_bw", &format!("-m {size}"), to, seconds);
                    }
                    for size in SIZES {
                        self.netperf("TCP_STREAM", &format!("-m {size} -K cubic"), to, seconds);
                    }
                }
            }
        }
    }

    fn udp(&mut self, size: u32, offload: bool, to: &str, seconds: u32) {
        let port = self.port;
        let iperf3 = format!("-c {to} -t {seconds} -O 1 -b 0 -l {size}");
        let iperf = format!("-c {to} -t {seconds} -b 1000g -l {size}");
        let mut offloads = vec!["-u"];
        if offload && self.installed.iperf3_knows("--gsro") {
            offloads.push("-u --gsro");
        }
        for flags in offloads {
            self.iperf3(flags, &iperf3);
            self.iperf3(&format!("{flags} -w 4M"), &iperf3);
        }
        for flags in ["-u", "-u -w 4M"] {
            self.iperf(flags, flags, &iperf);
        }
        for buffer in ["", " -w4m"] {
            self.nuttcp(&format!("-u -Ru -l{size}{buffer}"), to, seconds);
        }
        for buffer in ["", " -sb 4M"] {
            self.qperf("udp_bw", &format!("-m {size}{buffer}"), to, seconds);
        }
        for buffer in ["", " -s 4M -S 4M"] {
            self.netperf("UDP_STREAM", &format!("-m {size}{buffer}"), to, seconds);
        }
        if !offload {
            for flags in ["", " --nonblocked", " --buffer-size 4000000"] {
                let server = format!("sockperf sr -i {to} -p {port}{flags}");
                let client = format!("sockperf tp -i {to} -p {port} -t {seconds} -m {size}{flags}");
                self.add(&format!("sockperf tp{flags}"), &server, &client, read::sockperf_throughput);
            }
        }
    }

    fn transact(&mut self, udp: bool, wait: Wait, to: &str, seconds: u32) {
        let port = self.port;
        let (name, flag) = if udp { ("udp", "") } else { ("tcp", "--tcp") };
        // sockperf sends at least 14 bytes.
        let sockperf = |role: &str, flags: &str| format!("sockperf {role} {flag} {flags} -i {to} -p {port}");
        let timing = format!("-t {seconds} -m 14");
        let client = format!("{} {timing}", sockperf("pp", ""));
        self.add("sockperf pp (14 B)", &sockperf("sr", ""), &client, read::sockperf_ping_pong);
        self.qperf(&format!("{name}_lat"), "-m 1", to, seconds);
        self.netperf(&format!("{}_RR", name.to_uppercase()), "-r 1,1", to, seconds);
        if wait == Wait::BusyPoll {
            // This peer polls too. The goal refers to peers that block.
            let server = sockperf("sr", "--nonblocked");
            let client = format!("{} {timing}", sockperf("pp", "--nonblocked"));
            self.add("sockperf pp --nonblocked (14 B)", &server, &client, read::sockperf_ping_pong);
            if let Some(polling) = self.peers.last_mut().filter(|peer| peer.tool.contains("--nonblocked")) {
                polling.counts = false;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::work::WORKS;
    use super::*;

    fn all(help: &str) -> Installed {
        let programs = PROGRAMS.iter().map(|&name| (name, PathBuf::from("/p").join(name))).collect();
        Installed { programs, iperf3_help: help.to_owned() }
    }

    /// Returns every way to call every peer, as if all were installed.
    pub(in super::super) fn every_peer(load: Load) -> Vec<Peer> {
        all("--gsro --skip-rx-copy").peers(load, "198.18.0.2", 5301, 2)
    }

    #[test]
    fn every_work_has_peers_with_unique_names() {
        for work in WORKS {
            let peers = all("--gsro --skip-rx-copy").peers(work.load, "198.18.0.2", 5301, 2);
            let mut names: Vec<&str> = peers.iter().map(|peer| peer.tool.as_str()).collect();
            assert!(names.len() >= 3, "{}: {names:?}", work.name);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), peers.len(), "{}", work.name);
            for peer in &peers {
                assert!(peer.client.contains(&"198.18.0.2".to_owned()), "{peer:?}");
                assert!(peer.server[0].starts_with("/p/") && peer.client[0].starts_with("/p/"), "{peer:?}");
            }
            assert_eq!(Installed::default().peers(work.load, "198.18.0.2", 5301, 2).len(), 0);
        }
    }

    #[test]
    fn flags_depend_on_the_installed_iperf3() {
        let uses = |help: &str, load: Load, flag: &str| {
            all(help).peers(load, "198.18.0.2", 5301, 2).iter().any(|peer| peer.client.contains(&flag.to_owned()))
        };
        let udp = Load::Udp { size: 1448, way: Way::Offload };
        let tcp = Load::Tcp { flows: 1, flags: Flags::Best };
        assert!(uses("--gsro", udp, "--gsro") && !uses("", udp, "--gsro"));
        assert!(!uses("--gsro", Load::Udp { size: 64, way: Way::Sockets }, "--gsro"));
        assert!(uses("--skip-rx-copy", tcp, "--skip-rx-copy") && !uses("", tcp, "--skip-rx-copy"));
    }

    #[test]
    fn every_run_has_its_own_ports() {
        let mut ports: Vec<u16> = (0..PORTS / 2).flat_map(|run| [port(run), port(run) + 1]).collect();
        assert!(ports.iter().all(|port| (FIRST_PORT..32_768).contains(port)));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 27_000);
        assert_eq!(port(PORTS / 2), FIRST_PORT);
    }

    #[test]
    fn polling_peer_does_not_count() {
        let peers = all("").peers(Load::Transact { udp: true, wait: Wait::BusyPoll }, "198.18.0.2", 5301, 2);
        let polling: Vec<bool> =
            peers.iter().filter(|peer| !peer.counts).map(|peer| peer.tool.contains("nonblocked")).collect();
        assert_eq!(polling, [true]);
    }
}
