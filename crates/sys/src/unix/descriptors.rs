//! How many files and sockets this process may have open at a time (RLIMIT_NOFILE, getrlimit(2)).

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// Descriptors that are enough for any trial. Programs that close all they could have open would take long with more. macOS refuses to
/// raise the limit beyond its OPEN_MAX.
const ENOUGH: rlim_t = if cfg!(target_os = "macos") { 10_240 } else { 1 << 16 };

/// Returns how many descriptors this process may have after [`raise_limit`]: its hard limit, 65,536 at the most (10,240 on macOS). `None` if the
/// kernel does not tell.
#[allow(clippy::unnecessary_cast, reason = "rlim_t of FreeBSD has a sign")]
pub fn most() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, hard)| hard.min(ENOUGH) as u64)
}

/// Raises the limit of this process as far as [`most`], which needs no privilege. Systems start programs with a limit of 1,024,
/// because select(2) takes no descriptors above it. Best effort: with a lower limit, what opens too many names the error.
pub fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = hard.min(ENOUGH);
        if soft < wanted {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
        }
    }
}
