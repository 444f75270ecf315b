//! One direction of a path: the departure and the changes of each frame. The model knows time only as a number.

use super::chance::{Chance, Likelihood, Loss};
use super::fair_queue::FairQueue;
use super::limits::{FRAMES_MAXIMUM, PathLimits, RATE_MAXIMUM};
use super::line::Line;
use linerate_units::Nanos;
use std::collections::VecDeque;

/// Overhead of a frame on the wire: FCS, preamble and gap.
const AROUND: u64 = 4 + 8 + 12;
/// The shortest frame, without FCS.
const SHORTEST: u64 = 60;
/// Number of later frames that overtake a frame: the number of duplicate acknowledgements after which TCP sends again
/// (RFC 5681).
const OVERTAKEN_BY: u32 = 3;
/// Longest time that a frame waits for others to overtake it.
const HELD_BACK: u64 = 20_000_000;
/// Time in which the delay moves from one random value to the next, in multiples of the jitter: too slow for frames to
/// overtake.
const WANDER: u64 = 8;
/// Bytes that may be on their way and wait in one direction: they lie in memory.
const ROOM: u64 = 512 << 20;

/// A frame that comes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrival {
    /// When it came, nanoseconds since the beginning.
    pub(crate) at: u64,
    /// Its bytes, without FCS.
    pub(crate) bytes: u64,
    /// Bytes of its IP packet.
    pub(crate) packet: Option<u64>,
    /// ARP and the like, which is delayed only.
    pub(crate) is_control: bool,
    /// Whether it may be marked.
    pub(crate) allows_marking: bool,
    /// Hash of its flow, for a fair queue.
    pub(crate) flow: u64,
}

/// Why a frame does not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// Planted loss.
    Lost,
    /// The queue was full.
    QueueFull,
    /// Its packet is larger than the MTU.
    TooLarge,
    /// Memory for frames is used up: not a limit of the path.
    NoRoom,
}

/// A frame that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Departure<F> {
    /// When it is to leave.
    pub(crate) due: u64,
    /// The frame.
    pub(crate) frame: F,
    /// Whether it is to be marked "congestion experienced".
    pub(crate) marked: bool,
    /// A byte of it is to be changed, by this random number.
    pub(crate) corrupted: Option<u64>,
    /// Whether it leaves twice.
    pub(crate) twice: bool,
    /// Others have overtaken it.
    pub(crate) overtaken: bool,
    bytes: u64,
}

/// Model of one direction.
#[derive(Debug)]
pub(crate) struct Direction<F> {
    limits: PathLimits,
    chance: Chance,
    loss: Loss,
    corrupt: Likelihood,
    duplicate: Likelihood,
    reorder: Likelihood,
    line: Line,
    frames: Line,
    queue_bytes: u64,
    /// When each frame in the queue leaves it, and its bytes.
    queue: VecDeque<(u64, u64)>,
    queued: u64,
    /// Frames that wait for their turn; `None` if the queue serves in the order of arrival.
    fair: Option<FairQueue<(u64, Departure<F>)>>,
    /// When the line is free for the next turn.
    free: u64,
    wander: u64,
    /// When the first IP packet came.
    first: Option<u64>,
    /// When the last frame came.
    last: u64,
    /// When the last left the queue.
    left: u64,
    /// On their way, in the order in which they leave.
    under_way: VecDeque<Departure<F>>,
    /// ARP and the like, which wait for no queue.
    beside: VecDeque<Departure<F>>,
    held_back: Vec<(Departure<F>, u32)>,
    held: u64,
}

impl<F> Direction<F> {
    /// A direction that does what `limits` say, by chance as `seed` has it.
    pub(crate) fn new(limits: PathLimits, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let wander = chance.number();
        Self {
            limits,
            chance,
            loss: Loss::new(limits.loss, limits.loss_burst),
            corrupt: Likelihood::of(limits.corrupt),
            duplicate: Likelihood::of(limits.duplicate),
            reorder: Likelihood::of(limits.reorder),
            line: Line::of_bits(limits.line(), limits.burst.map_or(0, |burst| burst.get())),
            frames: Line::of_frames(limits.max_frames.unwrap_or(FRAMES_MAXIMUM)),
            queue_bytes: limits.queue_bytes(),
            queue: VecDeque::new(),
            queued: 0,
            fair: limits.fair.then(FairQueue::new),
            free: 0,
            wander,
            first: None,
            last: 0,
            left: 0,
            under_way: VecDeque::new(),
            beside: VecDeque::new(),
            held_back: Vec::new(),
            held: 0,
        }
    }

