//! Making a virtual link behave as an Ethernet of a set rate, and planting loss and policers on it.
//!
//! tc-tbf(8), tc-stab(8), tc-bpf(8); the numbers are those of linux/pkt_sched.h and linux/pkt_cls.h.

use crate::Error;
use crate::netlink::{Route, append, zero_ended};
use linerate_units::{BitRate, Ratio};
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use std::os::fd::{AsRawFd as _, BorrowedFd};

const RTM_NEWQDISC: u16 = 36;
const RTM_NEWTFILTER: u16 = 44;
const CREATE: u16 = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;

/// Where filters stand, the lowest first. What goes out passes filters before it may be lost on the wire, and what comes in
/// passes them after.
const BEFORE_WIRE: u32 = 1;
const ON_WIRE: u32 = 2;
const AFTER_WIRE: u32 = 100;

/// FCS (4), preamble and start delimiter (8) and gap (12): what a line carries besides the bytes a kernel counts
/// (IEEE 802.3 clauses 3.1.1 and 4.4.2).
const UNSEEN: u16 = 24;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// The smallest frame as a kernel counts it: 64 bytes without the FCS.
const SMALLEST: u16 = 60;
/// The length that stands for "more than one frame". A token bucket cuts what is longer than either of its bursts.
const TO_BE_CUT: u16 = u16::MAX;
/// A peak rate that nothing reaches, bytes a second: it is there for its burst, which is what packets are cut by, so that
/// the burst at the rate itself may be of any length.
const NO_PEAK: u64 = 1_000_000_000_000 / 8;

/// How an end of a link sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetShape {
    /// The line rate.
    pub rate: BitRate,
    /// The longest frame as a kernel counts it: MTU and Ethernet header.
    pub longest_frame: u16,
    /// What may leave back to back after a pause, in bytes as the line counts them.
    pub burst_bytes: u32,
    /// What may wait, in bytes as a kernel counts them; what comes on top is dropped.
    pub queue_bytes: u32,
}

/// Which way frames go through an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// They come in.
    In,
    /// They go out.
    Out,
}

impl Route {
    /// Puts a token bucket at the root of an interface, in place of another, that counts as the line does: every frame costs its length padded
    /// to the minimum, the FCS, the preamble and the gap, to the byte.
    ///
    /// The size table also makes what is longer than one frame (segmentation left to the device) look too long for the
    /// bucket, which then cuts it into frames and counts each. It does not see several segments that together are shorter
    /// than one frame: those pass for one.
    pub fn shape(&mut self, link: u32, shape: &EthernetShape) -> Result<(), Error> {
        const TCA_STAB: u16 = 8;
        const TCA_STAB_BASE: u16 = 1;
        const TCA_STAB_DATA: u16 = 2;
        const TCA_TBF_PARMS: u16 = 1;
        const TCA_TBF_RATE64: u16 = 4;
        const TCA_TBF_PRATE64: u16 = 5;
        const TCA_TBF_BURST: u16 = 6;
        const TCA_TBF_PBURST: u16 = 7;

        let sizes = size_table(shape.longest_frame);
        // struct tc_sizespec: one entry a byte (no logarithms), nothing added.
        let mut base = vec![0, 0, 0, 0, 0, 0, 0, 0];
        for field in [u32::from(TC_LINKLAYER_ETHERNET), 0, u32::from(shape.longest_frame), sizes.len() as u32] {
            base.extend_from_slice(&field.to_ne_bytes());
        }
        let mut table = Vec::new();
        append(&mut table, TCA_STAB_BASE, &base);
        append(&mut table, TCA_STAB_DATA, &sizes.iter().flat_map(|size| size.to_ne_bytes()).collect::<Vec<_>>());

        let bytes_per_second = (shape.rate.get() / 8).max(1);
        let peak = NO_PEAK.max(bytes_per_second.saturating_mul(2));
        let mut parameters = rate_specification(bytes_per_second);
        parameters.extend_from_slice(&rate_specification(peak));
        parameters.extend_from_slice(&shape.queue_bytes.to_ne_bytes());
        // Burst and MTU are given otherwise.
        parameters.extend_from_slice(&[0; 8]);
        let mut options = Vec::new();
        append(&mut options, TCA_TBF_PARMS, &parameters);
        append(&mut options, TCA_TBF_RATE64, &bytes_per_second.to_ne_bytes());
        append(&mut options, TCA_TBF_PRATE64, &peak.to_ne_bytes());
        append(&mut options, TCA_TBF_BURST, &shape.burst_bytes.to_ne_bytes());
        append(&mut options, TCA_TBF_PBURST, &u32::from(TO_BE_CUT - 1).to_ne_bytes());

        const TC_H_ROOT: u32 = u32::MAX;
        let mut body = traffic_control(link, 1 << 16, TC_H_ROOT, 0);
        append(&mut body, TCA_KIND, &zero_ended("tbf"));
        append(&mut body, TCA_STAB, &table);
        append(&mut body, TCA_OPTIONS, &options);
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        self.ask("RTM_NEWQDISC", format!("tbf on interface {link}"), RTM_NEWQDISC, flags, &body, |_| Some(()))
    }

