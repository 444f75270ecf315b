use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// A full frame without FCS; 1,538 bytes on the wire.
const FULL: u64 = 1_514;

fn direction(limits: &str) -> Direction<u64> {
    let limits: PathLimits = limits.parse().expect(limits);
    limits.check().expect("they go together");
    Direction::new(limits, 2_544)
}

fn full(at: u64) -> Arrival {
    Arrival { at, bytes: FULL, packet: Some(FULL - 14), ..Arrival::default() }
}

/// Sends `count` full frames `gap` nanoseconds apart, numbered; what leaves, and what does not.
fn run(path: &mut Direction<u64>, count: u64, gap: u64) -> (Vec<Departure<u64>>, Vec<(Dropped, u64)>) {
    let mut left = Vec::new();
    let mut dropped = Vec::new();
    for number in 0..count {
        let arrival = Arrival { allows_marking: true, ..full(number * gap) };
        left.extend(std::iter::from_fn(|| path.depart(arrival.at)));
        dropped.extend(path.arrive(arrival, number).err());
    }
    left.extend(std::iter::from_fn(|| path.depart(u64::MAX)));
    assert_eq!((path.held, path.next_due()), (0, None), "nothing stays");
    (left, dropped)
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}

#[test]
fn cut_path_drops_everything_for_its_time() {
    let mut path = direction("cut=2ms:3ms");
    let begin = 7_000_000;
    let passes =
        [0, 1_999_999, 2_000_000, 4_999_999, 5_000_000].map(|after| path.arrive(full(begin + after), 0).is_ok());
    assert_eq!(passes, [true, true, false, false, true]);
}

#[test]
fn without_limits_a_frame_takes_its_time_on_the_fastest_line() {
    let mut path = direction("");
    let (left, dropped) = run(&mut path, 10, MS);
    assert!(dropped.is_empty());
    assert!(left.iter().enumerate().all(|(number, departure)| departure.due == number as u64 * MS + 12_304));
}

#[test]
fn every_frame_is_delayed_alike() {
    let mut path = direction("delay=20ms");
    let (left, _) = run(&mut path, 100, MS);
    assert!(left.iter().all(|departure| departure.due == departure.frame * MS + 20 * MS + 12_304));
}

#[test]
fn the_rate_is_exact_to_a_thousandth() {
    for (limits, rate) in [("rate=50Mbit/s", 50e6), ("rate=1Gbit/s", 1e9), ("rate=64kbit/s", 64e3)] {
        let mut path = direction(&format!("{limits},queue=256MiB,delay=20ms"));
        let (left, _) = run(&mut path, 20_000, 1_000);
        let span = left[19_999].due - left[0].due;
        let reached = 19_999.0 * 1_538.0 * 8.0 * 1e9 / span as f64;
        assert!((reached / rate - 1.0).abs() < 1e-6, "{limits}: {reached}");
    }
}

#[test]
fn max_frames_is_exact_and_counts_frames_not_bytes() {
    let mut path = direction("max-frames=20000,queue=1MiB");
    for number in 0..1_000 {
        let small = Arrival { bytes: 60, ..full(0) };
        path.arrive(small, number).expect("room");
    }
    let left: Vec<_> = std::iter::from_fn(|| path.depart(u64::MAX)).collect();
    assert_eq!((left[0].due, left[999].due), (50_000, 50 * MS));
}

#[test]
fn a_frame_takes_the_longer_of_its_two_times() {
    // 246.08 us by the rate, 1 ms by the frames.
    let mut path = direction("rate=50Mbit/s,max-frames=1000,queue=1MiB");
    let (left, _) = run(&mut path, 100, 1);
    assert_eq!((left[0].due, left[99].due), (MS, 100 * MS));
}

#[test]
fn the_queue_holds_its_bytes_and_no_more() {
    let mut path = direction("rate=50Mbit/s,queue=15140");
    let mut delivered = 0;
    for number in 0..100 {
        delivered += u64::from(path.arrive(full(0), number).is_ok());
    }
    assert_eq!(delivered, 10, "the one in service counts");
    // After two frames' time there is room for two.
    let again = |path: &mut Direction<u64>, at| (0..5).filter(|number| path.arrive(full(at), *number).is_ok()).count();
    assert_eq!(again(&mut path, 2 * 246_080), 2);
    assert_eq!(again(&mut path, SECOND), 5);
}

