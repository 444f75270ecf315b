//! The two halves of a trial at the two ends of a virtual cable, as agents on two hosts run them.

mod ports;

use linerate_frames::{Conductor, FrameError, HalfCounts, run_half};
use linerate_model::{FrameEngine, FrameHalf, FrameStreamResult, FrameTrial};
use linerate_sys::clock;
use linerate_sys::namespace::NetNamespace;
use ports::{ENGINES, UDP, stream, trial, with_ports};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

/// Both hosts and who conducts them in one.
struct Hall {
    hosts: u32,
    counting: AtomicU32,
    start: AtomicU64,
    sent: AtomicU32,
}

impl Hall {
    fn of(hosts: u32) -> Self {
        Self { hosts, counting: AtomicU32::new(0), start: AtomicU64::new(0), sent: AtomicU32::new(0) }
    }
}

impl Conductor for Hall {
    fn counting(&self) {
        assert_eq!(self.sent.load(Ordering::SeqCst), 0, "nobody sends before all count");
        if self.counting.fetch_add(1, Ordering::SeqCst) + 1 == self.hosts {
            self.start.store(clock::now() + 250_000_000, Ordering::SeqCst);
        }
    }

    fn start(&self) -> Option<u64> {
        Some(self.start.load(Ordering::SeqCst)).filter(|start| *start > 0)
    }

    fn sent(&self) {
        self.sent.fetch_add(1, Ordering::SeqCst);
    }

    fn all_sent(&self) -> bool {
        self.sent.load(Ordering::SeqCst) == self.hosts
    }
}

fn half(trial: &FrameTrial, port: u16) -> FrameHalf {
    FrameHalf { trial: trial.clone(), ports: vec![port], tag: 0x1234 }
}

/// What each end counted, the left one first; anew where another program had the sender's core for all of the trial.
fn both(trial: &FrameTrial, namespace: &NetNamespace) -> [HalfCounts; 2] {
    for _ in 0..20 {
        let ends = once(trial, namespace);
        let silent = |counts: &HalfCounts| counts.streams.iter().flat_map(|half| &half.sent).any(|sent| sent.sent == 0);
        if !ends.iter().any(silent) {
            return ends;
        }
    }
    panic!("this host was never quiet for as long as the trial {trial:?}");
}

fn once(trial: &FrameTrial, namespace: &NetNamespace) -> [HalfCounts; 2] {
    let (hall, stop) = (Hall::of(2), AtomicBool::new(false));
    thread::scope(|scope| {
        let ends = [0, 1].map(|port| {
            let (hall, stop) = (&hall, &stop);
            let work = move || run_half(&half(trial, port), hall, stop, &|_, _| {}).unwrap();
            scope.spawn(move || namespace.enter(work).unwrap())
        });
        ends.map(|end| end.join().unwrap())
    })
}

#[test]
fn each_end_knows_its_own_part_and_together_they_know_all() {
    with_ports("each_end_knows_its_own_part_and_together_they_know_all", |namespace| {
        for engine in ENGINES {
            // One way, and both at once: two XDP senders of one machine would take each other's core.
            let ways = [&[0][..], &[0, 1]];
            for ways in ways.into_iter().filter(|ways| ways.len() == 1 || engine == FrameEngine::PacketSocket) {
                let streams: Vec<_> = ways.iter().map(|from| stream(*from, 0, 128, Some(2_000), UDP)).collect();
                let trial = trial(engine, 300, streams);
                let [left, right] = both(&trial, namespace);
                assert_eq!((left.engine, right.engine), (engine, engine));
                for (index, from) in ways.iter().enumerate() {
                    let [near, far] = if *from == 0 { [&left, &right] } else { [&right, &left] };
                    let [near, far] = [near, far].map(|end| end.streams[index].clone());
                    assert_eq!((&near.arrived, &far.sent), (&None, &None), "no end speaks for the other");
                    let (sent, arrived) = (near.sent.unwrap(), far.arrived.unwrap());
                    assert_eq!(arrived.latency.count(), 0, "two hosts have two clocks");
                    assert_eq!((near.flooded, far.flooded), (0, 0));
                    let whole = FrameStreamResult::joined(sent, arrived, 0);
                    assert_eq!(whole.intended, 600);
                    assert!(whole.sent > 0, "{whole:?}");
                    assert_eq!((whole.received, whole.duplicates, whole.reordered), (whole.sent, 0, 0), "{whole:?}");
                    assert_eq!((whole.last_gap, whole.received_bytes), (None, whole.sent * 128), "{whole:?}");
                }
            }
        }
    });
}

/// The stream is meant for a third host, and none of its frames gets there.
#[test]
fn what_arrives_where_it_was_not_meant_to_flooded() {
    with_ports("what_arrives_where_it_was_not_meant_to_flooded", |namespace| {
        for engine in ENGINES {
            let mut astray = stream(0, 0, 128, Some(2_000), UDP);
            astray.to = 2;
            let mut trial = trial(engine, 200, vec![astray]);
            trial.ports.push("elsewhere:p0".into());
            let [left, right] = both(&trial, namespace);
            let sent = left.streams[0].sent.as_ref().map(|sent| sent.sent);
            assert!(sent > Some(0) && left.streams[0].flooded == 0, "{left:?}");
            assert_eq!((&right.streams[0].arrived, Some(right.streams[0].flooded)), (&None, sent), "{engine:?}");
        }
    });
}

#[test]
fn a_half_whose_others_are_gone_sends_nothing() {
    with_ports("a_half_whose_others_are_gone_sends_nothing", |_| {
        for engine in ENGINES {
            let trial = trial(engine, 200, vec![stream(0, 0, 128, Some(2_000), UDP)]);
            let (hall, stop) = (Hall::of(2), AtomicBool::new(false));
            let ended = thread::scope(|scope| {
                scope.spawn(|| {
                    let until = clock::now() + 5_000_000_000;
                    while hall.counting.load(Ordering::SeqCst) == 0 && clock::now() < until {
                        clock::sleep_until(clock::now() + 1_000_000);
                    }
                    stop.store(true, Ordering::SeqCst);
                });
                run_half(&half(&trial, 0), &hall, &stop, &|_, _| {})
            });
            assert!(matches!(ended, Err(FrameError::CalledOff(_))), "{ended:?}");
            assert_eq!(hall.sent.load(Ordering::SeqCst), 0);
        }
        let wrong = FrameHalf { ports: vec![0, 2], ..half(&trial(ENGINES[0], 1, vec![]), 0) };
        let refused = run_half(&wrong, &Hall::of(1), &AtomicBool::new(false), &|_, _| {});
        assert!(matches!(refused, Err(FrameError::BadTrial { .. })), "{refused:?}");
    });
}
