//! The observer must not be part of what it observes.
//!
//! What it costs in CPU time depends on the machine and on the build: `cargo xtask bench overhead` measures it. What it reads
//! depends on what the kernel tells alone, so a test can bound it.

use linerate_model::Readings;
use linerate_observe::{HostSampler, Watch};
use linerate_sys::thread::EngineThread;

/// What the calling thread has read so far (proc_pid_io(5)).
#[derive(Debug, Clone, Copy)]
struct Read {
    bytes: u64,
    calls: u64,
}

impl Read {
    fn so_far() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/io").expect("a kernel with CONFIG_TASK_IO_ACCOUNTING");
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.expect("the field is there").parse().expect("a number")
        };
        Self { bytes: field("rchar"), calls: field("syscr") }
    }

    fn by(work: impl FnOnce()) -> Self {
        let before = Self::so_far();
        work();
        let after = Self::so_far();
        Self { bytes: after.bytes - before.bytes, calls: after.calls - before.calls }
    }
}

fn own_threads() -> Vec<EngineThread> {
    vec![EngineThread { name: "own".into(), tid: nix::unistd::gettid().as_raw(), sends: true }; 8]
}

/// Bytes and calls that reading every source once may take here. Some files have a line or an interrupt for each core.
fn allowed(kib: u64, calls: u64) -> Read {
    let cores = std::thread::available_parallelism().expect("the kernel tells").get() as u64;
    Read { bytes: (kib + cores) << 10, calls: calls + 8 * cores }
}

#[track_caller]
fn assert_within(read: Read, most: Read) {
    assert!(read.calls > 0 && read.calls <= most.calls && read.bytes <= most.bytes, "{read:?}, allowed {most:?}");
}

#[test]
fn a_watch_reads_each_source_once_at_each_end() {
    let threads = own_threads();
    let mut watch = None;
    let opened = Read::by(|| watch = Some(Watch::open(&threads)));
    let mut watch = watch.expect("opened");
    let closed = Read::by(|| watch.close());
    let finished = Read::by(|| assert_eq!(watch.finish().threads.len(), 8));
    println!("read by a watch: open {opened:?}, close {closed:?}, finish {finished:?}");
    // Twice what two cores need. Opening also asks each thread of the kernel for its name.
    let children = std::fs::read_to_string("/proc/2/task/2/children").unwrap_or_default();
    let kernel_threads = children.split_ascii_whitespace().count() as u64;
    let most = allowed(32, 128);
    assert_within(opened, Read { bytes: most.bytes + 64 * kernel_threads, calls: most.calls + 4 * kernel_threads });
    assert_within(closed, allowed(8, 64));
    assert_within(finished, allowed(32, 64));
}

/// A sample every 100 ms is to cost less than 0.5 % of a core. `cargo xtask bench overhead` tells what it does cost.
#[test]
fn a_sample_reads_each_source_once() {
    let mut sampler = HostSampler::open(&own_threads());
    let mut readings = Readings::default();
    let read = Read::by(|| sampler.sample(&mut readings));
    println!("read by a sample: {read:?}");
    assert_within(read, allowed(16, 24));
}
