//! The ports of the reference device: their lines, queues and PAUSE frames.
//!
//! [`Model`] has the rules of bpf/port_queues.h. What the device lets pass of a burst is compared with it.

use crate::support::{host, try_up, wait_for};
use linerate_lab::{Bench, DeviceKind, Lab};
use linerate_sys::netlink::Route;
use linerate_sys::packet::{ALL_PROTOCOLS, Incoming, PacketSocket};
use linerate_testsuite::{alone, lab_test};
use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SECOND: u64 = 1_000_000_000;
/// An EtherType for experiments (IEEE 802): no kernel sends or answers it.
const TEST: u16 = 0x88b5;
const MAC_CONTROL: u16 = 0x8808;
/// Octet in the addresses of stations.
const GROUP: u8 = 0x4c;
const BROADCAST: [u8; 6] = [0xff; 6];
/// Time to wait for frames that must come, and for those that may follow them, milliseconds.
const LONG: u16 = 30_000;
const SILENCE: u16 = 200;
/// Time between frames at which no queue of a virtual link overflows.
const GENTLE: Duration = Duration::from_millis(1);
/// Bytes of the shortest frame and of one that takes 192 ms at 64 kbit/s, without FCS.
const SHORT: usize = 60;
const FULL: usize = 1_514;
/// The slowest line: bursts end while their first frame is in service.
const SLOW: u64 = 64_000;

/// Rules of the ports. Times are in nanoseconds.
struct Model {
    rate: u64,
    /// Bytes on the wire around a frame at an output.
    around: u64,
    queue: u64,
    pauses: bool,
    uplink: Option<u64>,
    output_free_at: Vec<u64>,
    uplink_free_at: [u64; 2],
    /// When the frames of each input leave its FIFO; `None` without FIFOs.
    fifos: Option<Vec<Vec<u64>>>,
    paused_until: Vec<u64>,
}

/// Decision of the model on a frame.
#[derive(Debug, PartialEq, Eq)]
struct Decision {
    passes: bool,
    /// Pause to ask of the sender.
    pause: Option<u64>,
}

impl Model {
    fn new(ports: usize, rate: u64, queue: u64) -> Self {
        Self {
            rate,
            around: 24,
            queue,
            pauses: false,
            uplink: None,
            output_free_at: vec![0; ports],
            uplink_free_at: [0; 2],
            fifos: None,
            paused_until: vec![0; ports],
        }
    }

    fn with_fifos(mut self) -> Self {
        self.fifos = Some(vec![Vec::new(); self.output_free_at.len()]);
        self
    }

    fn take(&mut self, from: usize, to: usize, bytes: usize, now: u64) -> Decision {
        let length = bytes.max(SHORT) as u64;
        let half = self.output_free_at.len() / 2;
        let mut lines = vec![(&mut self.output_free_at[to], time(length + self.around, self.rate))];
        if let Some(rate) = self.uplink.filter(|_| (from < half) != (to < half)) {
            lines.push((&mut self.uplink_free_at[usize::from(from >= half)], time(length + 24, rate)));
        }
        let mut room_after = 0;
        let mut pause = 0;
        for (free_at, cost) in &lines {
            let waiting = free_at.saturating_sub(now);
            let most = self.queue * cost;
            room_after = room_after.max(waiting.saturating_sub(most));
            if waiting >= most / 2 {
                pause = pause.max(waiting.saturating_sub(most / 4));
            }
        }
        let passes = match &mut self.fifos {
            None => room_after == 0,
            Some(fifos) => {
                let fifo = &mut fifos[from];
                fifo.retain(|leaves_at| *leaves_at > now);
                let has_room = (fifo.len() as u64) < self.queue;
                if has_room {
                    let leaves_at = fifo.last().copied().unwrap_or_default().max(now + room_after);
                    fifo.push(leaves_at);
                }
                fifo.retain(|leaves_at| *leaves_at > now);
                pause = 0;
                if fifo.len() as u64 >= self.queue / 2 {
                    pause = fifo[fifo.len() - (self.queue / 4) as usize] - now;
                }
                has_room
            }
        };
        if passes {
            for (free_at, cost) in lines {
                *free_at = (*free_at).max(now) + cost;
            }
        }
        let is_asked = self.pauses && pause > 0 && self.paused_until[from] <= now;
        if is_asked {
            self.paused_until[from] = now + pause;
        }
        Decision { passes, pause: is_asked.then_some(pause) }
    }
}

