//! Folder trees: made, read, sent, written and verified, with the time each stage takes.
//!
//! A copy is a pipeline, each stage a thread with a short queue to the next: list, open, read, hash, send on the
//! reading end, receive, verify, create, write, sync on the writing end. What flows is blocks (`block`), which hold
//! many small files or a part of a large one. Several lanes side by side share one list. Where all storage is this
//! host's, a lane is one thread (`lane`). The ways (`ways`) differ in what is between the two ends: a TCP connection
//! for each lane, or nothing.
//!
//! A copy keeps three rules. A file has its final name only when it is whole and was verified as asked. Nothing outside
//! the opened folder is read or written, whatever the tree or the other end holds. Memory does not grow with the tree:
//! all but the last names and times of its folders wait in a file of the destination.
//!
//! Copied are files, folders and symbolic links with permissions and times of change, and holes of sparse files. Not
//! copied: owners, further attributes, devices and the like, and that two names are one file.

mod allowed_folders;
mod block;
mod cache;
mod connection;
mod control;
mod destination;
mod engine;
mod entry;
mod error;
mod folders;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod lane;
mod part;
mod pipeline;
mod prepare;
mod progress;
mod removal;
mod role;
mod scratch;
mod side;
mod source;
mod stage;
mod stage_meter;
mod storage;
mod tree;
mod tree_path;
mod ways;

pub use allowed_folders::AllowedFolders;
pub use cache::hold_cache_dropping;
pub use engine::Copy;

use control::Control;
use error::CopyError;
