//! The frames of a path: taken from the ports, given to the model, and sent when it says.

use super::collision_domain::CollisionDomain;
use super::counts::{DirectionCounts, LATE, PathCounts};
use super::frame::Contents;
use super::model::{Arrival, Departure, Direction, Dropped, shortest_delay};
use super::stations::Stations;
use super::{PathPlan, Published};
use linerate_model::HostName;
use linerate_sys::netlink::Route;
use linerate_sys::packet_ring::{FrameSender, PacketRing, RingFrame};
use linerate_sys::thread::{SessionFirst, go_before_all, sharpen_timers};
use linerate_sys::{Error, affinity, clock};
use linerate_units::Nanos;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;

/// Room for frames that wait to be taken, bytes.
const RING: usize = 32 << 20;
/// Frames taken before those that are due are looked at.
const TAKEN: usize = 64;
/// Frames sent in one call: all of them count as sent when it ends.
const SENT: usize = 16;
/// Time between frames within which they may leave together, nanoseconds.
const GATHERED: u64 = 40_000;
/// The shortest sleep asked for. Each costs some microseconds of the core, ends some 20 us late, and seldom more than
/// 60 us.
const SHORTEST_REST: u64 = 10_000;
/// Largest advance of sleeps, which end late, nanoseconds.
const OVERSLEPT_MAXIMUM: u64 = 100_000;
/// The longest wait without a look at what has come.
const NAP: u64 = 1_000_000;
/// Wait for frames when no frame is on its way, nanoseconds.
const IDLE: u64 = 1_000_000_000;
/// Sending a frame takes a few microseconds. More than this was a pause of the core.
const WAY_OUT_MAXIMUM: u64 = 20_000;
/// Number of sends over which the sending time is averaged.
const WAYS_OUT: u64 = 16;
/// Buffers kept for the next frames.
const SPARE: usize = 4_096;

/// A path between the ports of a namespace.
pub(super) struct Engine {
    ring: PacketRing,
    sender: FrameSender,
    ports: Vec<Port>,
    /// By the number of its interface.
    port_of: HashMap<u32, usize>,
    forwarding: Forwarding,
    spare: Vec<Vec<u8>>,
    /// When the model's time began.
    begun: u64,
    /// Shortest time between the arrival and the departure of a frame.
    shortest: u64,
    /// Time that sending takes, by which frames are sent earlier: a virtual link delivers before the system call
    /// returns.
    way_out: u64,
    /// Delay with which sleeps end.
    overslept: u64,
    missed: u64,
    latest: u64,
    /// Delay after which a frame that leaves is late, nanoseconds.
    late_after: u64,
    published: Arc<Published>,
}

/// What decides when frames leave, and where.
enum Forwarding {
    /// The directions to the hosts, by port, and where addresses are.
    Path { directions: Vec<Direction<Vec<u8>>>, stations: Stations },
    /// A hub.
    Hub(CollisionDomain<Vec<u8>>),
}

impl Forwarding {
    /// Returns the next time at which something is to be done, or `None` if no frame is on its way.
    fn next_due(&self) -> Option<u64> {
        match self {
            Self::Path { directions, .. } => directions.iter().filter_map(Direction::next_due).min(),
            Self::Hub(medium) => medium.next_due(),
        }
    }
}

/// A port and its host.
struct Port {
    host: HostName,
    link: u32,
    network: usize,
    mtu: u32,
    silent: bool,
    fair: bool,
    counts: DirectionCounts,
}