/// Time of `bytes` on a wire of `rate`.
fn time(bytes: u64, rate: u64) -> u64 {
    bytes * 8 * SECOND / rate
}

/// Offers each (time, from, to) to the model; returns how many of those to each port pass.
fn offer(model: &mut Model, frames: &[(u64, usize, usize)], bytes: usize) -> Vec<usize> {
    let mut passed = vec![0; model.output_free_at.len()];
    for (now, from, to) in frames {
        passed[*to] += usize::from(model.take(*from, *to, bytes, *now).passes);
    }
    passed
}

/// Congestion control of RFC 2889: port 0 sends to ports 2 and 3 in turn, port 1 to port 3, both at the rate of the line.
fn congestion(count: u64, rate: u64) -> Vec<(u64, usize, usize)> {
    let step = time(SHORT as u64 + 24, rate);
    (0..count).flat_map(|n| [(n * step, 0, 2 + (n % 2) as usize), (n * step, 1, 3)]).collect()
}

#[test]
fn a_busy_output_affects_no_other_unless_inputs_have_fifos() {
    let count = 20_000;
    let frames = congestion(count, 10_000_000);
    let of_outputs = offer(&mut Model::new(4, 10_000_000, 64), &frames, SHORT);
    assert_eq!(of_outputs[2], count as usize / 2, "nothing is lost to the idle port");
    assert!(of_outputs[3].abs_diff(count as usize) <= 65, "the busy port has its rate: {}", of_outputs[3]);
    let of_inputs = offer(&mut Model::new(4, 10_000_000, 64).with_fifos(), &frames, SHORT);
    // Port 0 has a third of the busy output, and loses a third of its frames to either.
    assert!(of_inputs[2].abs_diff(count as usize / 3) < 300, "head-of-line blocking: {}", of_inputs[2]);
    assert!(of_inputs[3].abs_diff(count as usize) <= 200, "the busy port has its rate: {}", of_inputs[3]);
}

#[test]
fn an_output_with_forward_pressure_is_as_fast_as_a_short_gap() {
    let rate = 10_000_000;
    let step = time(SHORT as u64 + 23, rate);
    let frames: Vec<_> = (0..84_000).map(|n| (n * step, 0, 1)).collect();
    let mut pressing = Model::new(2, rate, 4);
    pressing.around = 23;
    assert_eq!(offer(&mut pressing, &frames, SHORT)[1], 84_000);
    assert!(offer(&mut Model::new(2, rate, 4), &frames, SHORT)[1].abs_diff(83_000) < 10);
}

/// Senders that obey a pause 100 us after it was asked for.
#[test]
fn senders_that_pause_lose_nothing_and_keep_the_output_busy() {
    let rate = 10_000_000;
    let step = time(SHORT as u64 + 24, rate);
    for fifos in [false, true] {
        let mut model = Model::new(8, rate, 256);
        model.pauses = true;
        if fifos {
            model = model.with_fifos();
        }
        let mut silent = [(0, 0); 7];
        let mut passed = 0;
        let steps = 30_000;
        for now in (0..steps).map(|n| n * step) {
            for (from, (begin, end)) in silent.iter_mut().enumerate() {
                if (*begin..*end).contains(&now) {
                    continue;
                }
                let Decision { passes, pause } = model.take(from, 7, SHORT, now);
                assert!(passes, "port {from} at {now}, fifos {fifos}");
                passed += 1;
                if let Some(pause) = pause {
                    (*begin, *end) = (now + 100_000, now + 100_000 + pause);
                }
            }
        }
        let waiting = if fifos { 8 * 256 } else { 256 };
        assert!((steps - 256..=steps + waiting).contains(&passed), "{passed} of {steps}, fifos {fifos}");
    }
}

