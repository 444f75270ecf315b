//! A rule of nftables that drops packets above a rate.
//!
//! The numbers are those of linux/netfilter/nfnetlink.h and linux/netfilter/nf_tables.h; nftables wants all of them in network
//! byte order.

use crate::Error;
use crate::netlink::{append, zero_ended};
use linerate_units::FrameRate;
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NLMSG_ERROR, NetlinkBuffer};
use rtnetlink::sys::{Socket, protocols::NETLINK_NETFILTER};
use std::io;

/// The table and the chain of the rule.
const TABLE: &str = "linerate";
const CHAIN: &str = "input";

const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFT_MSG_NEWTABLE: u16 = NFNL_SUBSYS_NFTABLES << 8;
const NFT_MSG_NEWCHAIN: u16 = NFT_MSG_NEWTABLE | 3;
const NFT_MSG_NEWRULE: u16 = NFT_MSG_NEWTABLE | 6;
/// IPv4 and IPv6 in one table.
const NFPROTO_INET: u8 = 1;
const NLA_F_NESTED: u16 = 1 << 15;

/// Drops, and counts, the packets to this host itself above a rate, `burst` of them back to back, in the calling thread's
/// network namespace: `limit rate over RATE/second burst BURST packets counter drop` in the chain `input`.
///
/// # Errors
/// Names the call that the kernel refused: without CAP_NET_ADMIN, without nftables, or where the rule is there already.
pub fn drop_above(rate: FrameRate, burst: u32) -> Result<(), Error> {
    let failed = |call: &'static str| move |error| Error::new(call, format!("table inet {TABLE}"), error);
    let socket = Socket::new(NETLINK_NETFILTER).map_err(failed("socket(NETLINK_NETFILTER)"))?;
    let new = NLM_F_CREATE | NLM_F_EXCL;
    let messages = [
        (NFNL_MSG_BATCH_BEGIN, 0, Vec::new()),
        (NFT_MSG_NEWTABLE, new, table()),
        (NFT_MSG_NEWCHAIN, new, chain()),
        (NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_ACK, rule(rate, burst)),
        (NFNL_MSG_BATCH_END, 0, Vec::new()),
    ];
    let acknowledged = messages.iter().position(|(kind, ..)| *kind == NFT_MSG_NEWRULE).unwrap_or_default() as u32;
    let batch: Vec<u8> = (0..).zip(&messages).flat_map(|(sequence, message)| framed(sequence, message)).collect();
    socket.send(&batch, 0).map_err(failed("send(NFT_MSG_NEWRULE)"))?;
    loop {
        let mut answer = Vec::with_capacity(4096);
        socket.recv(&mut answer, 0).map_err(failed("recv(NFT_MSG_NEWRULE)"))?;
        let malformed = || failed("NFT_MSG_NEWRULE")(io::ErrorKind::InvalidData.into());
        let message = NetlinkBuffer::new_checked(answer.as_slice()).map_err(|_| malformed())?;
        if message.message_type() != NLMSG_ERROR {
            continue;
        }
        let number = message.payload().get(..4).and_then(|number| number.try_into().ok()).map(i32::from_ne_bytes);
        match number.ok_or_else(malformed)? {
            0 if message.sequence_number() == acknowledged => return Ok(()),
            0 => {}
            number => return Err(failed("NFT_MSG_NEWRULE")(io::Error::from_raw_os_error(-number))),
        }
    }
}

/// A message of a batch with its headers: struct nlmsghdr, struct nfgenmsg.
fn framed(sequence: u32, (kind, flags, attributes): &(u16, u16, Vec<u8>)) -> Vec<u8> {
    let (family, subsystem) = match *kind {
        NFNL_MSG_BATCH_BEGIN | NFNL_MSG_BATCH_END => (0, NFNL_SUBSYS_NFTABLES),
        _ => (NFPROTO_INET, 0),
    };
    let mut message = vec![0; 16];
    message.extend_from_slice(&[family, 0]);
    message.extend_from_slice(&subsystem.to_be_bytes());
    message.extend_from_slice(attributes);
    let length = message.len() as u32;
    let mut header = NetlinkBuffer::new(&mut message);
    header.set_length(length);
    header.set_message_type(*kind);
    header.set_flags(NLM_F_REQUEST | flags);
    header.set_sequence_number(sequence);
    message
}

fn table() -> Vec<u8> {
    const NFTA_TABLE_NAME: u16 = 1;
    let mut body = Vec::new();
    append(&mut body, NFTA_TABLE_NAME, &zero_ended(TABLE));
    body
}

