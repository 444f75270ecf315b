//! Pinning threads to cores.
