//! What a series can hold, and in which unit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A quantity that is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Payload bytes sent; frames: bytes of frames.
    SentBytes,
    /// Payload bytes received; copies: bytes of files in place.
    ReceivedBytes,
    /// Messages sent; UDP: datagrams.
    SentMessages,
    /// Messages received; UDP: datagrams.
    ReceivedMessages,
    /// Transactions, calls or operations completed; copies: files in place.
    Operations,
    /// UDP streams: datagrams missing at the receiver, by their numbers.
    Lost,
    /// TCP: segments retransmitted. RPC over UDP: calls sent again.
    Retransmits,
    /// TCP: retransmission time-outs.
    Timeouts,
    /// Set rate: how far the sender was behind its schedule, at most.
    Lateness,
    /// TCP: smoothed round-trip time; several flows: their mean, here and below unless said otherwise.
    Srtt,
    /// TCP: mean deviation of the round-trip time.
    RttVar,
    /// TCP: congestion window.
    CongestionWindow,
    /// TCP: slow start threshold; zero before the first loss.
    SlowStartThreshold,
    /// TCP: pacing rate, all flows together.
    PacingRate,
    /// TCP: delivery rate, all flows together.
    DeliveryRate,
    /// TCP: window that the peer advertised.
    PeerWindow,
    /// TCP: payload bytes sent to the network, all flows together; retransmits do not count.
    TransmittedBytes,
    /// TCP: bytes in the send buffer that were never sent.
    Unsent,
    /// TCP: time with data to send, all flows together.
    Busy,
    /// TCP: of it, time stalled by the receiver's window.
    ReceiveWindowLimited,
    /// TCP: of it, time stalled by the send buffer.
    SendBufferLimited,
    /// TCP: segments delivered with a congestion mark (RFC 3168).
    DeliveredCe,
    /// Time of a core in user space.
    CoreUser,
    /// Time of a core in the kernel, on behalf of programs.
    CoreSystem,
    /// Time of a core in soft interrupts.
    CoreSoftirq,
    /// Time of a core taken by the hypervisor.
    CoreSteal,
    /// CPU time of one of the engine's threads.
    ThreadCpu,
    /// Bytes waiting in a queueing discipline.
    QdiscBacklog,
    /// How often a queueing discipline held back a packet that was due.
    QdiscOverlimits,
    /// Packets that a queueing discipline dropped.
    QdiscDrops,
    /// Bytes that an interface sent, of all programs.
    InterfaceSentBytes,
    /// Packets that an interface sent.
    InterfaceSentPackets,
    /// Bytes that an interface received.
    InterfaceReceivedBytes,
    /// Packets that an interface received.
    InterfaceReceivedPackets,
    /// Packets that an interface dropped, both ways.
    InterfaceDrops,
    /// Packets that the kernel's input queues took, all cores together.
    SoftnetProcessed,
    /// Packets that these queues dropped.
    SoftnetDropped,
    /// How often a core gave up its turn at them with packets left.
    SoftnetSqueezed,
    /// UDP datagrams that the kernel dropped for want of socket buffer.
    UdpReceiveBufferErrors,
    /// What the host's protocols dropped otherwise, by the reason: `udp checksum`, `udp memory`, `tcp checksum`, `ip header`,
    /// `ip discards`, `ip filtered`, `ip reassembly`, `ip not sent`. See [`crate::NetworkCounters`].
    KernelDrops,
    /// Copies: time of a stage at work, all its workers together.
    StageTime,
    /// Frames that a port sent.
    FramesSent,
    /// Frames that a port received.
    FramesReceived,
    /// Load of the device under test: a processor's busy share.
    DeviceCpu,
}

/// The unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesUnit {
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// Microseconds.
    Micros,
    /// Thousands of bits per second.
    KilobitsPerSecond,
    /// TCP segments.
    Segments,
    /// Hundredths.
    Percent,
}

impl Quantity {
    /// Its unit.
    pub fn unit(self) -> SeriesUnit {
        match self {
            Self::SentBytes
            | Self::ReceivedBytes
            | Self::PeerWindow
            | Self::TransmittedBytes
            | Self::Unsent
            | Self::QdiscBacklog
            | Self::InterfaceSentBytes
            | Self::InterfaceReceivedBytes => SeriesUnit::Bytes,
            Self::Lateness
            | Self::Srtt
            | Self::RttVar
            | Self::Busy
            | Self::ReceiveWindowLimited
            | Self::SendBufferLimited
            | Self::CoreUser
            | Self::CoreSystem
            | Self::CoreSoftirq
            | Self::CoreSteal
            | Self::ThreadCpu
            | Self::StageTime => SeriesUnit::Micros,
            Self::PacingRate | Self::DeliveryRate => SeriesUnit::KilobitsPerSecond,
            Self::CongestionWindow | Self::SlowStartThreshold => SeriesUnit::Segments,
            Self::DeviceCpu => SeriesUnit::Percent,
            Self::SentMessages
            | Self::ReceivedMessages
            | Self::Operations
            | Self::Lost
            | Self::Retransmits
            | Self::Timeouts
            | Self::DeliveredCe
            | Self::QdiscOverlimits
            | Self::QdiscDrops
            | Self::InterfaceSentPackets
            | Self::InterfaceReceivedPackets
            | Self::InterfaceDrops
            | Self::SoftnetProcessed
            | Self::SoftnetDropped
            | Self::SoftnetSqueezed
            | Self::UdpReceiveBufferErrors
            | Self::KernelDrops
            | Self::FramesSent
            | Self::FramesReceived => SeriesUnit::Count,
        }
    }

    /// Whether it is a level, which is read as it is. All others are counters, of which the growth is kept.
    pub fn is_level(self) -> bool {
        matches!(
            self,
            Self::Lateness
                | Self::Srtt
                | Self::RttVar
                | Self::CongestionWindow
                | Self::SlowStartThreshold
                | Self::PacingRate
                | Self::DeliveryRate
                | Self::PeerWindow
                | Self::Unsent
                | Self::QdiscBacklog
                | Self::DeviceCpu
        )
    }

    /// Whether the larger of two levels stands for both when their points are merged; else their mean does.
    pub fn keeps_the_largest(self) -> bool {
        matches!(self, Self::Lateness | Self::QdiscBacklog)
    }

    /// Whether it is of the whole host, not of one session on it.
    pub fn is_of_host(self) -> bool {
        matches!(
            self,
            Self::CoreUser
                | Self::CoreSystem
                | Self::CoreSoftirq
                | Self::CoreSteal
                | Self::QdiscBacklog
                | Self::QdiscOverlimits
                | Self::QdiscDrops
                | Self::InterfaceSentBytes
                | Self::InterfaceSentPackets
                | Self::InterfaceReceivedBytes
                | Self::InterfaceReceivedPackets
                | Self::InterfaceDrops
                | Self::SoftnetProcessed
                | Self::SoftnetDropped
                | Self::SoftnetSqueezed
                | Self::UdpReceiveBufferErrors
                | Self::KernelDrops
        )
    }

    /// How many subjects are kept of it, the largest ones; none keeps all.
    pub fn most_subjects(self) -> Option<usize> {
        let many = self.is_of_host() || matches!(self, Self::ThreadCpu | Self::FramesSent | Self::FramesReceived);
        many.then_some(8)
    }
}
