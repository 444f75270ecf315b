//! How well a path keeps up: `path SECONDS FRAMES-PER-SECOND BYTES`.
//!
//! A host sends frames at a pace on the first core, the path forwards them on the last, and another host notes when the
//! kernel has them. Writes a name and a value a line: frames sent, received, and how far the delay was from the planted
//! one. Run with the words of an agent or of a path it is one, so that the lab can start it.

use linerate_lab::{Bench, Lab, LabOptions, path};
use linerate_model::HostName;
use linerate_sys::netlink::Route;
use linerate_sys::packet::PacketSocket;
use linerate_sys::packet_ring::PacketRing;
use linerate_sys::thread::{go_before_all, sharpen_timers};
use linerate_sys::{affinity, clock};
use std::error::Error;
use std::thread;
use std::time::Duration;

/// An EtherType for experiments (IEEE 802): no kernel sends or answers it.
const TEST: u16 = 0x88b5;
/// The planted delay: so long that the path sleeps in between.
const DELAY: u64 = 5_000_000;
/// Frames a second that a path forwards at the most.
const FRAMES_MAXIMUM: u128 = 300_000;
const SECOND: u128 = 1_000_000_000;
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 0xa0], [2, 0, 0, 0, 0, 0xa1]];
/// Frames that are sent without a rest at the most.
const AT_ONCE: u64 = 32;
/// The rest, nanoseconds; it ends some 20 us late.
const REST: u64 = 5_000;
/// No frame is on its way after so long without one.
const SILENCE: u64 = 200_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", ..] => wait_as_agent(),
        ["lab", "beside", "path", plan] => Ok(path::serve(&plan.parse()?)?),
        [seconds, rate, bytes] => measure(seconds.parse()?, rate.parse()?, bytes.parse()?),
        // As `cargo test --benches` calls it: there is nothing to check.
        _ => Ok(()),
    }
}

/// What a lab expects of an agent, and no more.
fn wait_as_agent() -> ! {
    let secret = "0123456789abcdef".repeat(2);
    println!("linerate://127.0.0.1:4747#{secret}.{secret}{secret}");
    loop {
        thread::sleep(Duration::from_secs(600));
    }
}

fn measure(seconds: u64, rate: u64, bytes: usize) -> Result<(), Box<dyn Error>> {
    let bench = Bench::named("cable")?.with_device(format!("path,delay={DELAY}ns,queue=64MiB").parse()?);
    let options = LabOptions { program: std::env::current_exe()?, keep: false, folders: Vec::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let lab = runtime.block_on(Lab::up(&bench, &options))?;
    let [from, to] = ["a", "b"].map(HostName::from);
    let sender = lab.inside(&from, port)??;
    let answers = lab.inside(&to, port)??;
    // All are read when the last has come: nobody else works meanwhile on the cores that are measured.
    let count = seconds * rate;
    let room = count as usize * (bytes + 512).next_power_of_two() * 9 / 8;
    let mut ring = lab.inside(&to, || PacketRing::open(bytes, room))??;
    // So that the path knows where both are.
    for (socket, own) in [(&sender, 0), (&answers, 1)] {
        socket.send(&[&MACS[1 - own][..], &MACS[own], &TEST.to_be_bytes(), &[0; 46]].concat())?;
    }
    ring.wait(SILENCE);
    while ring.take(|_| ()).is_some() {}

    let begun = clock::now();
    let sent = thread::spawn(move || send(&sender, begun, count, rate, bytes));
    let took = sent.join().map_err(|_| "the sender panicked")?;
    // They are those of a path that has sent all: none is on its way after so long.
    clock::sleep_until(clock::now() + SILENCE);
    let counts = lab.path_counts()?.ok_or("a path")?;
    // A frame has its time on the path's own line, where it may wait for those before it, and then the delay.
    let wire = (bytes as u64 + 24) * 8;
    // The latter in parts of a second by so many frames: rounded, it would be 0.1 ms off after 300,000 of them.
    let mut line_free = 0;
    let mut frames_free = 0;
    let mut errors = Vec::with_capacity(count as usize);
    while let Some(error) = ring.take(|frame| {
        let ours = frame.bytes.get(12..14) == Some(&TEST.to_be_bytes());
        let stamp = frame.bytes.get(14..22).and_then(|stamp| stamp.try_into().ok()).map(u64::from_be_bytes);
        let stamp = stamp.filter(|_| ours)?;
        line_free = line_free.max(stamp) + wire;
        frames_free = frames_free.max(u128::from(stamp) * FRAMES_MAXIMUM) + SECOND;
        let due = line_free.max((frames_free / FRAMES_MAXIMUM) as u64) + DELAY;
        Some(frame.arrived_unix.abs_diff(due))
    }) {
        errors.extend(error);
    }
    let unseen = ring.missed()?;
    errors.sort_unstable();
    let at = |share: f64| errors.get(((errors.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default();
    let late: u64 = counts.to.values().map(|to| to.late).sum();
    let unplanned: u64 = counts.to.values().map(|to| to.unplanned).sum::<u64>() + counts.missed;
    let offered = count as f64 * 1e9 / took as f64;
    for (name, value) in [
        ("offered_frames_per_s", offered),
        ("offered_bits_per_s", offered * (bytes as f64 + 24.0) * 8.0),
        ("sent", count as f64),
        ("received", errors.len() as f64),
        ("unseen", unseen as f64),
        ("unplanned", unplanned as f64),
        ("late_share", late as f64 / count as f64),
        ("latest_ns", counts.latest.get() as f64),
        ("delay_error_ns_p50", at(0.5) as f64),
        ("delay_error_ns_p99", at(0.99) as f64),
        ("delay_error_ns_max", at(1.0) as f64),
    ] {
        println!("{name} {value}");
    }
    runtime.block_on(lab.down());
    Ok(())
}

/// The interface of the host in whose network this runs, for sending.
fn port() -> Result<PacketSocket, linerate_sys::Error> {
    let link = Route::open()?.index_of("eth0")?;
    let socket = PacketSocket::open(link, None)?;
    socket.bypass_queue()?;
    Ok(socket)
}

/// Sends what is due every few microseconds, after a pause of this thread no more than [`AT_ONCE`] at a time. Returns
/// how long it took, nanoseconds.
fn send(socket: &PacketSocket, begun: u64, count: u64, rate: u64, bytes: usize) -> u64 {
    // A refusal costs precision only. Ahead of all others the pace holds also where the machine has other work. It
    // sleeps in between, for the kernel may leave the receiving of what it sends to a thread of its own on this core.
    let _ = affinity::pin(0).and_then(|()| go_before_all());
    sharpen_timers();
    let mut frame = [&MACS[1][..], &MACS[0], &TEST.to_be_bytes()].concat();
    frame.resize(bytes, 0);
    let mut sent = 0;
    while sent < count {
        let due = ((clock::now() - begun) * rate / 1_000_000_000).min(count);
        for _ in sent..due.min(sent + AT_ONCE) {
            frame[14..22].copy_from_slice(&clock::unix_now().to_be_bytes());
            // One that is refused is not received either.
            let _ = socket.send(&frame);
        }
        sent = due.min(sent + AT_ONCE);
        clock::sleep_until(clock::now() + REST);
    }
    clock::now() - begun
}
