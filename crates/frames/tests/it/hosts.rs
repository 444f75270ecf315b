//! Trials of two hosts at the two ends of a virtual cable.

use crate::ports::{AMPLE, ENGINES, LONG, UDP, assignment, failure, part, stream, tag, trial, with_ports};
use linerate_engine::testing::{self, Reached, run, sessions};
use linerate_engine::{Conductor as _, Counted, FailedBy};
use linerate_frames::Frames;
use linerate_model::{Endpoints, FrameEngine, FramePartCounts, FrameStream, FrameStreamCounts, FramesTask};
use linerate_testsuite::lab_test;

/// Runs a trial. Returns the counts of the left and the right end.
fn both(task: &FramesTask) -> [FramePartCounts; 2] {
    let tag = tag();
    let ends = run(&Frames, [0, 1].map(|port| assignment(task, vec![port], tag)));
    let ends: [Counted; 2] = ends.into_iter().collect::<Result<Vec<_>, _>>().unwrap().try_into().unwrap();
    ends.map(part)
}

/// A stream with enough frames that a stalled sender still sends some.
fn few(from: u16) -> FrameStream {
    FrameStream { count: Some(400), ..stream(from, 0, 128, Some(2_000), UDP) }
}

#[lab_test(Bpf)]
fn the_counts_of_both_ends_complement_each_other() {
    with_ports(|_| {
        for engine in ENGINES {
            // One direction, and both at once with packet sockets: two XDP senders would share a core.
            let directions: [&[u16]; 2] = [&[0], &[0, 1]];
            let count = if engine == FrameEngine::PacketSocket { 2 } else { 1 };
            for senders in &directions[..count] {
                let streams: Vec<_> = senders.iter().map(|from| few(*from)).collect();
                let [left, right] = both(&trial(engine, AMPLE, streams));
                assert_eq!((left.engine, right.engine), (engine, engine));
                for (index, from) in senders.iter().enumerate() {
                    let [near, far] = if *from == 0 { [&left, &right] } else { [&right, &left] };
                    let [near, far] = [near, far].map(|end| end.streams[index].clone());
                    assert_eq!((&near.arrived, &far.sent), (&None, &None), "each end counts its own part only");
                    let sent = near.sent.unwrap();
                    let arrived = far.arrived.unwrap();
                    assert_eq!(arrived.latency.count(), 0, "two hosts have two clocks");
                    assert_eq!((near.flooded, far.flooded), (0, 0));
                    let whole = FrameStreamCounts::joined(sent, arrived, far.copies, 0);
                    assert_eq!(whole.intended, 400);
                    assert!(whole.sent > 0, "{whole:?}");
                    assert_eq!((whole.received, whole.duplicates, whole.reordered), (whole.sent, 0, 0), "{whole:?}");
                    assert_eq!((whole.last_gap, whole.received_bytes), (None, whole.sent * 128), "{whole:?}");
                }
            }
        }
    });
}

/// All frames of the stream miss their destination, a third host.
#[lab_test(Bpf)]
fn frames_at_the_wrong_host_are_counted_as_flooded() {
    with_ports(|_| {
        for engine in ENGINES {
            let mut trial = trial(engine, AMPLE, vec![FrameStream { to: 2, ..few(0) }]);
            trial.ports.push("elsewhere:p0".into());
            let [left, right] = both(&trial);
            let sent = left.streams[0].sent.as_ref().map(|sent| sent.sent);
            assert!(sent > Some(0) && left.streams[0].flooded == 0, "{left:?}");
            assert_eq!((&right.streams[0].arrived, Some(right.streams[0].flooded)), (&None, sent), "{engine:?}");
        }
    });
}

/// The sender replaces XDP, whose frames the link drops. The receiver counts until the packet sockets have sent too.
#[lab_test(Bpf)]
fn a_receiver_counts_until_packet_sockets_have_taken_over_from_xdp() {
    with_ports(|_| {
        let mut task = trial(FrameEngine::Auto, AMPLE, vec![stream(0, 0, 128, Some(1_000), UDP)]);
        task.streams[0].count = Some(200);
        let tag = tag();
        // The receiver uses packet sockets, so the virtual link drops the frames of XDP.
        let receiver_task = FramesTask { engine: FrameEngine::PacketSocket, ..task.clone() };
        let ends = run(&Frames, [assignment(&task, vec![0], tag), assignment(&receiver_task, vec![1], tag)]);
        let ends: Vec<_> = ends.into_iter().map(|end| part(end.unwrap())).collect();
        assert_eq!([ends[0].engine, ends[1].engine], [FrameEngine::PacketSocket; 2]);
        let sent = ends[0].streams[0].sent.as_ref().unwrap();
        let arrived = ends[1].streams[0].arrived.as_ref().unwrap();
        assert_eq!((sent.sent, arrived.received, arrived.duplicates), (200, 200, 0));
    });
}

#[lab_test(Bpf)]
fn a_host_that_is_stopped_before_the_start_sends_nothing() {
    with_ports(|_| {
        for engine in ENGINES {
            let task = trial(engine, 200, vec![stream(0, 0, 128, Some(2_000), UDP)]);
            let ends = sessions([0, 1].map(|port| assignment(&task, vec![port], 7)));
            let result = testing::scope(|scope| {
                let left = scope.spawn(|| ends[0].run(&Frames));
                // The other end never becomes ready.
                ends[1].listening(Endpoints::new()).unwrap();
                assert!(ends[0].wait_for(Reached::Ready, LONG));
                ends[0].stop("its runner is gone");
                left.join().unwrap()
            });
            assert!(matches!(result.unwrap_err().error, FailedBy::Stop(_)), "{engine:?}");
            assert_eq!(ends[0].meter(), None, "its work never began");
        }
    });
}

#[lab_test(Bpf)]
fn a_port_that_the_task_does_not_have_is_refused() {
    with_ports(|_| {
        let mut task = trial(ENGINES[0], 200, vec![stream(0, 0, 128, Some(2_000), UDP)]);
        task.streams[0].to = 2;
        assert!(failure(&task).to_string().contains("from port 0 to 2 of 2"));
        let result = run(&Frames, [assignment(&task, vec![0, 2], 7)]).remove(0);
        assert!(result.unwrap_err().to_string().contains("port 2, but there are 2"));
    });
}
