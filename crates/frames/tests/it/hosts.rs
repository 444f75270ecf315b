//! One trial by two hosts at the two ends of a virtual cable.

use crate::ports::{AMPLE, ENGINES, LONG, UDP, assignment, failure, part, stream, tag, trial, with_ports};
use linerate_engine::testing::{self, Reached, run, sessions};
use linerate_engine::{Conductor as _, Counted, FailedBy};
use linerate_frames::Frames;
use linerate_model::{Endpoints, FrameEngine, FramePartCounts, FrameStream, FrameStreamCounts, FramesTask};
use linerate_testsuite::lab_test;

/// What each end counted, the left one first.
fn both(task: &FramesTask) -> [FramePartCounts; 2] {
    let tag = tag();
    let ends = run(&Frames, [0, 1].map(|port| assignment(task, vec![port], tag)));
    let ends: [Counted; 2] = ends.into_iter().collect::<Result<Vec<_>, _>>().unwrap().try_into().unwrap();
    ends.map(part)
}

/// So many frames that a sender that waits for its core still sends some.
fn few(from: u16) -> FrameStream {
    FrameStream { count: Some(400), ..stream(from, 0, 128, Some(2_000), UDP) }
}

#[lab_test(Bpf)]
fn each_end_knows_its_own_part_and_together_they_know_all() {
    with_ports(|_| {
        for engine in ENGINES {
            // One way, and both at once: two XDP senders of one machine would take each other's core.
            let ways = [&[0][..], &[0, 1]];
            for ways in ways.into_iter().filter(|ways| ways.len() == 1 || engine == FrameEngine::PacketSocket) {
                let streams: Vec<_> = ways.iter().map(|from| few(*from)).collect();
                let [left, right] = both(&trial(engine, AMPLE, streams));
                assert_eq!((left.engine, right.engine), (engine, engine));
                for (index, from) in ways.iter().enumerate() {
                    let [near, far] = if *from == 0 { [&left, &right] } else { [&right, &left] };
                    let [near, far] = [near, far].map(|end| end.streams[index].clone());
                    assert_eq!((&near.arrived, &far.sent), (&None, &None), "no end speaks for the other");
                    let (sent, arrived) = (near.sent.unwrap(), far.arrived.unwrap());
                    assert_eq!(arrived.latency.count(), 0, "two hosts have two clocks");
                    assert_eq!((near.flooded, far.flooded), (0, 0));
                    let whole = FrameStreamCounts::joined(sent, arrived, 0);
                    assert_eq!(whole.intended, 400);
                    assert!(whole.sent > 0, "{whole:?}");
                    assert_eq!((whole.received, whole.duplicates, whole.reordered), (whole.sent, 0, 0), "{whole:?}");
                    assert_eq!((whole.last_gap, whole.received_bytes), (None, whole.sent * 128), "{whole:?}");
                }
            }
        }
    });
}

/// The stream is meant for a third host, and none of its frames gets there.
#[lab_test(Bpf)]
fn what_arrives_where_it_was_not_meant_to_flooded() {
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

/// XDP sends, finds that nothing was taken, and gives way; the receiver goes on counting until the packet sockets have sent too.
#[lab_test(Bpf)]
fn a_receiver_counts_until_packet_sockets_have_taken_over_from_xdp() {
    with_ports(|_| {
        let mut task = trial(FrameEngine::Auto, AMPLE, vec![stream(0, 0, 128, Some(1_000), UDP)]);
        task.streams[0].count = Some(200);
        let tag = tag();
        // The receiver has packet sockets, so that the virtual link takes no frames from XDP.
        let by_sockets = FramesTask { engine: FrameEngine::PacketSocket, ..task.clone() };
        let ends = run(&Frames, [assignment(&task, vec![0], tag), assignment(&by_sockets, vec![1], tag)]);
        let ends: Vec<_> = ends.into_iter().map(|end| part(end.unwrap())).collect();
        assert_eq!([ends[0].engine, ends[1].engine], [FrameEngine::PacketSocket; 2]);
        let (sent, arrived) = (ends[0].streams[0].sent.as_ref().unwrap(), ends[1].streams[0].arrived.as_ref().unwrap());
        assert_eq!((sent.sent, arrived.received, arrived.duplicates), (200, 200, 0));
    });
}

#[lab_test(Bpf)]
fn a_host_that_is_stopped_before_the_start_sends_nothing() {
    with_ports(|_| {
        for engine in ENGINES {
            let task = trial(engine, 200, vec![stream(0, 0, 128, Some(2_000), UDP)]);
            let ends = sessions([0, 1].map(|port| assignment(&task, vec![port], 7)));
            let ended = testing::scope(|scope| {
                let left = scope.spawn(|| ends[0].run(&Frames));
                // The other end never comes to be ready.
                ends[1].listening(Endpoints::new()).unwrap();
                assert!(ends[0].wait_for(Reached::Ready, LONG));
                ends[0].stop("its runner is gone");
                left.join().unwrap()
            });
            assert!(matches!(ended.unwrap_err().error, FailedBy::Stop(_)), "{engine:?}");
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
        let ended = run(&Frames, [assignment(&task, vec![0, 2], 7)]).remove(0);
        assert!(ended.unwrap_err().to_string().contains("port 2, but there are 2"));
    });
}
