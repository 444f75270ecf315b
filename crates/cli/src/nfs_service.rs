//! What an agent's NFS server serves in trials, and how slow it is made.

use crate::exit::Failure;
use linerate_agent::{Budget, NfsService, ServiceTime};
use linerate_units::{ByteCount, Nanos};
use std::path::PathBuf;

/// The options of the embedded NFS server. Only the trial's own hosts can reach it.
#[derive(Debug, clap::Args)]
pub(crate) struct NfsOptions {
    /// Let trials of NFS work in this directory, and see all that is in it [default: in memory, empty for each trial]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    nfs_directory: Option<PathBuf>,

    /// Most memory that the files of one trial of NFS may take [default: 1GiB, or half of --max-memory if that is less]
    #[arg(long, value_name = "SIZE", conflicts_with = "nfs_directory", hide_short_help = true)]
    nfs_memory: Option<ByteCount>,

    /// A planted limit: what each call takes
    #[arg(long, value_name = "TIME", hide = true)]
    nfs_service_time: Option<Nanos>,

    /// A planted limit: what a WRITE or COMMIT takes instead
    #[arg(long, value_name = "TIME", hide = true)]
    nfs_write_time: Option<Nanos>,

    /// How many calls are served at a time where they take a set time
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u16).range(1..))]
    nfs_at_once: Option<u16>,
}

impl NfsOptions {
    /// The service asked for within `budget`, if it can be given.
    pub(crate) fn service(&self, budget: &Budget) -> Result<NfsService, Failure> {
        let service = NfsService {
            directory: self.nfs_directory.clone(),
            memory: self.nfs_memory.unwrap_or_else(|| budget.nfs_memory()),
            time: ServiceTime {
                call: self.nfs_service_time.unwrap_or_default(),
                write: self.nfs_write_time,
                at_once: self.nfs_at_once,
            },
        };
        service.check().map_err(Failure::usage)?;
        Ok(service)
    }
}