/// A tester's ports on a device.
struct Ports {
    lab: Lab,
    sockets: Vec<PacketSocket>,
    /// Time of the last arrival at any port, in nanoseconds since 1970.
    last_arrival: Cell<u64>,
}

impl Ports {
    /// Builds a device with `count` ports, which knows a station at each.
    fn new(device: DeviceKind, count: u8) -> Self {
        let bench = Bench::parse(&format!("name = 'x'\n[tester]\nports = {count}\n[link]\nmtu = 2000"), "test");
        let ports = Self::of(&bench.expect("a bench").with_device(device));
        for from in 0..ports.sockets.len() {
            ports.send(from, &frame([2, 9, 9, 9, 9, 9], station(from), SHORT));
            for other in (0..ports.sockets.len()).filter(|other| *other != from) {
                ports.wait_for(other, |frame| frame[6..12] == station(from));
            }
            // Until the lines are idle again.
            thread::sleep(Duration::from_millis(25));
        }
        ports
    }

    fn of(bench: &Bench) -> Self {
        let lab = try_up(bench).expect("a lab");
        let count = bench.tester_ports;
        let open = || {
            let mut route = Route::open().expect("netlink");
            let mut sockets = Vec::new();
            for port in 0..count {
                let link = route.index_of(&format!("p{port}")).expect("a port");
                let socket = PacketSocket::open(link, Some(ALL_PROTOCOLS)).expect("a packet socket");
                socket.hear_all().expect("promiscuous");
                socket.stamp_and_hold(64 << 20).expect("a receive buffer");
                sockets.push(socket);
            }
            sockets
        };
        let sockets = lab.inside(&host("tester"), open).expect("inside");
        Self { lab, sockets, last_arrival: Cell::default() }
    }

    fn reference(limits: &str, count: u8) -> Self {
        Self::new(format!("reference,{limits}").parse().expect("a device"), count)
    }

    fn send(&self, from: usize, frame: &[u8]) {
        self.sockets[from].send(frame).expect("send");
    }

    /// Sends `count` frames from one port to another without a pause.
    fn burst(&self, from: usize, to: usize, bytes: usize, count: usize) {
        let frame = frame(station(to), station(from), bytes);
        for _ in 0..count {
            self.send(from, &frame);
        }
    }

    /// Takes the frames that have come to a port: those of stations, and PAUSE frames.
    fn take(&self, port: usize) -> Vec<Vec<u8>> {
        let mut incoming = Incoming::with_room(64, 2_048);
        let mut frames = Vec::new();
        while incoming.take(&self.sockets[port]).expect("recvmmsg") > 0 {
            for (frame, stamp) in incoming.frames() {
                if is_of_station(frame) || pause_of(frame).is_some() {
                    self.last_arrival.set(self.last_arrival.get().max(stamp));
                    frames.push(frame.to_vec());
                }
            }
        }
        assert_eq!(self.sockets[port].overflowed().expect("statistics"), 0, "the test itself lost frames");
        frames
    }

    /// Takes the frames that come to a port until `is_last`.
    fn wait_for(&self, port: usize, is_last: impl Fn(&[u8]) -> bool) {
        let deadline = Instant::now() + Duration::from_millis(LONG.into());
        while !self.take(port).iter().any(|frame| is_last(frame)) {
            assert!(Instant::now() < deadline, "port {port} does not hear the frame");
            self.sockets[port].wait(SILENCE);
        }
    }

    /// Returns the frames that come to a port until none has come for a while.
    fn arrived(&self, port: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let more = self.take(port);
            let is_silent = more.is_empty() && !self.sockets[port].wait(SILENCE);
            frames.extend(more);
            if is_silent {
                return frames;
            }
        }
    }

    /// Returns the time from `start` to the last arrival. A busy machine forwards frames later than they were sent.
    fn span(&self, start: SystemTime) -> Duration {
        let start = start.duration_since(UNIX_EPOCH).expect("after 1970");
        Duration::from_nanos(self.last_arrival.get()).saturating_sub(start)
    }

    /// Returns the number of frames of stations that come to each port.
    fn counts(&self) -> Vec<usize> {
        let ports = 0..self.sockets.len();
        ports.map(|port| self.arrived(port).iter().filter(|frame| pause_of(frame).is_none()).count()).collect()
    }
}