impl Engine {
    /// Opens the path of `plan` in the calling thread's namespace.
    pub(super) fn open(plan: &PathPlan, published: Arc<Published>) -> Result<Self, Error> {
        let mut route = Route::open()?;
        let mut ports = Vec::new();
        let mut port_of = HashMap::new();
        let seed = clock::unix_now();
        for (number, port) in plan.ports.iter().enumerate() {
            let link = route.index_of(&port.interface)?;
            port_of.insert(link, number);
            ports.push(Port {
                host: port.host.clone(),
                link,
                network: port.network,
                mtu: port.limits.mtu.unwrap_or_default(),
                silent: port.limits.mtu_silent,
                fair: port.limits.fair,
                counts: DirectionCounts::default(),
            });
        }
        let forwarding = match plan.hub {
            Some(limits) => Forwarding::Hub(CollisionDomain::new(limits, ports.len(), seed)),
            None => {
                let limits = plan.ports.iter().map(|port| port.limits).zip(seed..);
                let directions = limits.map(|(limits, seed)| Direction::new(limits, seed)).collect();
                Forwarding::Path { directions, stations: Stations::default() }
            }
        };
        let late_after = match &forwarding {
            Forwarding::Path { .. } => LATE,
            // Frames of a hub leave when they have crossed the medium, by a schedule to which one late frame does not matter.
            Forwarding::Hub(medium) => medium.longest_frame().max(LATE),
        };
        let shortest = plan.ports.iter().map(|port| shortest_delay(&port.limits).get()).min().unwrap_or_default();
        Ok(Self {
            ring: PacketRing::open(plan.longest, RING)?,
            sender: FrameSender::open(plan.bypass_queues)?,
            ports,
            port_of,
            forwarding,
            spare: Vec::new(),
            begun: clock::now(),
            shortest,
            way_out: 0,
            overslept: 0,
            missed: 0,
            latest: 0,
            late_after,
            published,
        })
    }

    /// Forwards frames until the process ends.
    pub(super) fn run(mut self) -> ! {
        // Away from the first core, on which testers send, and ahead of all else on the last. A refusal costs
        // precision, which the counts of late frames show.
        let _ = affinity::pin(available_parallelism().map_or(0, |cores| cores.get() as u32 - 1));
        let _first = go_before_all().is_err().then(SessionFirst::new);
        sharpen_timers();
        let mut leaving = Vec::with_capacity(2 * SENT);
        loop {
            let taken = self.take();
            let sent = self.release(&mut leaving);
            let now = clock::now();
            let idle = taken + sent == 0;
            let next = self.forwarding.next_due();
            if self.published.asked.load(Ordering::Relaxed) {
                self.publish();
            }
            match next {
                _ if !idle => {}
                Some(due) => self.rest(now, self.begun + due),
                None => {
                    self.publish();
                    self.published.resting.store(true, Ordering::SeqCst);
                    self.ring.wait(IDLE);
                    self.published.resting.store(false, Ordering::SeqCst);
                }
            }
        }
    }

    /// Sleeps until frames are due, or may have come that are due sooner. It never waits awake: a thread that takes a
    /// whole core before all others is made to pause, and the hosts need the core too.
    fn rest(&mut self, now: u64, due: u64) {
        // What comes meanwhile is not due before this: nothing needs to wake the thread for it.
        let unseen = now + self.shortest.max(GATHERED);
        if due > unseen && self.shortest <= GATHERED {
            return self.ring.wait((due - now).saturating_sub(self.overslept));
        }
        let wake = due.min(unseen).min(now + NAP).saturating_sub(self.overslept).max(now + SHORTEST_REST);
        clock::sleep_until(wake);
        let late = clock::now().saturating_sub(wake).min(OVERSLEPT_MAXIMUM);
        // Up fast and down slowly: few sleeps end later than this.
        if late > self.overslept {
            self.overslept += (late - self.overslept) / 8;
        } else {
            self.overslept -= (self.overslept - late) / 64;
        }
    }