    /// Drops frames of an interface by chance, each on its own: `faults` gives a ratio for each way. What it dropped is
    /// counted by the interface's `clsact` discipline.
    pub fn drop_by_chance(&mut self, link: u32, faults: &[(Way, Ratio)]) -> Result<(), Error> {
        for (priority, (way, ratio)) in (ON_WIRE..AFTER_WIRE).zip(faults) {
            let program = drop_program(*ratio);
            let mut options = Vec::new();
            append(&mut options, TCA_BPF_OPS_LEN, &((program.len() / 8) as u16).to_ne_bytes());
            append(&mut options, TCA_BPF_OPS, &program);
            self.filter(link, *way, priority, options)?;
        }
        Ok(())
    }

    /// Lets `program` say of each frame that goes that way through an interface whether it may: one that it does not drop must go
    /// on to the next filter (TC_ACT_UNSPEC). It stays for as long as the interface does; what it dropped is counted by the
    /// interface's `clsact` discipline.
    pub fn filter_by(&mut self, link: u32, way: Way, program: BorrowedFd<'_>) -> Result<(), Error> {
        const TCA_BPF_FD: u16 = 6;
        let mut options = Vec::new();
        append(&mut options, TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes());
        let priority = match way {
            Way::In => AFTER_WIRE,
            Way::Out => BEFORE_WIRE,
        };
        self.filter(link, way, priority, options)
    }

    /// Puts a program in the way of the frames of an interface, ahead of those of a higher `priority`.
    fn filter(&mut self, link: u32, way: Way, priority: u32, mut options: Vec<u8>) -> Result<(), Error> {
        const TC_H_CLSACT: u32 = 0xffff_fff1;
        const TC_H_INGRESS_HOOK: u32 = 0xffff_fff2;
        const TC_H_EGRESS_HOOK: u32 = 0xffff_fff3;
        const ETH_P_ALL: u16 = 3;

        // It may be there already.
        let mut body = traffic_control(link, 0xffff_0000, TC_H_CLSACT, 0);
        append(&mut body, TCA_KIND, &zero_ended("clsact"));
        let object = format!("clsact on interface {link}");
        self.ask("RTM_NEWQDISC", object, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE, &body, |_| Some(()))?;

        append(&mut options, TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes());
        let hook = match way {
            Way::In => TC_H_INGRESS_HOOK,
            Way::Out => TC_H_EGRESS_HOOK,
        };
        let mut body = traffic_control(link, 0, hook, priority << 16 | u32::from(ETH_P_ALL.to_be()));
        append(&mut body, TCA_KIND, &zero_ended("bpf"));
        append(&mut body, TCA_OPTIONS, &options);
        let object = format!("bpf filter on interface {link}");
        self.ask("RTM_NEWTFILTER", object, RTM_NEWTFILTER, CREATE, &body, |_| Some(()))
    }
}