#[test]
fn a_frame_that_finds_the_line_idle_passes_any_queue() {
    let mut path = direction("rate=50Mbit/s,queue=0");
    let (left, dropped) = run(&mut path, 100, 123_040);
    assert_eq!((left.len(), dropped.len()), (50, 50), "every other one finds it busy");
    assert!(dropped.iter().all(|(why, _)| *why == Dropped::QueueFull));
}

#[test]
fn a_loaded_queue_delays_by_its_length() {
    let mut path = direction("rate=50Mbit/s,queue=151400");
    let (left, _) = run(&mut path, 10_000, 100_000);
    // 100 frames of 246.08 us.
    let waits = left.iter().map(|departure| departure.due - departure.frame * 100_000).max().expect("some");
    assert!((24_000_000..=24_700_000).contains(&waits), "{waits}");
}

#[test]
fn a_burst_leaves_at_once_after_a_pause() {
    let mut path = direction("rate=50Mbit/s,burst=15380");
    let (left, _) = run(&mut path, 12, 1);
    // Ten frames of 1,538 bytes, as fast as the fastest line.
    assert_eq!(left[9].due, left[0].due + 9 * 12_304);
    assert!((246_000..246_100).contains(&(left[11].due - left[10].due)));
}

#[test]
fn slots_gather_what_waits_and_keep_the_rate() {
    let mut path = direction("rate=50Mbit/s,slots=20ms,queue=1MiB");
    let (left, dropped) = run(&mut path, 10_000, 300_000);
    assert!(dropped.is_empty(), "the offered load is below the rate");
    // 67 frames at most come in a slot; they leave back to back.
    assert!(left.iter().all(|departure| departure.due % (20 * MS) <= 67 * 12_304));
    assert!(left.iter().all(|departure| departure.due <= departure.frame * 300_000 + 246_080 + 21 * MS));
    let mut path = direction("rate=50Mbit/s,slots=20ms,queue=1MiB");
    let (left, _) = run(&mut path, 100_000, 20_000);
    // In 90 slots, without the first and the last.
    let whole = left.iter().filter(|departure| (5..95).contains(&(departure.due / (20 * MS)))).count();
    let rate = whole as f64 * 1_538.0 * 8.0 / 1.8;
    assert!((rate / 50e6 - 1.0).abs() < 0.001, "{rate}");
    // Never more in a slot than the rate allows: 81.27 frames.
    for slot in left.chunk_by(|one, other| one.due / (20 * MS) == other.due / (20 * MS)) {
        assert!(slot.len() <= 82, "{}", slot.len());
    }
}

#[test]
fn rates_alternate_by_the_clock() {
    let mut path = direction("alternate=20Mbit/s:200Mbit/s:500ms,queue=64KiB");
    let (left, _) = run(&mut path, 200_000, 20_000);
    for period in 1..8 {
        let within = |departure: &&Departure<u64>| departure.due / (500 * MS) == period;
        let rate = left.iter().filter(within).count() as f64 * 1_538.0 * 8.0 * 2.0;
        let planted = if period % 2 == 0 { 20e6 } else { 200e6 };
        assert!((rate / planted - 1.0).abs() < 0.002, "period {period}: {rate}");
    }
}

#[test]
fn losses_are_as_planted_and_ahead_of_the_queue() {
    let mut path = direction("loss=1%");
    let (left, dropped) = run(&mut path, 1_000_000, 20_000);
    assert_eq!(left.len() + dropped.len(), 1_000_000);
    assert!((share(dropped.len(), 1_000_000) - 0.01).abs() < 0.0005, "{}", dropped.len());
    assert!(dropped.iter().all(|(why, _)| *why == Dropped::Lost));
    let mut path = direction("loss=1%,loss-burst=8");
    let (_, dropped) = run(&mut path, 1_000_000, 20_000);
    let runs = 1 + dropped.windows(2).filter(|pair| pair[1].1 != pair[0].1 + 1).count();
    let mean = share(dropped.len(), runs);
    assert!((mean - 8.0).abs() < 1.0, "{mean}");
    assert!((share(dropped.len(), 1_000_000) - 0.01).abs() < 0.0015, "{}", dropped.len());
}

