//! The delay of a reference device: every frame leaves so much later than it came.
//!
//! Programs in the kernel cannot hold a frame, so the device's program (bpf/reference.bpf.c) sends it down a link that ends
//! here, with a word in front that says when it came and where it is to go. The agent in the device's namespace runs this on
//! a thread, so it lives and ends with the lab.

use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_sys::packet::{ALL_PROTOCOLS, Incoming, PacketSocket};
use linerate_sys::thread::{SELF, go_first, sharpen_timers};
use linerate_sys::{Error, affinity, clock, ethtool::Ethtool};
use linerate_units::Nanos;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::thread::available_parallelism;

/// The end of the link that the device's program sends to.
const HOLD: &str = "hold";
/// The end that is heard here.
const HELD: &str = "held";
/// Room for the longest frame that XDP takes and the word in front of it.
const ROOM: usize = 4_096;
const MTU: u32 = ROOM as u32;
/// struct held of bpf/reference.bpf.c: when it came, by which port, and where to.
const WORD: usize = 16;
/// Frames taken at a time.
const BATCH: usize = 64;
/// Wanted for frames that wait to be taken, bytes.
const BUFFER: i32 = 64 << 20;
/// The thread stays awake for the last of a wait: sleeps end late.
const AWAKE: u64 = 250_000;
/// The way from here to the far end of a port takes a few microseconds. More than this was a pause of the core.
const WAY_OUT_MAXIMUM: u64 = 20_000;
/// How many frames it is averaged over.
const WAYS_OUT: u64 = 16;
/// A wait for frames when none is on its way, milliseconds.
const IDLE: u16 = 1_000;

/// Makes the link in the calling thread's namespace, which is `device`; returns the number of the end to send to.
pub(crate) fn make(route: &mut Route, device: &NetNamespace) -> Result<u32, Error> {
    route.add_veth(HOLD, HELD, device, MTU)?;
    for end in [HOLD, HELD] {
        let link = route.index_of(end)?;
        route.set_up(link)?;
    }
    // Otherwise it takes no frames from a program.
    Ethtool::open()?.send_frame_by_frame(HELD)?;
    route.index_of(HOLD)
}

/// The end where frames are held.
#[derive(Debug)]
pub struct DelayLine {
    held: PacketSocket,
    ports: BTreeMap<u32, PacketSocket>,
    delay: u64,
}

/// A frame on its way.
struct Waiting {
    due: u64,
    from: u32,
    to: u32,
    frame: Vec<u8>,
}

impl DelayLine {
    /// Opens the line of the reference device in this thread's namespace. What comes from now on is held for `delay`.
    pub fn open(delay: Nanos) -> Result<Self, Error> {
        let mut route = Route::open()?;
        let links = route.links()?;
        let held = links.iter().find(|link| link.name == HELD).ok_or_else(|| {
            let missing = io::Error::other("this is not the namespace of a reference device with a delay");
            Error::new("RTM_GETLINK", HELD, missing)
        })?;
        let held = PacketSocket::open(held.index, Some(ALL_PROTOCOLS))?;
        held.stamp_and_hold(BUFFER)?;
        let mut ports = BTreeMap::new();
        for link in links.iter().filter(|link| !link.loopback && link.name != HELD && link.name != HOLD) {
            let socket = PacketSocket::open(link.index, None)?;
            // Without it frames only take longer.
            let _ = socket.bypass_queue();
            ports.insert(link.index, socket);
        }
        Ok(Self { held, ports, delay: delay.get() })
    }

    /// Lets each frame go when it is due; ends with the process, or when the device is gone.
    pub fn run(self) {
        // Away from the tester's core. A refusal costs precision, which the tests of the lab measure.
        let _ = affinity::pin(available_parallelism().map_or(0, |cores| cores.get() as u32 - 1));
        let _ = go_first(SELF);
        sharpen_timers();
        let mut incoming = Incoming::with_room(BATCH, ROOM);
        let mut waiting = VecDeque::<Waiting>::new();
        // How long a frame takes from here to the far end: a virtual link delivers before the call that sends returns. So much
        // earlier each is let go.
        let mut way_out = 0;
        while incoming.take(&self.held).is_ok() {
            waiting.extend(incoming.frames().filter_map(|(frame, _)| self.read(frame)));
            while let Some(next) = waiting.pop_front_if(|next| next.due <= clock::now() + way_out) {
                let begun = clock::now();
                self.release(&next);
                let took = (clock::now() - begun).min(WAY_OUT_MAXIMUM);
                way_out = (way_out * (WAYS_OUT - 1) + took) / WAYS_OUT;
            }
            match waiting.front() {
                None => _ = self.held.wait(IDLE),
                Some(next) if next.due > clock::now() + AWAKE => {
                    clock::sleep_until((next.due - AWAKE).min(clock::now() + AWAKE));
                }
                Some(_) => {}
            }
        }
    }

    fn read(&self, bytes: &[u8]) -> Option<Waiting> {
        let (word, frame) = bytes.split_at_checked(WORD)?;
        let (arrived, ports) = word.split_first_chunk()?;
        let (from, to) = ports.split_first_chunk()?;
        let (arrived, from) = (u64::from_ne_bytes(*arrived), u32::from_ne_bytes(*from));
        let to = u32::from_ne_bytes(to.try_into().ok()?);
        // What the kernel itself says on the link has no such word.
        let ours =
            arrived <= clock::now() && self.ports.contains_key(&from) && (to == 0 || self.ports.contains_key(&to));
        ours.then(|| Waiting { due: arrived + self.delay, from, to, frame: frame.to_vec() })
    }

    fn release(&self, frame: &Waiting) {
        let goes = |port: &u32| if frame.to == 0 { *port != frame.from } else { *port == frame.to };
        for (_, socket) in self.ports.iter().filter(|(port, _)| goes(port)) {
            // A port that takes no frame loses it, as a device does whose wire is pulled.
            let _ = socket.send(&frame.frame);
        }
    }
}
