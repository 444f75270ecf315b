//! Entry points for fuzzing: what a server that may be anyone's sends. Whole conversations need none:
//! [`crate::Session`] has them.

use crate::answer::Answer;
use crate::ntlm::{Chosen, Credentials};
use crate::request::Protection;
use crate::spnego::Client;

/// Reads a message as every kind of answer, and as the token of a login.
pub fn answer(bytes: &[u8]) {
    let answer = Answer { bytes: bytes.to_vec(), begins: 0, protection: Protection::None };
    answer.read_as_all();
    let credentials = Credentials::parse("LAB\\user", "password").expect("a user");
    let chosen = Chosen { challenge: [1; 8], session_key: [2; 16], time: 3 };
    if let Ok((_, proved)) = Client::new(credentials).prove(bytes, &chosen) {
        let _ = proved.verify(bytes);
    }
}
