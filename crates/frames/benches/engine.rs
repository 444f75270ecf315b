//! Sends frames over a virtual cable in one of several ways, for `cargo xtask bench frames`, which compares many runs.
//! Each run makes a temporary network namespace.
//!
//! Called as `engine WAY SECONDS [RATE]`, it writes one figure a line, name and value.

use aya::maps::Array;
use aya::programs::{TestRun, TestRunAttrs, TestRunOptions, Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use linerate_engine::testing;
use linerate_frames::{Frames, port};
use linerate_model::{
    Assignment, FrameEngine, FrameHeaders, FramePayload, FrameReceiver, FrameStream, FrameStreamCounts, FramesTask,
    Role, RoleCounts, RoleKind, SessionId, SessionKey, Task, Timing,
};
use linerate_sys::affinity::pin;
use linerate_sys::clock;
use linerate_sys::namespace::{NetNamespace, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_units::{FrameRate, FrameSize, Nanos};
use std::error::Error;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

static OBJECT: &[u8] = include_bytes_aligned!("../bpf/bench.bpf.o");

const SENDING: &str = "bench-tx";
const RECEIVING: &str = "bench-rx";
/// Ends of the tap between the two ports.
const TAP_IN: &str = "bench-in";
const TAP_OUT: &str = "bench-out";

const SENDER_CORE: u32 = 0;
const RECEIVER_CORE: u32 = 1;

/// Bytes of a frame of 64 without its FCS.
const FRAME_BYTES: usize = 60;
/// The engine uses these numbers at full speed.
const TURNS: u32 = 1 << 18;
const BATCH: u32 = 64;
/// Rate above that of any core. The sender always has a due frame, and its pacing always has to decide.
const BEYOND_REACH: u64 = 50_000_000;
/// Time that trafgen takes to start.
const WARM_UP: Duration = Duration::from_millis(700);

fn main() -> Result<()> {
    // `cargo bench` adds this word.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let usage = "usage: engine bare|bare-two|xdp|xdp-two|packet|mesh|packet-mesh|trafgen|pace|gaps SECONDS [RATE]";
    let (Some(way), Some(seconds)) = (words.first(), words.get(1)) else {
        eprintln!("{usage}: `cargo xtask bench frames` does that");
        return Ok(());
    };
    let seconds: u64 = seconds.parse()?;
    let rate = words.get(2).map(|rate| rate.parse::<u64>()).transpose()?;
    let namespace = NetNamespace::new()?;
    namespace.enter(|| {
        // Frames of the kernel would be counted.
        for interfaces in ["all", "default"] {
            set_network_setting(&format!("ipv6/conf/{interfaces}/disable_ipv6"), "1")?;
        }
        match (way.as_str(), rate) {
            ("bare", None) => bare(&namespace, seconds, false),
            ("bare-two", None) => bare(&namespace, seconds, true),
            ("xdp", None) => full_speed(&namespace, seconds, FrameEngine::Xdp, false),
            ("xdp-two", None) => full_speed(&namespace, seconds, FrameEngine::Xdp, true),
            ("packet", None) => full_speed(&namespace, seconds, FrameEngine::PacketSocket, false),
            ("mesh", None) => mesh(&namespace, seconds, FrameEngine::Xdp),
            ("packet-mesh", None) => mesh(&namespace, seconds, FrameEngine::PacketSocket),
            ("trafgen", None) => trafgen(&namespace, seconds),
            ("pace", Some(rate)) => pace(&namespace, seconds, rate),
            ("gaps", Some(rate)) => gaps(&namespace, seconds, rate),
            _ => Err(usage.into()),
        }
    })?
}

/// Makes the sending and the receiving port, joined by a cable.
fn cable(namespace: &NetNamespace) -> Result<()> {
    join(namespace, SENDING, RECEIVING)
}

fn join(namespace: &NetNamespace, near: &str, far: &str) -> Result<()> {
    let mut route = Route::open()?;
    route.add_veth(near, far, namespace, 1500)?;
    for end in [near, far] {
        let link = route.index_of(end)?;
        route.set_up(link)?;
    }
    Ok(())
}

/// Lets an interface receive in a kernel thread on another core than the sender's.
fn receive_elsewhere(interface: &str) -> Result<()> {
    // A virtual port has work for a thread only if it joins packets or has an XDP program.
    succeed(Command::new("ethtool").args(["-K", interface, "gro", "on"]))?;
    // /sys shows the interfaces of the namespace that it was mounted in.
    let script = format!("mount -t sysfs sysfs /sys && echo 1 >/sys/class/net/{interface}/threaded");
    succeed(Command::new("unshare").args(["--mount", "sh", "-c", &script]))?;
    let prefix = format!("napi/{interface}-");
    let mut has_thread = false;
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(&prefix)) {
            let core = RECEIVER_CORE.to_string();
            // A thread of the previous run may end at this time.
            let pinned = succeed(Command::new("taskset").args(["-pc", &core, &pid]).stdout(Stdio::null()));
            let raised = succeed(Command::new("renice").args(["-n", "-20", "-p", &pid]).stdout(Stdio::null()));
            has_thread |= pinned.and(raised).is_ok();
        }
    }
    if has_thread { Ok(()) } else { Err(format!("{interface} has no kernel thread that receives").into()) }
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}

