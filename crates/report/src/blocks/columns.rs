//! Columns that several tables have.

use super::table::Column;
use crate::column;

pub const ALL_ELSE: Column = column!("column-all-else", "all else", "the levels of the other factors");
pub const AT: Column = column!("column-at", "at", "frames sent a second, all directions together");
pub const BYTES: Column = column!("column-bytes", "bytes", "bytes of them");
pub const BYTES_S: Column = column!("column-bytes-s", "bytes/s", "bytes of file content a second, until it was done");
pub const CELL: Column = column!("column-cell", "cell", "the levels of all factors");
pub const CHARTS_PAYLOAD: Column =
    column!("column-charts-payload", "payload", "payload at the receiver, median of the runs");
pub const DEVICE_CPU: Column = column!(
    "column-device-cpu",
    "device CPU",
    "busy share of the device's CPUs together, and of its busiest, at that rate"
);
pub const DEVICE_LONGEST: Column = column!("column-device-longest", "longest", "the slowest frame");
pub const DEVICE_LOSES_AT: Column =
    column!("column-device-loses-at", "loses at", "the lowest rate at which frames were lost");
pub const DEVICE_LOST_2: Column =
    column!("column-device-lost-2", "lost", "share of the frames sent that did not arrive");
pub const DEVICE_OFFERED_SHARE: Column = column!(
    "column-device-offered-share",
    "offered",
    "share of its load that the tester offered in the trial that was to decide, where the figure is not firm"
);
pub const DEVICE_SHORTEST: Column = column!("column-device-shortest", "shortest", "the quickest frame");
pub const FIGURE: Column = column!("column-figure", "figure", "what is compared");
pub const FORWARDING_RATE: Column = column!("column-fr", "FR", "forwarding rate, frames/s");
pub const FRAME: Column = column!("column-frame", "frame", "bytes of a frame, FCS counted");
pub const FRAME_B: Column = column!("column-frame-b", "frame, B", "bytes of a frame, FCS counted");
pub const FRAME_P50: Column = column!("column-frame-p50", "p50", "median latency");
pub const FRAME_P99: Column = column!("column-frame-p99", "p99", "99th percentile");
pub const FRAME_P999: Column = column!("column-frame-p999", "p99.9", "99.9th percentile");
pub const FRMOL: Column =
    column!("column-frmol", "FRMOL", "forwarding rate at the maximum offered load, frames/s (RFC 2285 section 3.6.2)");
pub const IN_FRAMES: Column = column!("column-in-frames", "in frames", "frames that the buffer holds");
pub const LIMIT: Column = column!("column-limit", "limit", "what limited the rate");
pub const LONGEST_BURST: Column =
    column!("column-longest-burst", "longest burst", "frames in a row that all came back, mean of the searches");
pub const MEDIUM: Column =
    column!("column-medium", "medium", "the medium, and what it carries packets over, outermost first");
pub const MFR: Column = column!("column-mfr", "MFR", "maximum forwarding rate, frames/s (RFC 2285 section 3.6.3)");
pub const MOL: Column = column!("column-mol", "MOL", "maximum offered load that the lines allow, frames/s");
pub const OF_LINE: Column = column!("column-of-line", "of line", "share of what the lines of all directions carry");
pub const OF_TESTER: Column =
    column!("column-of-tester", "of tester", "share of what the tester reaches without the device");
pub const OLOAD: Column = column!("column-oload", "Oload", "offered load, frames/s");
pub const OVER_TIME_RUN: Column = column!("column-over-time-run", "run", "the run, and what its line shows");
pub const P50: Column = column!("column-p50", "p50", "median response time");
pub const P90: Column = column!("column-p90", "p90", "90th percentile of the response time");
pub const P99: Column = column!("column-p99", "p99", "99th percentile of the response time");
pub const P999: Column = column!("column-p999", "p99.9", "99.9th percentile of the response time");
pub const REORDERED: Column =
    column!("column-reordered", "reordered", "frames that arrived after one with a higher number");
pub const RESULT: Column = column!("column-result", "result", "name of the result");
pub const RUNS_HIGHEST: Column = column!("column-runs-highest", "highest run", "the highest of the runs");
pub const RUNS_LOWEST: Column = column!("column-runs-lowest", "lowest run", "the lowest of the runs");
pub const SENT: Column = column!("column-sent", "sent", "frames sent");
pub const SPREAD: Column = column!("column-spread", "spread", "highest less lowest run, as a share of the median");
pub const STREAM: Column = column!("column-stream", "stream", "name of the result");
pub const TABLES_LOST: Column =
    column!("column-tables-lost", "lost", "datagrams lost, of those offered, over all runs");
pub const TABLES_OF_LINK: Column =
    column!("column-tables-of-link", "of link", "share of what the link can carry in such messages");
pub const TABLES_PER_SECOND: Column =
    column!("column-tables-per-second", "per second", "transactions completed a second, median of the runs");
pub const TESTER: Column = column!("column-tester", "tester", "what the tester reaches without the device");
pub const TIMED_TRANSACTION: Column = column!("column-timed-transaction", "transaction", "what was timed");
