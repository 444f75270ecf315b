//! Entry points for fuzzing: what a server that may be anyone's sends. Whole conversations need none: [`crate::Session`] has them.

use crate::answer::Answer;
use crate::ntlm::{Chosen, Credentials};
use crate::request::Protection;
use crate::spnego::Client;

/// Reads a message as every kind of answer, and as the token of a login.
pub fn answer(bytes: &[u8]) {
    let answer = Answer { bytes: bytes.to_vec(), begins: 0, protection: Protection::None };
    let _ = (answer.status(), answer.session(), answer.tree(), answer.is_interim());
    let _ = (
        answer.negotiated().is_ok(),
        answer.set_up().is_ok(),
        answer.share_flags().is_ok(),
        answer.validated().is_ok(),
    );
    let _ = (answer.created().is_ok(), answer.read().is_ok(), answer.written().is_ok());
    let _ = (answer.about().is_ok(), answer.names().is_ok());
    let credentials = Credentials::parse("LAB\\user", "password").expect("a user");
    let chosen = Chosen { challenge: [1; 8], session_key: [2; 16], time: 3 };
    if let Ok((_, proved)) = Client::new(credentials).prove(bytes, &chosen) {
        let _ = proved.verify(bytes);
    }
}