fn station(port: usize) -> [u8; 6] {
    [2, GROUP, 0, 0, 0, port as u8]
}

/// Returns whether a station sent the frame. The kernel's own frames may have a source that shares an octet with it.
fn is_of_station(frame: &[u8]) -> bool {
    frame[6..11] == station(0)[..5]
}

/// A frame of `bytes` without FCS.
fn frame(to: [u8; 6], from: [u8; 6], bytes: usize) -> Vec<u8> {
    let mut frame = [&to[..], &from, &TEST.to_be_bytes()].concat();
    frame.resize(bytes, 0);
    frame
}

/// The quanta of a PAUSE frame; `None` of any other frame.
fn pause_of(frame: &[u8]) -> Option<u16> {
    let head = [&[1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0xfe][..], &MAC_CONTROL.to_be_bytes(), &[0, 1]].concat();
    frame.strip_prefix(&head[..])?.first_chunk().map(|quanta| u16::from_be_bytes(*quanta))
}

/// Checks a count of a burst that was forwarded within `span`. A frame more may pass for each that a line of `rate` has sent meanwhile.
fn is_near(count: usize, expected: usize, span: Duration, rate: u64, what: &str) {
    let more = span.as_nanos() as u64 / time(FULL as u64 + 24, rate);
    eprintln!("{what}: {count}, expected {expected}, in {span:?}");
    assert!((expected..=expected + more as usize).contains(&count), "{what}: {count} of {expected} in {span:?}");
}

#[lab_test]
fn frames_wait_at_each_output_or_at_the_inputs() {
    let _alone = alone();
    for (limits, fifos) in [("port-rate=64kbit/s,queue=4", false), ("port-rate=64kbit/s,queue=4,queues=input", true)] {
        let ports = Ports::reference(limits, 4);
        let frames: Vec<_> =
            (0..12).map(|_| (0, 1, 3)).chain((0..12).map(|n| (0, 0, if n % 2 == 0 { 3 } else { 2 }))).collect();
        let start = SystemTime::now();
        for (_, from, to) in &frames {
            ports.send(*from, &frame(station(*to), station(*from), FULL));
        }
        let model = Model::new(4, SLOW, 4);
        let expected = offer(&mut if fifos { model.with_fifos() } else { model }, &frames, FULL);
        assert_eq!(expected, if fifos { [0, 0, 2, 11] } else { [0, 0, 5, 5] });
        for port in [0, 1] {
            assert_eq!(ports.arrived(port), Vec::<Vec<u8>>::new(), "port {port}");
        }
        let counts = ports.counts();
        let span = ports.span(start);
        is_near(counts[2], expected[2], span, SLOW, "to the idle output");
        is_near(counts[3], expected[3], span, SLOW, "to the busy output");
        wait_for(ports.lab.down());
    }
}

/// A sender that is always ahead of the line finds how fast it is.
#[lab_test]
fn forward_pressure_shortens_the_gap_of_outputs() {
    let _alone = alone();
    // More than the sender's longest pause.
    const QUEUE: u64 = 2_000;
    for (limits, around) in [("port-rate=64kbit/s", 24), ("port-rate=64kbit/s,forward-pressure=true", 23)] {
        let ports = Ports::reference(&format!("{limits},queue={QUEUE}"), 2);
        let frame = frame(station(1), station(0), SHORT);
        let begun = SystemTime::now();
        ports.send(0, &frame);
        let first_sent = Instant::now();
        for _ in 0..QUEUE + 3_000 {
            ports.send(0, &frame);
            thread::sleep(GENTLE);
        }
        let last_begun = Instant::now();
        ports.burst(0, 1, SHORT, 100);
        let shortest = last_begun - first_sent;
        let passed = ports.counts()[1] as u64;
        let longest = ports.span(begun);
        let cost = time(SHORT as u64 + around, SLOW);
        let sent_by = |span: Duration| span.as_nanos() as u64 / cost + QUEUE + 1;
        eprintln!("{limits}: {passed} in {longest:?}, expected {} to {}", sent_by(shortest), sent_by(longest));
        assert!((sent_by(shortest) - 1..=sent_by(longest) + 1).contains(&passed), "{limits}: {passed} in {longest:?}");
        wait_for(ports.lab.down());
    }
}

