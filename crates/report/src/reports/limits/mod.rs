//! Capacity of media: calculated, nothing measured.

pub mod buses;
mod chart;
mod claim;
mod explanation;
mod outputs;
mod tables;

pub use outputs::{csv, html, json, markdown, svg, text};

use crate::figures::prefix;
use crate::language::Language;
use crate::said;
use linerate_model::{BadStack, Carried, IpVersion, Layer, Medium, Stack, Transport};
use linerate_units::{BitRate, grouped};

/// Question about media, and its answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Each stack with each message, stack by stack.
    pub cells: Vec<LimitCell>,
    /// Sizes were not chosen: an overview of payload by stack says most.
    pub overview: bool,
    /// Say each byte of each packet.
    pub explain: bool,
    /// A rate to hold against the limits.
    pub claim: Option<BitRate>,
    /// Media that were not asked for by name and are not among the cells, and why.
    pub left_out: Option<String>,
}

/// A stack and messages of one size over it.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitCell {
    stack: Stack,
    transport: Transport,
    /// TCP: of a full segment.
    message_bytes: u64,
    carried: Carried,
}

impl LimitCell {
    /// UDP messages of this size.
    pub fn udp(stack: &Stack, message_bytes: u64) -> Result<Self, BadStack> {
        let carried = stack.carried(Transport::Udp, message_bytes)?;
        Ok(Self { stack: stack.clone(), transport: Transport::Udp, message_bytes, carried })
    }

    /// TCP in full segments.
    pub fn tcp(stack: &Stack) -> Result<Self, BadStack> {
        let message_bytes = u64::from(stack.segment()?);
        let carried = stack.carried(Transport::Tcp, message_bytes)?;
        Ok(Self { stack: stack.clone(), transport: Transport::Tcp, message_bytes, carried })
    }

    /// Content that is carried.
    pub fn carried(&self) -> &Carried {
        &self.carried
    }

    /// `UDP 64`, `TCP`.
    fn load(&self, lang: Language) -> String {
        match self.transport {
            Transport::Udp => said!(lang, "limits-udp", "UDP {message_bytes}", message_bytes = self.message_bytes),
            Transport::Tcp => "TCP".to_owned(),
        }
    }
}

impl Limits {
    /// Whether the claim, if there is one, is possible as payload in every cell.
    pub fn claim_holds(&self) -> bool {
        self.claim.is_none_or(|claim| self.cells.iter().all(|cell| cell.carried.allows(Layer::Payload, claim)))
    }

    /// The cells of each stack.
    fn stacks(&self) -> impl Iterator<Item = &[LimitCell]> {
        self.cells.chunk_by(|one, next| one.stack == next.stack)
    }

    fn is_one_stack(&self) -> bool {
        self.stacks().count() == 1
    }

    /// A cell's name among the others.
    fn name(&self, lang: Language, cell: &LimitCell) -> String {
        if self.is_one_stack() { cell.load(lang) } else { format!("{}, {}", name(&cell.stack), cell.load(lang)) }
    }

    /// Returns sentences on how it was counted.
    fn counted(&self, lang: Language) -> Vec<String> {
        let Some(first) = self.cells.first() else { return Vec::new() };
        let mut sentences = vec![said!(
            lang,
            "limits-note-calculated",
            "Calculated, not measured: one direction, no other traffic, no loss."
        )];
        let any = |transport| self.cells.iter().any(|cell| cell.transport == transport);
        if any(Transport::Udp) {
            sentences.push(said!(
                lang,
                "limits-note-udp",
                "UDP: message sizes are bytes of payload; messages above the MTU travel in fragments."
            ));
        }
        if any(Transport::Tcp) {
            let timestamps = if first.stack.tcp_timestamps {
                said!(lang, "limits-with-timestamps", "with")
            } else {
                said!(lang, "limits-without-timestamps", "without")
            };
            sentences.push(if first.stack.half_duplex {
                said!(
                    lang,
                    "limits-note-half-duplex",
                    "TCP: full segments, {timestamps} timestamps, on a shared medium: an acknowledgement follows every \
                     two segments (RFC 9293 section 3.8.6.3). Collisions are not counted.",
                    timestamps = timestamps
                )
            } else {
                said!(
                    lang,
                    "limits-note-tcp",
                    "TCP: full segments, {timestamps} timestamps; acknowledgements go the other way.",
                    timestamps = timestamps
                )
            });
        }
        if self.cells.iter().any(|cell| cell.carried.cells().is_some()) {
            sentences.push(said!(
                lang,
                "limits-note-atm",
                "ATM: layer 2 with FCS is the AAL5 PDU; the wire is the cells, which have 26 of every 27 bits of the \
                 line."
            ));
        }
        if self.cells.iter().any(|cell| cell.stack.medium == Medium::Fddi) {
            sentences.push(said!(
                lang,
                "limits-note-fddi",
                "FDDI: the time for the token to come round is not counted."
            ));
        }
        sentences.extend(self.left_out.clone());
        sentences
    }

    /// `IPv4`, and what tunnels travel over where that differs.
    fn ip(&self, lang: Language) -> String {
        let Some(LimitCell { stack, .. }) = self.cells.first() else { return String::new() };
        let version = |ip| if ip == IpVersion::V4 { "IPv4" } else { "IPv6" };
        let tunnels = self.cells.iter().flat_map(|cell| &cell.stack.over).any(|over| over.is_over_ip());
        if tunnels && stack.ip != stack.outer_ip {
            said!(
                lang,
                "limits-tunnels",
                "{ip}, tunnels over {outer_ip}",
                ip = version(stack.ip),
                outer_ip = version(stack.outer_ip)
            )
        } else {
            version(stack.ip).to_owned()
        }
    }
}

/// `100BASE-TX + vlan + vxlan`.
fn name(stack: &Stack) -> String {
    stack.over.iter().fold(stack.medium.to_string(), |name, over| format!("{name} + {over}"))
}

/// The MTU a stack has: `MTU 1,500 (1,450 inside)`.
fn mtu(lang: Language, cell: &LimitCell) -> String {
    let mtu = cell.stack.mtu.unwrap_or(cell.stack.medium.mtu());
    let inner = cell.carried.inner_mtu;
    let inside = if inner == mtu {
        String::new()
    } else {
        said!(lang, "limits-mtu-inside", " ({inner} inside)", inner = grouped(u64::from(inner)))
    };
    said!(lang, "limits-mtu", "MTU {mtu}{inside}", mtu = grouped(u64::from(mtu)), inside = inside)
}

/// Returns a rate with `digits` significant digits: `129.98 Mbit/s`.
fn bits(rate: BitRate, digits: usize) -> String {
    let (step, prefix) = prefix(rate.get() as f64);
    format!("{} {prefix}bit/s", significant(rate.get() as f64 / step, digits))
}

/// Returns `value`, which has a digit before its point, with `digits` significant digits.
fn significant(value: f64, digits: usize) -> String {
    let whole = (value as u64).to_string().len();
    format!("{value:.*}", digits.saturating_sub(whole))
}