/// Loads `bench.bpf.c`, which sends frames to the interface `onward`.
fn load(onward: u32, meant: u64) -> Result<Ebpf> {
    Ok(EbpfLoader::new()
        .override_global("onward", &onward, true)
        .override_global("meant", &meant, true)
        .load(OBJECT)?)
}

fn attach(programs: &mut Ebpf, name: &str, link: u32, mode: XdpMode) -> Result<()> {
    let program: &mut Xdp = programs.program_mut(name).ok_or("no such program")?.try_into()?;
    program.load()?;
    program.attach_to_if_index(link, mode)?;
    Ok(())
}

/// Returns the driver's count of frames that arrived through the cable.
fn frames_received() -> Result<u64> {
    let counters = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = counters.lines().find_map(|line| line.trim_start().strip_prefix(&format!("{RECEIVING}:")));
    // Bytes, then packets: proc_net(5).
    let packets = line.and_then(|line| line.split_ascii_whitespace().nth(1)).ok_or("the port has no counters")?;
    Ok(packets.parse()?)
}

/// Measures the barest loop. Every turn sends an unchanged frame, which is dropped on arrival.
fn bare(namespace: &NetNamespace, seconds: u64, elsewhere: bool) -> Result<()> {
    cable(namespace)?;
    let mut route = Route::open()?;
    let sending = route.index_of(SENDING)?;
    let receiving = route.index_of(RECEIVING)?;
    let mut programs = load(sending, 0)?;
    attach(&mut programs, "bare_drop", receiving, XdpMode::Driver)?;
    if elsewhere {
        receive_elsewhere(RECEIVING)?;
    }
    // As in the engine: a call of a program that is not attached takes 25 ms.
    let aside = NetNamespace::new()?;
    aside.enter(|| attach(&mut programs, "bare_send", 1, XdpMode::Skb))??;
    let program: &Xdp = programs.program("bare_send").ok_or("no such program")?.try_into()?;
    let mut context = [0; 24];
    context[4..8].copy_from_slice(&(FRAME_BYTES as u32).to_ne_bytes());
    let frame = [0u8; FRAME_BYTES];
    pin(SENDER_CORE)?;
    let before = frames_received()?;
    let begin = clock::now();
    while clock::now() < begin + seconds * 1_000_000_000 {
        program.test_run(TestRunOptions {
            data_in: Some(&frame),
            ctx_in: Some(&context),
            repeat: TURNS,
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::default()
        })?;
    }
    let elapsed = Duration::from_nanos(clock::now() - begin);
    println!("frames_per_s {}", (frames_received()? - before) as f64 / elapsed.as_secs_f64());
    Ok(())
}

/// Runs a trial of the engine as a device test does.
fn trial(engine: FrameEngine, seconds: u64, rate: u64) -> Result<FrameStreamCounts> {
    let ports = [String::from(SENDING), String::from(RECEIVING)];
    let streams = trial_of(engine, seconds, &ports, &[stream(&ports, 0, 1, rate)?])?;
    streams.into_iter().next().ok_or_else(|| "one stream was asked for".into())
}