#[lab_test]
fn an_uplink_is_paid_by_the_frames_that_cross_it() {
    let _alone = alone();
    let ports = Ports::reference("uplink=64kbit/s,queue=4", 4);
    let start = SystemTime::now();
    for (from, to) in [(0, 1), (2, 3), (0, 2), (1, 3), (3, 1)] {
        ports.burst(from, to, FULL, 10);
    }
    let counts = ports.counts();
    let span = ports.span(start);
    assert_eq!(counts[0], 0);
    is_near(counts[1], 10 + 5, span, SLOW, "within a half, and from the other one");
    is_near(counts[2] + counts[3], 10 + 5, span, SLOW, "within the other half, and all that cross to it");
    assert!(counts[3] >= 10, "{counts:?}");
    wait_for(ports.lab.down());
}

#[lab_test]
fn it_replicates_so_many_broadcasts() {
    let _alone = alone();
    let ports = Ports::reference("broadcast=1", 3);
    let start = SystemTime::now();
    for _ in 0..30 {
        ports.send(0, &frame(BROADCAST, station(0), SHORT));
    }
    ports.burst(0, 1, SHORT, 30);
    let counts = ports.counts();
    let span = ports.span(start);
    // Eight may bunch, and one is in service.
    let most = 9 + span.as_secs() as usize;
    assert!((9..=most).contains(&counts[2]), "{counts:?} in {span:?}");
    assert_eq!(counts[1], counts[2] + 30, "other frames pass");
    wait_for(ports.lab.down());
}

#[lab_test]
fn frames_of_no_valid_length_are_dropped_if_asked_for() {
    let _alone = alone();
    let tagged = |bytes: usize| {
        let mut frame = frame(station(1), station(0), bytes);
        frame[12..14].copy_from_slice(&0x8100u16.to_be_bytes());
        frame[16..18].copy_from_slice(&TEST.to_be_bytes());
        frame
    };
    let plain = |bytes| frame(station(1), station(0), bytes);
    let valid = [plain(60), plain(1_514), tagged(60), tagged(1_518)];
    let short = [plain(59), plain(20), tagged(59)];
    let long = [plain(1_515), tagged(1_519), plain(1_900)];
    for (limits, passing) in
        [("queue=256", 10), ("undersize=drop", 7), ("oversize=drop", 7), ("undersize=drop,oversize=drop", 4)]
    {
        let ports = Ports::reference(limits, 2);
        for frame in valid.iter().chain(&short).chain(&long) {
            ports.send(0, frame);
        }
        assert_eq!(ports.counts(), [0, passing], "{limits}");
        wait_for(ports.lab.down());
    }
}