    /// Takes a frame.
    ///
    /// # Errors
    ///
    /// Gives the frame back with the reason if it does not leave.
    pub(crate) fn arrive(&mut self, arrival: Arrival, frame: F) -> Result<(), (Dropped, F)> {
        let Arrival { bytes, .. } = arrival;
        // Stamps of two cores may be a little out of order.
        let at = arrival.at.max(self.last);
        self.last = at;
        if self.held + bytes > ROOM {
            return Err((Dropped::NoRoom, frame));
        }
        let mut departure =
            Departure { due: 0, frame, marked: false, corrupted: None, twice: false, overtaken: false, bytes };
        if arrival.is_control {
            departure.due = at + self.delay(at);
            self.held += bytes;
            self.beside.push_back(departure);
            return Ok(());
        }
        if arrival.packet.is_some() {
            self.first.get_or_insert(at);
        }
        if self.is_cut(at) {
            return Err((Dropped::Lost, departure.frame));
        }
        if self.limits.mtu.is_some_and(|mtu| arrival.packet.is_some_and(|packet| packet > mtu.into())) {
            return Err((Dropped::TooLarge, departure.frame));
        }
        if self.loss.takes(&mut self.chance) {
            return Err((Dropped::Lost, departure.frame));
        }
        if self.fair.is_some() {
            return self.arrive_in_flow(at, arrival, departure);
        }
        let waits = self.waiting(at);
        // A frame that finds the line idle passes, however small the queue.
        if waits > 0 && waits + bytes > self.queue_bytes {
            return Err((Dropped::QueueFull, departure.frame));
        }
        departure.marked = arrival.allows_marking && self.limits.mark.is_some_and(|mark| waits > mark.get());
        self.held += bytes;
        self.serve(at, departure);
        Ok(())
    }

    /// Queues a frame in its flow. A full queue drops the last frame of the flow with the most bytes.
    fn arrive_in_flow(&mut self, at: u64, arrival: Arrival, mut departure: Departure<F>) -> Result<(), (Dropped, F)> {
        self.serve_flows(at);
        let waits = self.waiting(at);
        let Some(fair) = &mut self.fair else { return Err((Dropped::NoRoom, departure.frame)) };
        let of_flow = fair.bytes_of(arrival.flow);
        departure.marked = arrival.allows_marking && self.limits.mark.is_some_and(|mark| of_flow > mark.get());
        let waits = waits + fair.bytes();
        let is_full = waits > 0 && waits + arrival.bytes > self.queue_bytes;
        fair.push(arrival.flow, arrival.bytes, (at, departure));
        self.held += arrival.bytes;
        if is_full && let Some((_, last)) = fair.longest().and_then(|flow| fair.pop_last(flow)) {
            self.held -= last.bytes;
            return Err((Dropped::QueueFull, last.frame));
        }
        self.serve_flows(at);
        Ok(())
    }

    /// Serves the flows in turn until the line is busy at `until`.
    fn serve_flows(&mut self, until: u64) {
        while self.free <= until {
            let Some((at, departure)) = self.fair.as_mut().and_then(FairQueue::pop) else { return };
            self.serve(self.free.max(at), departure);
        }
    }