    /// Takes frames that have come; returns how many.
    fn take(&mut self) -> usize {
        let since_1970 = clock::unix_now();
        let now = clock::now();
        for taken in 0..TAKEN {
            let Self { ring, spare, port_of, .. } = self;
            let read = ring.take(|frame| {
                let port = *port_of.get(&frame.link)?;
                // The clocks are read once for many frames: this one may have come since then. Not after now, whatever
                // sets the clock of 1970.
                let came = match frame.arrived_unix.checked_sub(since_1970) {
                    None => now.saturating_sub(since_1970 - frame.arrived_unix),
                    Some(0) => now,
                    Some(later) => (now + later).min(clock::now()),
                };
                Some((port, came, copy(frame, spare)))
            });
            match read {
                None => return taken,
                // The loopback interface, or another that is no port.
                Some(None) => {}
                Some(Some((port, came, Some(frame)))) => self.forward(port, came.saturating_sub(self.begun), frame),
                // Cut off: longer than any frame of these links.
                Some(Some((port, _, None))) => self.ports[port].counts.unplanned += 1,
            }
        }
        TAKEN
    }

    /// Gives a frame that came by port `from` to the directions it goes, or to the medium of the hub.
    fn forward(&mut self, from: usize, at: u64, frame: Vec<u8>) {
        let Some((&to, rest)) = frame.split_first_chunk::<6>() else { return };
        let Some(&source) = rest.first_chunk::<6>() else { return };
        let stations = match &mut self.forwarding {
            Forwarding::Path { stations, .. } => stations,
            Forwarding::Hub(medium) => {
                if let Err(frame) = medium.arrive(from, at, frame.len() as u64, frame) {
                    self.recycle(frame);
                }
                return;
            }
        };
        let contents = Contents::of(&frame);
        let network = self.ports[from].network;
        match stations.find(source, to, from) {
            Some(port) if port == from || self.ports[port].network != network => self.recycle(frame),
            Some(port) => self.arrive(from, port, at, &contents, frame),
            None => {
                for port in 0..self.ports.len() {
                    if port == from || self.ports[port].network != network {
                        continue;
                    }
                    let copy = self.copy_of(&frame);
                    self.arrive(from, port, at, &contents, copy);
                }
                self.recycle(frame);
            }
        }
    }

    /// Gives a frame to the direction to port `to` of a path.
    fn arrive(&mut self, from: usize, to: usize, at: u64, contents: &Contents, frame: Vec<u8>) {
        let Forwarding::Path { directions, .. } = &mut self.forwarding else { return self.recycle(frame) };
        let Port { counts, mtu, silent, fair, .. } = &mut self.ports[to];
        counts.arrived += 1;
        let arrival = Arrival {
            at,
            bytes: frame.len() as u64,
            packet: contents.packet.map(|packet| packet.length as u64),
            is_control: contents.is_control,
            allows_marking: contents.allows_marking,
            flow: contents.packet.filter(|_| *fair).map_or(0, |packet| packet.flow(&frame)),
        };
        let Err((why, frame)) = directions[to].arrive(arrival, frame) else { return };
        let mut answer = None;
        match why {
            Dropped::Lost => counts.lost += 1,
            Dropped::QueueFull => counts.queue_full += 1,
            Dropped::NoRoom => counts.unplanned += 1,
            Dropped::TooLarge => {
                counts.too_large += 1;
                answer = contents.packet.filter(|_| !*silent).and_then(|packet| packet.too_large(&frame, *mtu));
            }
        }
        self.recycle(frame);
        if let Some(answer) = answer {
            let contents = Contents::of(&answer);
            self.arrive(to, from, at, &contents, answer);
        }
    }

    /// Sends what is due; returns how many frames.
    fn release(&mut self, leaving: &mut Vec<(usize, u64, Vec<u8>)>) -> usize {
        let begun = clock::now();
        self.collect(begun + self.way_out - self.begun, leaving);
        if leaving.is_empty() {
            return 0;
        }
        let sent = leaving.len();
        let refused = self.sender.send(leaving.iter().map(|(port, _, frame)| (self.ports[*port].link, &frame[..])));
        let ended = clock::now();
        let took = (ended - begun).min(WAY_OUT_MAXIMUM);
        self.way_out = (self.way_out * (WAYS_OUT - 1) + took) / WAYS_OUT;
        for (port, due, frame) in leaving.drain(..) {
            let counts = &mut self.ports[port].counts;
            counts.sent += 1;
            let late = ended.saturating_sub(self.begun + due);
            counts.late += u64::from(late > self.late_after);
            self.latest = self.latest.max(late);
            if self.spare.len() < SPARE {
                self.spare.push(frame);
            }
        }
        // Which of them the kernel refused does not matter: none should be.
        if let (1.., Some(port)) = (refused, self.ports.first_mut()) {
            port.counts.unplanned += refused;
        }
        sent
    }