#[lab_test]
fn it_asks_a_sender_to_pause_at_half_the_queue() {
    let _alone = alone();
    const RATE: u64 = 1_000_000;
    for (limits, fifos) in
        [("port-rate=1Mbit/s,queue=64,pause=true", false), ("port-rate=1Mbit/s,queue=64,pause=true,queues=input", true)]
    {
        let ports = Ports::reference(limits, 4);
        let watch = ports.lab.reference().expect("a reference device with limits");
        let cost = time(FULL as u64 + 24, RATE);
        let model = Model { pauses: true, ..Model::new(4, RATE, 64) };
        let mut model = if fifos { model.with_fifos() } else { model };
        // At the inputs, the output's queue is full before anything waits there.
        let count = if fifos { 110 } else { 45 };
        let asked: Vec<_> = (0..count).filter_map(|_| model.take(0, 2, FULL, 0).pause).collect();
        let [pause] = asked[..] else { panic!("{asked:?}") };
        assert!((16 * cost..=17 * cost).contains(&pause), "{pause}");

        let start = Instant::now();
        ports.burst(0, 2, FULL, count);
        let span = start.elapsed();
        let pauses: Vec<_> = ports.arrived(0).iter().filter_map(|frame| pause_of(frame)).collect();
        eprintln!("{limits}: pauses {pauses:?} in {span:?}");
        let quanta = |pause: u64| pause.div_ceil(time(64, RATE));
        let least = quanta(pause.saturating_sub(span.as_nanos() as u64));
        if span < Duration::from_nanos(pause) {
            let [asked] = pauses[..] else { panic!("{pauses:?}") };
            // Half of the queue may have been reached a frame later, as some of it was sent meanwhile.
            let most = quanta(pause + cost);
            assert!((least..=most).contains(&asked.into()), "{asked} quanta, expected {least} to {most}");
        }
        assert_eq!(ports.counts()[2], count, "frames after the PAUSE still have room");
        assert_eq!(watch.missed().expect("counters"), None);

        // A sender that does not obey loses frames, and the device says so.
        ports.burst(0, 2, FULL, 200);
        let passed = ports.counts()[2];
        let said = watch.missed().expect("counters").expect("a warning");
        assert!(said.contains(&format!("{} frames were dropped although it asks", 200 - passed)), "{passed}: {said}");
        wait_for(ports.lab.down());
    }
}

/// Two senders that obey offer an output twice its rate. All frames arrive, or the device says which did not.
#[lab_test]
fn senders_that_obey_its_pauses_lose_nothing() {
    let _alone = alone();
    const RATE: u64 = 2_000_000;
    for limits in ["port-rate=2Mbit/s,queue=256,pause=true", "port-rate=2Mbit/s,queue=256,pause=true,queues=input"] {
        let ports = Ports::reference(limits, 3);
        let watch = ports.lab.reference().expect("a reference device with limits");
        let step = Duration::from_nanos(time(SHORT as u64 + 24, RATE));
        let start = Instant::now();
        let mut due = [start; 2];
        let mut sent = 0;
        let mut asked = 0;
        while start.elapsed() < Duration::from_secs(3) {
            for (from, due) in due.iter_mut().enumerate() {
                if let Some(quanta) = ports.take(from).iter().rev().find_map(|frame| pause_of(frame)) {
                    asked += 1;
                    *due = (*due).max(Instant::now() + Duration::from_nanos(u64::from(quanta) * time(64, RATE)));
                }
                if *due <= Instant::now() {
                    ports.burst(from, 2, SHORT, 1);
                    sent += 1;
                    // What is late is not made up for: a burst is a load of its own.
                    *due = (*due + step).max(Instant::now());
                }
            }
            thread::sleep(step / 10);
        }
        let span = start.elapsed();
        let passed = ports.counts()[2];
        let said = watch.missed().expect("counters");
        eprintln!("{limits}: {passed} of {sent} in {span:?}, {asked} pauses, {said:?}");
        match said {
            None => assert_eq!(passed, sent),
            Some(said) => assert!(said.contains(&format!("{} frames were dropped", sent - passed)), "{said}"),
        }
        let line = span.as_nanos() as u64 / time(SHORT as u64 + 24, RATE);
        let most = line + 2 * 256 + 256 + 1;
        assert!(passed as u64 <= most, "{passed} exceed the line, {line}");
        wait_for(ports.lab.down());
    }
}

#[lab_test]
fn a_device_has_eight_ports() {
    let _alone = alone();
    for device in ["bridge", "reference", "reference,port-rate=10Mbit/s,queues=input,uplink=10Mbit/s"] {
        let ports = Ports::new(device.parse().expect("a device"), 8);
        for from in 0..8 {
            ports.burst(from, (from + 3) % 8, SHORT, 5);
        }
        assert_eq!(ports.counts(), [5; 8], "{device}");
        wait_for(ports.lab.down());
    }
}

#[test]
fn links_have_the_rate_of_the_devices_ports() {
    let device = "reference,port-rate=10Mbit/s".parse().expect("a device");
    let bench = Bench::find("tester").expect("built in").with_device(device);
    assert_eq!(bench.link.rate.map(|rate| rate.get()), Some(10_000_000));
}
