//! Entry points for `cargo xtask fuzz`.

/// Reads the extensions of an ICMP message.
pub fn icmp_extensions(bytes: &[u8]) {
    crate::icmp_extension::parse(bytes);
}
