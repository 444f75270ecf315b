//! Entry points for fuzzing: what a device answers.

/// Reads a datagram as the answer of a device.
pub fn snmp_answer(bytes: &[u8]) {
    crate::snmp::read_answer(bytes);
}