    /// Collects the frames that are due at `now`, each with the port that it leaves by.
    fn collect(&mut self, now: u64, leaving: &mut Vec<(usize, u64, Vec<u8>)>) {
        match &mut self.forwarding {
            Forwarding::Path { directions, .. } => {
                for (number, (direction, port)) in directions.iter_mut().zip(&mut self.ports).enumerate() {
                    while let Some(departure) = (leaving.len() < SENT).then(|| direction.depart(now)).flatten() {
                        prepare(number, departure, &mut port.counts, leaving);
                    }
                }
            }
            Forwarding::Hub(medium) => {
                while let Some(repeated) = (leaving.len() < SENT).then(|| medium.depart(now)).flatten() {
                    for (number, port) in self.ports.iter_mut().enumerate().filter(|(to, _)| *to != repeated.from) {
                        port.counts.arrived += 1;
                        leaving.push((number, repeated.due, repeated.frame.clone()));
                    }
                }
            }
        }
    }

    fn publish(&mut self) {
        self.missed += self.ring.missed().unwrap_or_default();
        let to = self.ports.iter().map(|port| (port.host.clone(), port.counts)).collect();
        let from = match &self.forwarding {
            Forwarding::Path { .. } => BTreeMap::new(),
            Forwarding::Hub(medium) => {
                let ports = self.ports.iter().enumerate();
                ports.map(|(number, port)| (port.host.clone(), medium.counts(number))).collect()
            }
        };
        let counts = PathCounts {
            to,
            from,
            missed: self.missed,
            latest: Nanos::new(self.latest),
            late_after: Nanos::new(self.late_after),
        };
        if let Ok(mut published) = self.published.counts.lock() {
            *published = counts;
        }
        self.published.asked.store(false, Ordering::SeqCst);
    }

    fn copy_of(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(frame);
        copy
    }

    fn recycle(&mut self, frame: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(frame);
        }
    }
}

/// Changes a frame that leaves a path by port `number` as planned, and counts what was done.
fn prepare(
    number: usize,
    departure: Departure<Vec<u8>>,
    counts: &mut DirectionCounts,
    leaving: &mut Vec<(usize, u64, Vec<u8>)>,
) {
    let Departure { due, mut frame, marked, corrupted, twice, overtaken, .. } = departure;
    if marked || corrupted.is_some() {
        let packet = Contents::of(&frame).packet;
        if let Some(packet) = packet.filter(|_| marked) {
            packet.mark(&mut frame);
            counts.marked += 1;
        }
        if let (Some(random), Some(packet)) = (corrupted, packet) {
            counts.corrupted += u64::from(packet.corrupt(&mut frame, random));
        }
    }
    counts.reordered += u64::from(overtaken);
    if twice {
        counts.duplicated += 1;
        leaving.push((number, due, frame.clone()));
    }
    leaving.push((number, due, frame));
}

/// Copies the frame, with the VLAN tag that the kernel took out. Returns `None` if it was cut off.
fn copy(frame: &RingFrame<'_>, spare: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
    if frame.length > frame.bytes.len() {
        return None;
    }
    let mut copy = spare.pop().unwrap_or_default();
    copy.clear();
    match frame.vlan {
        Some((protocol, tag)) => {
            let (addresses, rest) = frame.bytes.split_at_checked(12)?;
            copy.extend_from_slice(addresses);
            copy.extend(protocol.to_be_bytes());
            copy.extend(tag.to_be_bytes());
            copy.extend_from_slice(rest);
        }
        None => copy.extend_from_slice(frame.bytes),
    }
    Some(copy)
}
