//! Whether the kernel takes programs of ours.

use crate::Error;
use std::os::fd::{FromRawFd as _, OwnedFd};

/// The part of union bpf_attr (linux/bpf.h) that loads a program.
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// struct bpf_insn.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// What an XDP program says of a packet (enum xdp_action).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpAction {
    /// It is dropped.
    Drop = 1,
    /// It goes on.
    Pass = 2,
}

/// Lifts this process's limit of locked memory, as which programs and their maps count before Linux 5.11: for a process that
/// soon may do so no more. Best effort: newer kernels need none of it.
pub fn lift_memory_limit() {
    use nix::sys::resource::{RLIM_INFINITY, Resource, setrlimit};
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
}

/// Loads an XDP program that passes every packet, attaches it nowhere, and lets it go again.
pub fn try_loading() -> Result<(), Error> {
    load_constant(XdpAction::Pass).map(drop)
}

/// Loads an XDP program that says the same of every packet. See [`crate::netlink::Route::set_xdp`].
pub fn load_constant(action: XdpAction) -> Result<OwnedFd, Error> {
    const BPF_PROG_LOAD: libc::c_long = 5;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    // r0 = action; exit (Documentation/bpf/standardization/instruction-set.rst)
    let program = [
        Instruction { code: 0xb7, registers: 0, offset: 0, value: action as i32 },
        Instruction { code: 0x95, registers: 0, offset: 0, value: 0 },
    ];
    let load = ProgramLoad {
        kind: BPF_PROG_TYPE_XDP,
        instruction_count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        licence: c"GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: `load` is the beginning of a union bpf_attr of the size given; the program and the licence it points at
    // outlive the call, which keeps no pointer.
    let loaded = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, size_of::<ProgramLoad>()) };
    if loaded < 0 {
        return Err(Error::last("bpf(BPF_PROG_LOAD)", "an XDP program"));
    }
    // SAFETY: the call returned a new descriptor, which nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(loaded as i32) })
}
