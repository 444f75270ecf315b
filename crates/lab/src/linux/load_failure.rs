//! Why a program of the lab's could not be put into the kernel, in words that name it and the remedy.

use aya::EbpfError;
use aya::programs::ProgramError;
use linerate_sys::Error;
use std::error::Error as StdError;
use std::io;

/// The object lacks a part that this program knows by name: they do not belong together.
pub(crate) fn incomplete(name: &str) -> Error {
    Error::new("reading the BPF object", name, io::ErrorKind::NotFound)
}

/// A map could not be made or filled.
pub(crate) fn map_failed(name: &str, error: &(dyn StdError + 'static)) -> Error {
    Error::new("bpf(map)", name, cause(error))
}

/// The object of `what` could not be read, or its maps not be made.
pub(crate) fn object_failed(what: &'static str) -> impl Fn(EbpfError) -> Error {
    move |error| match error {
        EbpfError::MapError(error) => map_failed(&format!("{what}'s"), &error),
        other => Error::new("bpf(BPF_MAP_CREATE)", what, cause(&other)),
    }
}

/// The kernel refused the program of `what`.
pub(crate) fn program_failed(what: &'static str) -> impl Fn(ProgramError) -> Error {
    move |error| {
        if let ProgramError::LoadError { io_error, verifier_log } = error {
            let source = match io_error.kind() {
                io::ErrorKind::PermissionDenied => io::Error::new(
                    io_error.kind(),
                    "this user may not load BPF programs; run as root, or with CAP_BPF and CAP_NET_ADMIN",
                ),
                kind => io::Error::new(kind, format!("{io_error}: {verifier_log}")),
            };
            return Error::new("bpf(BPF_PROG_LOAD)", what, source);
        }
        Error::new("bpf(BPF_PROG_LOAD)", what, cause(&error))
    }
}

/// An error with all that led to it. The kernel's own word, if there is one, is the last.
fn cause(error: &(dyn StdError + 'static)) -> io::Error {
    let mut words = error.to_string();
    let mut kind = io::ErrorKind::Other;
    let mut next = error.source();
    while let Some(error) = next {
        kind = error.downcast_ref::<io::Error>().map_or(kind, io::Error::kind);
        words = format!("{words}: {error}");
        next = error.source();
    }
    let remedy = match kind {
        io::ErrorKind::PermissionDenied => "; run as root, or with CAP_BPF and CAP_NET_ADMIN",
        _ => "",
    };
    io::Error::new(kind, format!("{words}{remedy}"))
}
