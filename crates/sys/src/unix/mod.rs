//! What Linux, macOS and FreeBSD have alike.

pub mod byte_lock;
pub mod clock;
pub mod descriptors;
pub mod echo_requests;
pub mod file_identity;
pub mod file_system;
pub mod folder;
pub mod handle;
pub mod held_file;
pub(crate) mod host;
pub mod inherited;
pub mod interrupt;
pub(crate) mod poll;
pub mod private;
pub(crate) mod socket_option;
pub(crate) mod stream;
pub mod terminal;
pub(crate) mod usage;
pub mod user;

pub use held_file::HeldFile;