fn chain() -> Vec<u8> {
    const NFTA_CHAIN_TABLE: u16 = 1;
    const NFTA_CHAIN_NAME: u16 = 3;
    const NFTA_CHAIN_HOOK: u16 = 4;
    const NFTA_CHAIN_TYPE: u16 = 7;
    const NFTA_HOOK_HOOKNUM: u16 = 1;
    const NFTA_HOOK_PRIORITY: u16 = 2;
    const NF_INET_LOCAL_IN: u32 = 1;
    let mut hook = Vec::new();
    append(&mut hook, NFTA_HOOK_HOOKNUM, &NF_INET_LOCAL_IN.to_be_bytes());
    append(&mut hook, NFTA_HOOK_PRIORITY, &0i32.to_be_bytes());
    let mut body = Vec::new();
    append(&mut body, NFTA_CHAIN_TABLE, &zero_ended(TABLE));
    append(&mut body, NFTA_CHAIN_NAME, &zero_ended(CHAIN));
    append(&mut body, NLA_F_NESTED | NFTA_CHAIN_HOOK, &hook);
    append(&mut body, NFTA_CHAIN_TYPE, &zero_ended("filter"));
    body
}

fn rule(rate: FrameRate, burst: u32) -> Vec<u8> {
    const NFTA_RULE_TABLE: u16 = 1;
    const NFTA_RULE_CHAIN: u16 = 2;
    const NFTA_RULE_EXPRESSIONS: u16 = 4;
    const NFTA_LIMIT_RATE: u16 = 1;
    const NFTA_LIMIT_UNIT: u16 = 2;
    const NFTA_LIMIT_BURST: u16 = 3;
    const NFTA_LIMIT_TYPE: u16 = 4;
    const NFTA_LIMIT_FLAGS: u16 = 5;
    const NFT_LIMIT_PKTS: u32 = 0;
    const NFT_LIMIT_F_INV: u32 = 1;
    const NFTA_IMMEDIATE_DREG: u16 = 1;
    const NFTA_IMMEDIATE_DATA: u16 = 2;
    const NFT_REG_VERDICT: u32 = 0;
    const NFTA_DATA_VERDICT: u16 = 2;
    const NFTA_VERDICT_CODE: u16 = 1;
    const NF_DROP: u32 = 0;
    const SECOND: u64 = 1;

    let mut limit = Vec::new();
    append(&mut limit, NFTA_LIMIT_RATE, &rate.get().to_be_bytes());
    append(&mut limit, NFTA_LIMIT_UNIT, &SECOND.to_be_bytes());
    append(&mut limit, NFTA_LIMIT_BURST, &burst.to_be_bytes());
    append(&mut limit, NFTA_LIMIT_TYPE, &NFT_LIMIT_PKTS.to_be_bytes());
    append(&mut limit, NFTA_LIMIT_FLAGS, &NFT_LIMIT_F_INV.to_be_bytes());

    let mut code = Vec::new();
    append(&mut code, NFTA_VERDICT_CODE, &NF_DROP.to_be_bytes());
    let mut verdict = Vec::new();
    append(&mut verdict, NLA_F_NESTED | NFTA_DATA_VERDICT, &code);
    let mut drop = Vec::new();
    append(&mut drop, NFTA_IMMEDIATE_DREG, &NFT_REG_VERDICT.to_be_bytes());
    append(&mut drop, NLA_F_NESTED | NFTA_IMMEDIATE_DATA, &verdict);

    let mut expressions = Vec::new();
    for (name, data) in [("limit", limit), ("counter", Vec::new()), ("immediate", drop)] {
        expression(&mut expressions, name, &data);
    }
    let mut body = Vec::new();
    append(&mut body, NFTA_RULE_TABLE, &zero_ended(TABLE));
    append(&mut body, NFTA_RULE_CHAIN, &zero_ended(CHAIN));
    append(&mut body, NLA_F_NESTED | NFTA_RULE_EXPRESSIONS, &expressions);
    body
}

/// Adds an expression to a list of them.
fn expression(list: &mut Vec<u8>, name: &str, data: &[u8]) {
    const NFTA_LIST_ELEM: u16 = 1;
    const NFTA_EXPR_NAME: u16 = 1;
    const NFTA_EXPR_DATA: u16 = 2;
    let mut element = Vec::new();
    append(&mut element, NFTA_EXPR_NAME, &zero_ended(name));
    append(&mut element, NLA_F_NESTED | NFTA_EXPR_DATA, data);
    append(list, NLA_F_NESTED | NFTA_LIST_ELEM, &element);
}
