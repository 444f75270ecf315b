//! Stands for the program of a lab in tests: as an agent it says where it is and waits; as a path it is one.

use linerate_lab::path;
use std::error::Error;
use std::thread;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["agent", ..] => {
            let secret = "0123456789abcdef".repeat(2);
            println!("linerate://127.0.0.1:4747#{secret}.{secret}{secret}");
            loop {
                thread::sleep(Duration::from_secs(600));
            }
        }
        ["lab", "beside", "path", plan] => Ok(path::serve(&plan.parse()?)?),
        _ => Err("agent, or lab beside path PLAN".into()),
    }
}
