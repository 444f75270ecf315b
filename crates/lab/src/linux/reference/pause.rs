//! PAUSE frames of a reference device (IEEE 802.3 annex 31B).
//!
//! The program on the ports decides when to ask for a pause, and this process in the device's namespace sends the frame: a
//! program cannot make one.

use crate::linux::lifeline::wait_for_end;
use crate::linux::load_failure::map_failed;
use crate::linux::slow_disk::READY;
use aya::maps::{Map, MapData, RingBuf};
use linerate_sys::netlink::Route;
use linerate_sys::packet::PacketSocket;
use linerate_sys::thread::{SessionFirst, go_before_all};
use linerate_sys::{Error, affinity};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd as _;
use std::thread::{self, available_parallelism};

/// Destination of PAUSE frames, which no bridge forwards.
const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
/// Source of the device's frames.
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
/// EtherType of MAC control frames, and the operation PAUSE.
const MAC_CONTROL: u16 = 0x8808;
const PAUSE: u16 = 1;
/// Bytes of the shortest frame, without its FCS.
const SHORTEST: usize = 60;

/// A pause that the program asks for, as it writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pause {
    /// Number of the interface of the port.
    interface: u32,
    /// Length in quanta of 512 bit times.
    quanta: u16,
}

impl Pause {
    /// Reads one from the ring; `None` if it is of another form.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (interface, rest) = bytes.split_first_chunk()?;
        let quanta = u32::from_ne_bytes(*rest.first_chunk()?);
        Some(Self { interface: u32::from_ne_bytes(*interface), quanta: quanta.try_into().unwrap_or(u16::MAX) })
    }

    /// Returns the frame that asks for it.
    fn frame(self) -> Vec<u8> {
        let [kind, operation, quanta] = [MAC_CONTROL, PAUSE, self.quanta].map(u16::to_be_bytes);
        let mut frame = [&DESTINATION[..], &SOURCE, &kind, &operation, &quanta].concat();
        frame.resize(SHORTEST, 0);
        frame
    }
}

/// Sends the PAUSE frames that the map of the standard output asks for, until standard input ends. Says on standard error
/// when it is ready.
///
/// # Errors
///
/// Fails without CAP_NET_RAW and CAP_BPF.
pub fn serve() -> Result<(), Error> {
    let mut sender = match Sender::open() {
        Ok(sender) => sender,
        Err(error) => {
            eprintln!("{error}");
            return Err(error);
        }
    };
    thread::Builder::new()
        .name(String::from("pauses"))
        .spawn(move || sender.run())
        .map_err(|error| Error::new("clone", "the thread of the PAUSE frames", error))?;
    eprintln!("{READY}");
    wait_for_end()
}

struct Sender {
    asked: RingBuf<MapData>,
    ports: HashMap<u32, PacketSocket>,
}

impl Sender {
    fn open() -> Result<Self, Error> {
        let map = io::stdout().as_fd().try_clone_to_owned();
        let map = map.map_err(|error| Error::new("dup", "the pauses of the reference device", error))?;
        let map = MapData::from_fd(map).and_then(Map::from_map_data).map_err(|error| map_failed("pauses", &error))?;
        let asked = RingBuf::try_from(map).map_err(|error| map_failed("pauses", &error))?;
        let mut ports = HashMap::new();
        for link in Route::open()?.links()?.into_iter().filter(|link| !link.loopback) {
            let socket = PacketSocket::open(link.index, None)?;
            socket.bypass_queue()?;
            ports.insert(link.index, socket);
        }
        Ok(Self { asked, ports })
    }

    fn run(&mut self) {
        // On the last core: the tester sends on the first. What is refused makes for later frames, which are counted.
        let last_core = available_parallelism().map_or(0, |cores| cores.get() as u32 - 1);
        let _ = affinity::pin(last_core);
        let _first = go_before_all().is_err().then(SessionFirst::new);
        loop {
            while let Some(item) = self.asked.next() {
                let Some(pause) = Pause::read(&item) else { continue };
                if let Some(port) = self.ports.get(&pause.interface) {
                    // A frame that is not sent is missed by the device, which counts what it drops then.
                    let _ = port.send(&pause.frame());
                }
            }
            let mut wish = [PollFd::new(self.asked.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut wish, PollTimeout::NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_frame_of_the_standard() {
        let bytes = [3u32.to_ne_bytes(), 0x1234u32.to_ne_bytes()].concat();
        let pause = Pause::read(&bytes).expect("a pause");
        assert_eq!(pause, Pause { interface: 3, quanta: 0x1234 });
        let frame = pause.frame();
        let head = [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0xfe, 0x88, 0x08, 0, 1, 0x12, 0x34];
        assert_eq!((frame.len(), &frame[..18]), (60, &head[..]));
        assert!(frame[18..].iter().all(|byte| *byte == 0));
        assert_eq!(Pause::read(&bytes[..7]), None);
    }
}
