//! Every target reads its corpus, and mutations of it that are the same on each run. What `cargo xtask fuzz` has found
//! once is found here ever after.

use linerate_fuzz::{TARGETS, Target};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// The files of a target's corpus, in the order of their names.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let read = |error| panic!("{}: {error}; each target has a corpus", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(read)
        .map(|entry| entry.expect("the folder can be listed").path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file of the corpus can be read")).collect()
}

/// Numbers without a pattern, the same on each run (xorshift64, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    /// An input of the corpus, changed in one to four places.
    fn mutation(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(4) {
            let at = self.below(input.len());
            match self.below(6) {
                _ if input.is_empty() => input.push(self.below(256) as u8),
                0 => input[at] ^= 1 << self.below(8),
                1 => input[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                2 => drop(input.drain(at..(at + 1 + self.below(8)).min(input.len()))),
                3 => input.truncate(at),
                4 => input.insert(at, self.below(256) as u8),
                _ => {
                    let other = &corpus[self.below(corpus.len())];
                    input.truncate(at);
                    input.extend_from_slice(&other[self.below(other.len())..]);
                }
            }
        }
        input
    }
}

/// Reads one input. A panic leaves the input in a file, whose name is said.
fn read(target: &Target, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        let file = std::env::temp_dir().join(format!("linerate-fuzz-{}", target.name));
        fs::write(&file, input).expect("the folder for temporary files takes one");
        eprintln!("target `{}` fails on the input in {}", target.name, file.display());
        resume_unwind(panic);
    }
}

fn replay(targets: &[Target]) {
    for target in targets {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "target `{}` has no corpus", target.name);
        corpus.iter().for_each(|input| read(target, input));
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        (0..target.mutations).for_each(|_| read(target, &numbers.mutation(&corpus)));
    }
}

// Two tests, so that two cores are used.

#[test]
fn no_input_makes_a_parser_of_the_first_half_panic() {
    replay(&TARGETS[..TARGETS.len() / 2]);
}

#[test]
fn no_input_makes_a_parser_of_the_second_half_panic() {
    replay(&TARGETS[TARGETS.len() / 2..]);
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in fs::read_dir(folder).expect("the corpus is there") {
        let name = entry.expect("it can be listed").file_name().into_string().expect("a name in ASCII");
        assert!(linerate_fuzz::find(&name).is_some(), "no target is called `{name}`");
    }
}