/// struct tc_ratespec: the kernel adds the overhead to each length that the size table gives.
fn rate_specification(bytes_per_second: u64) -> Vec<u8> {
    let mut specification = vec![0, TC_LINKLAYER_ETHERNET];
    specification.extend_from_slice(&UNSEEN.to_ne_bytes());
    specification.extend_from_slice(&[0, 0]);
    specification.extend_from_slice(&(SMALLEST + UNSEEN).to_ne_bytes());
    specification.extend_from_slice(&u32::try_from(bytes_per_second).unwrap_or(u32::MAX).to_ne_bytes());
    specification
}

/// struct tcmsg.
fn traffic_control(link: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    for field in [link, handle, parent, info] {
        body.extend_from_slice(&field.to_ne_bytes());
    }
    body
}

/// The length to count for each length up to the longest frame; the last entry multiplies beyond it.
fn size_table(longest_frame: u16) -> Vec<u16> {
    (0..=longest_frame).map(|length| length.max(SMALLEST)).chain([TO_BE_CUT]).collect()
}

/// Classic BPF (bpf(4) of BSD; Documentation/networking/filter.rst), which needs no privilege of its own: loads a random
/// number of 32 bits and drops if it lies below the ratio's share of 2^32. The answer is a tc action; what stays goes on to the
/// next filter.
fn drop_program(ratio: Ratio) -> Vec<u8> {
    /// BPF_LD | BPF_W | BPF_ABS at SKF_AD_OFF + SKF_AD_RANDOM.
    const LOAD_RANDOM: (u16, u8, u8, u32) = (0x20, 0, 0, (-0x1000_i32 + 56) as u32);
    /// BPF_RET | BPF_K.
    const RETURN: u16 = 0x06;
    /// BPF_JMP | BPF_JGE | BPF_K.
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const TC_ACT_UNSPEC: u32 = u32::MAX;
    const TC_ACT_SHOT: u32 = 2;

    let (part, of) = (u128::from(ratio.part), u128::from(ratio.of.max(1)));
    let steps = match u32::try_from(((part << 32) + of / 2) / of) {
        Ok(threshold) => vec![
            LOAD_RANDOM,
            (JUMP_IF_AT_LEAST, 1, 0, threshold),
            (RETURN, 0, 0, TC_ACT_SHOT),
            (RETURN, 0, 0, TC_ACT_UNSPEC),
        ],
        // All of them.
        Err(_) => vec![(RETURN, 0, 0, TC_ACT_SHOT)],
    };
    let mut program = Vec::new();
    for (code, on_true, on_false, operand) in steps {
        program.extend_from_slice(&code.to_ne_bytes());
        program.extend_from_slice(&[on_true, on_false]);
        program.extend_from_slice(&operand.to_ne_bytes());
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_table_pads_passes_and_marks() {
        let sizes = size_table(1514);
        assert_eq!(sizes.len(), 1516);
        assert_eq!((sizes[0], sizes[59], sizes[60], sizes[61], sizes[1514]), (60, 60, 60, 61, 1514));
        assert_eq!(sizes[1515], TO_BE_CUT);
    }

    #[test]
    fn the_threshold_is_the_ratio_of_two_to_the_32() {
        let threshold = |ratio| u32::from_ne_bytes(drop_program(ratio)[12..16].try_into().expect("four bytes"));
        assert_eq!(threshold(Ratio::new(1, 2)), 1 << 31);
        assert_eq!(threshold(Ratio::new(1, 100)), 42_949_673);
        assert_eq!(threshold(Ratio::new(0, 1)), 0);
        assert_eq!(drop_program(Ratio::new(3, 3)).len(), 8);
    }
}