#[test]
fn corruption_and_duplication_are_as_planted() {
    let mut path = direction("corrupt=0.1%,duplicate=1%");
    let (left, _) = run(&mut path, 1_000_000, 20_000);
    let corrupted = left.iter().filter(|departure| departure.corrupted.is_some()).count();
    let twice = left.iter().filter(|departure| departure.twice).count();
    assert!((share(corrupted, 1_000_000) - 0.001).abs() < 0.00015, "{corrupted}");
    assert!((share(twice, 1_000_000) - 0.01).abs() < 0.0005, "{twice}");
}

#[test]
fn a_frame_out_of_order_leaves_behind_the_next_three() {
    let mut path = direction("reorder=1%,delay=5ms");
    let (left, _) = run(&mut path, 100_000, 20_000);
    assert_eq!(left.len(), 100_000);
    assert!(left.is_sorted_by_key(|departure| departure.due));
    let overtaken: Vec<_> = left.iter().enumerate().filter(|(_, departure)| departure.overtaken).collect();
    assert!((share(overtaken.len(), 100_000) - 0.01).abs() < 0.002, "{}", overtaken.len());
    // All but the last, which may have nobody behind them.
    for (place, departure) in &overtaken[..overtaken.len() - 1] {
        let later = left[..*place].iter().filter(|other| other.frame > departure.frame).count();
        assert!((3..=5).contains(&later), "{later} overtook {}", departure.frame);
    }
}

#[test]
fn a_frame_that_nobody_overtakes_leaves_all_the_same() {
    let mut path = direction("reorder=100%");
    path.arrive(full(0), 1).expect("taken");
    assert_eq!(path.next_due(), Some(12_304 + HELD_BACK));
    assert_eq!(path.depart(12_303 + HELD_BACK), None);
    let left = path.depart(12_304 + HELD_BACK).expect("it leaves");
    assert!(!left.overtaken);
}

#[test]
fn packets_are_marked_where_more_waits() {
    let mut path = direction("rate=50Mbit/s,queue=151400,mark=30280");
    for number in 0..100 {
        let arrival = Arrival { allows_marking: number != 50, ..full(0) };
        path.arrive(arrival, number).expect("room");
    }
    let marked: Vec<_> = std::iter::from_fn(|| path.depart(u64::MAX)).filter(|one| one.marked).collect();
    // Ahead of the 22nd 21 wait, one more than the mark.
    assert_eq!(marked[0].frame, 21);
    assert_eq!(marked.len(), 100 - 21 - 1, "one allows no mark");
}

#[test]
fn too_large_packets_do_not_pass() {
    let mut path = direction("mtu=1400");
    assert_eq!(path.arrive(full(0), 1), Err((Dropped::TooLarge, 1)));
    let small = Arrival { packet: Some(1_400), bytes: 1_414, ..full(0) };
    assert_eq!(path.arrive(small, 2), Ok(()));
}

#[test]
fn jitter_stays_within_its_bounds_keeps_the_order_and_the_mean() {
    let mut path = direction("delay=20ms,jitter=2ms");
    let (left, _) = run(&mut path, 500_000, 20_000);
    assert!(left.is_sorted_by_key(|departure| departure.due));
    assert!(left.windows(2).all(|pair| pair[0].frame < pair[1].frame));
    let delays: Vec<u64> = left.iter().map(|departure| departure.due - departure.frame * 20_000 - 12_304).collect();
    let least = delays.iter().min().expect("some");
    let maximum = delays.iter().max().expect("some");
    assert!((18 * MS..18 * MS + MS / 5).contains(least) && (22 * MS - MS / 5..=22 * MS).contains(maximum));
    let mean = delays.iter().sum::<u64>() / delays.len() as u64;
    assert!(mean.abs_diff(20 * MS) < MS / 5, "{mean}");
}

#[test]
fn address_resolution_is_only_delayed() {
    let mut path = direction("delay=5ms,rate=64kbit/s,queue=0,loss=100%,corrupt=100%,duplicate=100%,reorder=100%");
    let question = Arrival { at: 7, bytes: 60, is_control: true, ..Arrival::default() };
    for number in 0..10 {
        path.arrive(question, number).expect("never dropped");
    }
    let left: Vec<_> = std::iter::from_fn(|| path.depart(u64::MAX)).collect();
    assert_eq!(left.len(), 10);
    assert!(left.iter().all(|one| one.due == 5 * MS + 7 && one.corrupted.is_none() && !one.twice));
}

