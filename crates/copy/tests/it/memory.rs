//! A tree is never held: ten times the files take no more memory.

use crate::pair::{OPTIONS, alone, folder, made};
use linerate_model::{CopyFrom, CopyInto, CopyTree};
use std::fs;
use std::process::Command;
use tempfile::{tempdir, tempdir_in};

/// What the process may take more for 36,000 files more, bytes: a path held for each would be some 100 bytes, with what
/// belongs to it.
const MORE: u64 = 3 << 19;

/// Resident memory at its peak since the last time this was asked, bytes (proc_pid_status(5), `VmHWM`).
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    // proc_pid_clear_refs(5): from here on anew.
    fs::write("/proc/self/clear_refs", "5").expect("a process may do that to itself");
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
}

/// Tells the program of this test to measure.
const CHILD: &str = "LINERATE_TEST_MEMORY";

/// In a program of its own, for the peak is the process's, and other tests run in this one.
#[test]
fn a_tree_of_ten_times_the_files_takes_no_more_memory() {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "memory::the_copying_program", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// What the test above starts; nothing by itself.
#[test]
fn the_copying_program() {
    if std::env::var_os(CHILD).is_some() {
        ten_times_the_files_take_no_more_memory();
    }
}

fn ten_times_the_files_take_no_more_memory() {
    let peaks = [400, 4_000, 40_000].map(|files| {
        // Where there is storage in memory, no disk is waited for; it is not the process's own.
        let [tree, copy] = [(); 2].map(|()| tempdir_in("/dev/shm").or_else(|_| tempdir()).expect("a folder"));
        let made = made(&format!("files={files},folders=20,bytes=0"));
        peak();
        let written = alone(OPTIONS, made, CopyFrom::Memory, CopyInto::Folder(folder(tree.path()))).expect("copied");
        let source = CopyTree::Folder(folder(tree.path()));
        let copied = alone(OPTIONS, source, CopyFrom::Files, CopyInto::Folder(folder(copy.path()))).expect("copied");
        assert_eq!((written.sides[0].files, copied.sides[0].files), (files, files));
        peak()
    });
    let [_, some, many] = peaks;
    assert!(many < some + MORE, "{some} bytes for 4,000 files, {many} for 40,000");
}