/// Returns a stream of the shortest frames between two of the ports.
fn stream(ports: &[String], from: u16, to: u16, rate: u64) -> Result<FrameStream> {
    let [source_mac, destination_mac] = [port(&ports[usize::from(from)])?.mac, port(&ports[usize::from(to)])?.mac];
    let headers = FrameHeaders {
        source_mac,
        destination_mac,
        vlans: Vec::new(),
        priority: 0,
        dscp: 0,
        source: "198.18.0.1".parse()?,
        destination: "198.18.0.2".parse()?,
        payload: FramePayload::Udp { source_port: 49_152, destination_port: 7 },
    };
    Ok(FrameStream {
        from,
        to,
        copies_to: Vec::new(),
        size: FrameSize::with_fcs(64)?,
        rate: Some(FrameRate::per_second(rate)),
        count: None,
        after: Nanos::new(0),
        time: None,
        form: linerate_model::FrameForm::default(),
        headers,
    })
}

/// Runs a trial with these streams between ports of this host.
fn trial_of(
    engine: FrameEngine,
    seconds: u64,
    ports: &[String],
    streams: &[FrameStream],
) -> Result<Vec<FrameStreamCounts>> {
    let task = FramesTask {
        home: "bench".into(),
        ports: ports.iter().map(|port| port.as_str().into()).collect(),
        streams: streams.to_vec(),
        time: Nanos::from_secs(seconds),
        settle: Nanos::from_millis(100),
        engine,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: Vec::new(),
    };
    let assignment = Assignment {
        id: SessionId(String::from("bench")),
        key: SessionKey([0; 16]),
        task: Task::Frames(task),
        timing: Timing::UntilDone,
        roles: vec![Role {
            kind: RoleKind::Ports { own: (0..ports.len() as u16).collect(), tag: 1 },
            listens: Vec::new(),
            connects: Vec::new(),
        }],
        password: None,
        sampling: linerate_model::Sampling::default(),
    };
    let counted = testing::run(&Frames, [assignment]).remove(0)?;
    let Some(RoleCounts::Frames(part)) = counted.roles.into_iter().next() else {
        return Err("no frames were counted".into());
    };
    let streams = part.streams.into_iter().map(|stream| {
        FrameStreamCounts::joined(
            stream.sent.unwrap_or_default(),
            stream.arrived.unwrap_or_default(),
            stream.copies,
            stream.flooded,
        )
    });
    Ok(streams.collect())
}

/// Measures 64 streams between eight ports at full speed: each port sends eight streams over its cable to the next one.
fn mesh(namespace: &NetNamespace, seconds: u64, engine: FrameEngine) -> Result<()> {
    let ports: Vec<String> = (0..8).map(|number| format!("bench-{number}")).collect();
    for pair in ports.chunks_exact(2) {
        join(namespace, &pair[0], &pair[1])?;
    }
    let mut streams = Vec::new();
    for from in 0..8 {
        for _ in 0..8 {
            streams.push(stream(&ports, from, from ^ 1, BEYOND_REACH / 8)?);
        }
    }
    let counts = trial_of(engine, seconds, &ports, &streams)?;
    let received: u64 = counts.iter().map(|stream| stream.received).sum();
    let time = counts.iter().map(|stream| stream.send_time.as_secs_f64()).fold(0.0, f64::max);
    println!("frames_per_s {}", received as f64 / time);
    let fewest = counts.iter().map(|stream| stream.received).min().unwrap_or_default();
    println!("share_of_fewest {}", fewest as f64 * counts.len() as f64 / received as f64);
    Ok(())
}

/// Measures the engine at full speed.
fn full_speed(namespace: &NetNamespace, seconds: u64, engine: FrameEngine, elsewhere: bool) -> Result<()> {
    cable(namespace)?;
    if elsewhere {
        receive_elsewhere(RECEIVING)?;
    }
    let stream = trial(engine, seconds, BEYOND_REACH)?;
    println!("frames_per_s {}", stream.received as f64 / stream.send_time.as_secs_f64());
    Ok(())
}

