//! Entry points for `cargo xtask fuzz`.

/// Reads the extensions of an ICMP message.
pub fn icmp_extensions(bytes: &[u8]) {
    crate::icmp_extension::parse(bytes);
}

/// Reads a received ICMP echo reply, and an echo request that an ICMP error quotes.
pub fn raw_icmp(bytes: &[u8]) {
    crate::packets::fuzz_echo(bytes);
}