    /// Sends a frame through the line, which takes it at `at`.
    fn serve(&mut self, at: u64, mut departure: Departure<F>) {
        let bytes = departure.bytes;
        let bits = (bytes.max(SHORTEST) + AROUND) * 8;
        // Both serve it at the same time; it leaves when the slower is done.
        let served = self.line.serve(at, bits).max(self.frames.serve(at, 1));
        self.free = served;
        let slot = self.limits.slots.map_or(served, |slot| served.next_multiple_of(slot.get()));
        // What leaves together leaves as fast as the fastest line carries it: a bit a nanosecond.
        let leaves = slot.max(self.left + bits * 1_000_000_000 / RATE_MAXIMUM.get());
        self.left = leaves;
        self.queue.push_back((leaves, bytes));
        self.queued += bytes;
        departure.due = leaves + self.delay(leaves);
        departure.corrupted = self.chance.happens(self.corrupt).then(|| self.chance.number());
        departure.twice = self.chance.happens(self.duplicate);
        if self.chance.happens(self.reorder) {
            self.held_back.push((departure, 0));
        } else {
            self.send_on(departure);
        }
    }

    /// Returns whether nothing passes at `at`.
    fn is_cut(&self, at: u64) -> bool {
        let Some((cut, first)) = self.limits.cut.zip(self.first) else { return false };
        let begin = first + cut.after.get();
        (begin..begin + cut.length.get()).contains(&at)
    }

    /// Returns when the next frame leaves or has its turn, or `None` if no frame is on its way.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let heads = [self.under_way.front(), self.beside.front()].into_iter().flatten().map(|head| head.due);
        let latest = self.held_back.iter().map(|(departure, _)| departure.due + HELD_BACK);
        let turn = self.fair.as_ref().filter(|fair| fair.bytes() > 0).map(|_| self.free);
        heads.chain(latest).chain(turn).min()
    }

    /// The next frame that is to leave until `now`.
    pub(crate) fn depart(&mut self, now: u64) -> Option<Departure<F>> {
        self.serve_flows(now);
        let due = self.next_due().filter(|due| *due <= now)?;
        let is_due = |head: &mut Departure<F>| head.due == due;
        let departure =
            self.under_way.pop_front_if(is_due).or_else(|| self.beside.pop_front_if(is_due)).or_else(|| {
                let late = self.held_back.iter().position(|(departure, _)| departure.due + HELD_BACK == due)?;
                let (departure, by) = self.held_back.remove(late);
                Some(Departure { due, overtaken: by > 0, ..departure })
            })?;
        self.held -= departure.bytes;
        Some(departure)
    }

    /// Bytes of the frames that wait at `at`.
    fn waiting(&mut self, at: u64) -> u64 {
        while let Some((_, bytes)) = self.queue.pop_front_if(|(leaves, _)| *leaves <= at) {
            self.queued -= bytes;
        }
        self.queued
    }

    /// Queues a frame last, and after it the frames that it is the last to overtake.
    fn send_on(&mut self, departure: Departure<F>) {
        let due = departure.due;
        self.under_way.push_back(departure);
        for (_, by) in &mut self.held_back {
            *by += 1;
        }
        let under_way = &mut self.under_way;
        let passed = self.held_back.extract_if(.., |(_, by)| *by >= OVERTAKEN_BY);
        under_way.extend(passed.map(|(departure, _)| Departure { due, overtaken: true, ..departure }));
    }

    /// The delay of a frame that leaves the queue at `at`: it wanders in straight lines between random values.
    fn delay(&self, at: u64) -> u64 {
        let delay = self.limits.delay.unwrap_or_default().get();
        let jitter = self.limits.jitter.unwrap_or_default().get();
        if jitter == 0 {
            return delay;
        }
        let step = WANDER * jitter;
        let number = at / step;
        let within = at % step;
        let value = |number: u64| i128::from(Chance::new(self.wander ^ number).number() % (2 * jitter + 1));
        let from = value(number);
        let to = value(number + 1);
        let value = from + (to - from) * i128::from(within) / i128::from(step);
        // Between 0 and twice the jitter.
        delay - jitter + value as u64
    }
}

/// The shortest time that a frame takes through a direction of `limits`.
pub(crate) fn shortest_delay(limits: &PathLimits) -> Nanos {
    Nanos::new(limits.delay.unwrap_or_default().get() - limits.jitter.unwrap_or_default().get())
}

#[cfg(test)]
mod tests;