/// Measures the error of the mean rate, by the receiver's clock.
fn pace(namespace: &NetNamespace, seconds: u64, rate: u64) -> Result<()> {
    cable(namespace)?;
    receive_elsewhere(RECEIVING)?;
    let stream = trial(FrameEngine::Xdp, seconds, rate)?;
    let measured = stream.received.saturating_sub(1) as f64 / stream.receive_time.as_secs_f64();
    println!("rate_error {}", (measured / rate as f64 - 1.0).abs());
    println!("unsent {}", stream.intended.saturating_sub(stream.sent));
    println!("lost {}", stream.sent.saturating_sub(stream.received));
    Ok(())
}

/// Measures the errors of the gaps between frames with a tap on the cable.
fn gaps(namespace: &NetNamespace, seconds: u64, rate: u64) -> Result<()> {
    join(namespace, SENDING, TAP_IN)?;
    join(namespace, TAP_OUT, RECEIVING)?;
    let mut route = Route::open()?;
    let tap_in = route.index_of(TAP_IN)?;
    let tap_out = route.index_of(TAP_OUT)?;
    let mut programs = load(tap_out, 1_000_000_000 / rate)?;
    attach(&mut programs, "tap", tap_in, XdpMode::Driver)?;
    let stream = trial(FrameEngine::Xdp, seconds, rate)?;
    let errors: Array<_, u64> = programs.take_map("errors").ok_or("no such map")?.try_into()?;
    let errors: Vec<u64> = errors.iter().collect::<std::result::Result<_, _>>()?;
    let seen: u64 = errors.iter().sum();
    if seen + 1 != stream.sent {
        return Err(format!("{} frames were sent, and the tap saw {}", stream.sent, seen + 1).into());
    }
    for (name, share) in [("gap_error_ns_p50", 0.5), ("gap_error_ns_p99", 0.99)] {
        let rank = (seen as f64 * share).ceil() as u64;
        let mut below = 0;
        let at = errors.iter().position(|count| {
            below += count;
            below >= rank
        });
        println!("{name} {}", at.ok_or("no gap was seen")?);
    }
    Ok(())
}

/// Measures trafgen (netsniff-ng), which uses packet sockets, with the same frame at full speed.
fn trafgen(namespace: &NetNamespace, seconds: u64) -> Result<()> {
    cable(namespace)?;
    let mut route = Route::open()?;
    let sending = route.index_of(SENDING)?;
    let receiving = route.index_of(RECEIVING)?;
    let mut programs = load(sending, 0)?;
    attach(&mut programs, "bare_drop", receiving, XdpMode::Driver)?;
    let mut file = tempfile::NamedTempFile::new()?;
    write!(file, "{{ fill(0xff, 12), c16(0x0800), fill(0, {}) }}", FRAME_BYTES - 14)?;
    // trafgen starts a process for each core. timeout(1) signals all of them, and a signal to trafgen alone does not.
    let limit = (Duration::from_secs(seconds) + 2 * WARM_UP).as_secs_f64().to_string();
    let mut child = Command::new("timeout")
        .args([
            "--signal=KILL",
            &limit,
            "trafgen",
            "--dev",
            SENDING,
            "--cpus",
            "1",
            "--num",
            "0",
            "--no-sock-mem",
            "--conf",
        ])
        .arg(file.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("starting timeout(1): {error}"))?;
    thread::sleep(WARM_UP);
    let before = frames_received()?;
    let begin = clock::now();
    thread::sleep(Duration::from_secs(seconds));
    let frames = frames_received()? - before;
    let elapsed = Duration::from_nanos(clock::now() - begin);
    let ended_early = child.try_wait()?;
    child.wait()?;
    match ended_early {
        Some(status) => {
            let remedy = "is it installed? `make bench` does that (package netsniff-ng)";
            return Err(format!("trafgen ended by itself ({status}): {remedy}").into());
        }
        None if frames == 0 => return Err("no frame of trafgen's arrived".into()),
        None => println!("frames_per_s {}", frames as f64 / elapsed.as_secs_f64()),
    }
    Ok(())
}
