//! The observer must not be part of what it observes.

use linerate_model::Readings;
use linerate_observe::{HostSampler, Watch};
use linerate_sys::thread::EngineThread;
use nix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, microseconds.
fn cpu_us() -> i64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has this clock");
    time.tv_sec() * 1_000_000 + time.tv_nsec() / 1000
}

#[test]
fn a_watch_costs_well_under_a_millisecond() {
    let own = EngineThread { name: "own".into(), tid: nix::unistd::gettid().as_raw(), sends: true };
    let threads = vec![own; 8];
    let mut costs: Vec<[i64; 3]> = (0..101)
        .map(|_| {
            let start = cpu_us();
            let mut watch = Watch::open(&threads);
            let opened = cpu_us();
            watch.close();
            let closed = cpu_us();
            let observation = watch.finish();
            assert_eq!(observation.threads.len(), 8);
            [opened - start, closed - opened, cpu_us() - closed]
        })
        .collect();
    costs.sort_by_key(|parts| parts.iter().sum::<i64>());
    let median = costs[costs.len() / 2];
    println!("median CPU of a watch, us: open {}, close {}, finish {}", median[0], median[1], median[2]);
    // A bound that a slow machine and a debug build keep, and that reading something large by mistake breaks.
    assert!(median.iter().sum::<i64>() < 2_000, "{median:?} us");
}

/// A sample every 100 ms is to cost less than 0.5 % of a core. `cargo xtask bench overhead` tells what it does cost.
#[test]
fn a_sample_costs_less_than_half_a_millisecond() {
    let own = EngineThread { name: "own".into(), tid: nix::unistd::gettid().as_raw(), sends: true };
    let mut sampler = HostSampler::open(&vec![own; 8]);
    let mut costs: Vec<i64> = (0..101)
        .map(|_| {
            let (start, mut readings) = (cpu_us(), Readings::default());
            sampler.sample(&mut readings);
            cpu_us() - start
        })
        .collect();
    costs.sort_unstable();
    let median = costs[costs.len() / 2];
    println!("median CPU of a sample: {median} us");
    assert!(median < 500, "{median} us");
}
