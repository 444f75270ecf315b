//! Limits of a result, and their places.

use crate::MessageValue;
use crate::named;

named! {
    /// What can limit a result.
    pub enum Limit as "limit",
    /// Returns the place of the limit, if its kind alone shows it.
    usual_place: Option<LimitPlace> {
        /// The load that was asked for: all of it arrived.
        OfferedLoad = "offered-load", "offered load", None;
        /// A link of known speed is full.
        Wire = "wire", "wire", None;
        /// The bus of an interface's card: its slot carries less than its link.
        HostBus = "host-bus", "host bus", None;
        /// The result equals what the tester reaches without the device.
        Tester = "tester", "tester", None;
        /// The server that answers calls (RPC, NFS): its storage, its threads or its processor.
        Server = "server", "server", Some(LimitPlace::Server);
        /// The source's storage: what a copy reads from.
        StorageRead = "storage-read", "storage read", Some(LimitPlace::Storage);
        /// The destination's storage: what a copy writes to and makes durable.
        StorageWrite = "storage-write", "storage write", Some(LimitPlace::Storage);
        /// The sending host's processor.
        SenderCpu = "sender-cpu", "sender's CPU", Some(LimitPlace::SenderHost);
        /// The receiving host's processor.
        ReceiverCpu = "receiver-cpu", "receiver's CPU", Some(LimitPlace::ReceiverHost);
        /// A buffer of the receiving host: datagrams found no room in the socket's though the program that reads it had time, or their
        /// fragments none in the memory for reassembly.
        ReceiverBuffer = "receiver-buffer", "receiver's buffer", Some(LimitPlace::ReceiverApplication);
        /// The time that a host's kernel spends in soft interrupts: receiving and sending packets for whatever program.
        SoftirqCpu = "softirq-cpu", "soft interrupts' CPU", None;
        /// The receiver's window: the data that it allows to be in flight at once.
        Window = "window", "window", Some(LimitPlace::ReceiverApplication);
        /// The sender's buffer: it holds less than what would be in flight.
        SendBuffer = "send-buffer", "sender's buffer", Some(LimitPlace::SenderApplication);
        /// The beginning of a connection: TCP was still growing to its rate.
        StartUp = "start-up", "start-up", Some(LimitPlace::SenderHost);
        /// An outage: the path carried nothing for a part of the window.
        Outage = "outage", "outage", Some(LimitPlace::ForwardPath);
        /// Loss on the path, which TCP takes for congestion, or which takes its share of datagrams.
        PathLoss = "path-loss", "loss on the path", Some(LimitPlace::ForwardPath);
        /// Large packets that the path drops without an ICMP message to their sender.
        MtuBlackHole = "mtu-black-hole", "path MTU black hole", Some(LimitPlace::ForwardPath);
        /// Payload that the path changed: the receiver's checksums fail, and it drops the packets.
        Corruption = "corruption", "corruption on the path", Some(LimitPlace::ForwardPath);
        /// The device under test: bypassed, the result rose.
        Device = "device", "device", Some(LimitPlace::Device);
        /// Something on the path that lets through less than any link on it carries, as far as their speeds are known: a shaper,
        /// a policer, a slower link.
        Shaper = "shaper", "shaper", Some(LimitPlace::ForwardPath);
        /// The time that one request takes, as long as the next waits for it.
        Latency = "latency", "latency", None;
        /// Inconclusive: the evidence says what was missing.
        CannotTell = "cannot-tell", "cannot tell", None;
    }
}

named! {
    /// A place on the way from the sending program to the receiving one, or beside it.
    pub enum LimitPlace as "place" {
        /// The program that sends, or asks, and its buffers.
        SenderApplication = "sender-application", "sending program";
        /// The rest of the sending host: its processors and its kernel.
        SenderHost = "sender-host", "sending host";
        /// The queue of the sending host's interface.
        SenderQueue = "sender-queue", "sending host's queue";
        /// The path from the sender to the receiver.
        ForwardPath = "forward-path", "forward path";
        /// The path on which acknowledgements and answers come back.
        ReturnPath = "return-path", "return path";
        /// The rest of the receiving host: its interface, its processors and its kernel.
        ReceiverHost = "receiver-host", "receiving host";
        /// The program that receives, and its buffers.
        ReceiverApplication = "receiver-application", "receiving program";
        /// The server that answers calls.
        Server = "server", "server";
        /// The storage of a copy.
        Storage = "storage", "storage";
        /// The device under test.
        Device = "device", "device";
    }
}

impl From<Limit> for MessageValue {
    fn from(limit: Limit) -> Self {
        limit.text().into()
    }
}