#[test]
fn stamps_out_of_order_do_no_harm() {
    let mut path = direction("delay=1ms,rate=1Mbit/s");
    path.arrive(full(SECOND), 1).expect("taken");
    path.arrive(full(SECOND - 5), 2).expect("taken");
    let left: Vec<_> = std::iter::from_fn(|| path.depart(u64::MAX)).map(|one| one.frame).collect();
    assert_eq!(left, [1, 2]);
}

#[test]
fn equal_seeds_give_equal_fates() {
    let fates = |seed| {
        let mut path = direction("delay=5ms,jitter=1ms,loss=5%,corrupt=1%,reorder=2%");
        path = Direction::new(path.limits, seed);
        run(&mut path, 10_000, 20_000)
    };
    assert_eq!(fates(1), fates(1));
    assert_ne!(fates(1), fates(2));
}

#[test]
fn memory_is_bounded() {
    let mut path = direction("delay=1s,queue=256MiB");
    let frames = ROOM / FULL;
    let (_, dropped) = run(&mut path, frames + 10, 12_304 / 2);
    assert!(dropped.iter().any(|(why, _)| matches!(why, Dropped::NoRoom | Dropped::QueueFull)));
    assert!(path.held <= ROOM);
}

/// Sends full frames of several flows at once, `counts` of each, and returns the flows of those that leave and of those
/// that are dropped.
fn run_flows(path: &mut Direction<u64>, counts: &[(u64, usize)]) -> (Vec<Departure<u64>>, Vec<u64>) {
    let mut dropped = Vec::new();
    for (flow, count) in counts {
        for _ in 0..*count {
            let arrival = Arrival { flow: *flow, allows_marking: true, ..full(0) };
            if let Err((why, flow)) = path.arrive(arrival, *flow) {
                assert_eq!(why, Dropped::QueueFull);
                dropped.push(flow);
            }
        }
    }
    let left = std::iter::from_fn(|| path.depart(u64::MAX)).collect();
    assert_eq!((path.held, path.next_due()), (0, None), "nothing stays");
    (left, dropped)
}

#[test]
fn a_fair_queue_serves_flows_in_turn_at_the_same_rate() {
    let mut path = direction("rate=10Mbit/s,queue=1MiB,fair=true");
    let (left, dropped) = run_flows(&mut path, &[(1, 100), (2, 10)]);
    assert_eq!((left.len(), dropped.len()), (110, 0));
    // The first frame found the line idle. After it the flows alternate, as long as both have frames.
    let flows: Vec<u64> = left.iter().map(|departure| departure.frame).collect();
    assert!(flows[1..21].chunks(2).all(|pair| pair[0] != pair[1]), "{flows:?}");
    assert!(flows[21..].iter().all(|flow| *flow == 1), "{flows:?}");
    // 1,538 bytes on the wire at 10 Mbit/s.
    for (number, departure) in left.iter().enumerate() {
        assert_eq!(departure.due, (number as u64 + 1) * 1_230_400);
    }
}

#[test]
fn a_full_fair_queue_drops_from_the_flow_with_the_most_bytes() {
    let mut path = direction("rate=10Mbit/s,queue=20KiB,fair=true");
    let (left, dropped) = run_flows(&mut path, &[(1, 100), (2, 4)]);
    assert!(dropped.iter().all(|flow| *flow == 1), "{dropped:?}");
    assert_eq!(left.iter().filter(|departure| departure.frame == 2).count(), 4);
    assert_eq!(left.len(), 20 * 1_024 / FULL as usize);
}

#[test]
fn a_fair_queue_marks_by_the_bytes_of_the_flow() {
    let mut path = direction("rate=10Mbit/s,queue=1MiB,mark=15KiB,fair=true");
    let (left, _) = run_flows(&mut path, &[(1, 30), (2, 5)]);
    let marked = |flow| left.iter().filter(|departure| departure.frame == flow && departure.marked).count();
    assert_eq!((marked(1), marked(2)), (18, 0));
}

#[test]
fn a_fair_queue_of_one_flow_is_as_any_queue() {
    for limits in ["rate=10Mbit/s", "rate=10Mbit/s,burst=30KiB", "rate=10Mbit/s,slots=20ms", "max-frames=1000", ""] {
        let mut plain = direction(limits);
        let mut fair = direction(&format!("{limits},fair=true"));
        let dues = |path: &mut Direction<u64>| {
            run(path, 200, MS / 2).0.iter().map(|departure| departure.due).collect::<Vec<_>>()
        };
        assert_eq!(dues(&mut fair), dues(&mut plain), "{limits}");
    }
}
