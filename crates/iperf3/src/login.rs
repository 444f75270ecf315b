//! Login to a server: user name, password and time, encrypted with the server's public key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_model::{Iperf3Login, Password};
use linerate_sys::clock;
use rsa::PublicKey;
use rsa::pkcs8::{DecodePublicKey as _, EncodePublicKey as _, LineEnding};
use rsa::traits::PublicKeyParts as _;
use sha1::Sha1;

/// Overhead of OAEP with SHA-1 in an encrypted text (RFC 8017 section 7.1.1), more than that of PKCS#1 v1.5.
const OAEP_BYTES: usize = 2 * 20 + 2;

/// Reason that a text cannot be used as a public key for a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The text is a private key.
    #[error(
        "this is a private key, which belongs on the server alone; name its public key, which `openssl rsa -in KEY -pubout` prints"
    )]
    Private,
    /// The text is anything else.
    #[error(
        "this is no RSA public key of {} to {} bits in PEM (BEGIN PUBLIC KEY); `openssl rsa -in KEY -pubout` prints that of the \
         server's private key",
        PublicKey::MIN_SIZE,
        PublicKey::MAX_SIZE
    )]
    NoPublicKey,
}

/// Returns the public key in `text`, as PEM and without anything else.
///
/// # Errors
/// The text has no public key, or it has a private key.
pub fn public_key(text: &str) -> Result<String, BadKey> {
    let key = read_key(text)?;
    key.to_public_key_pem(LineEnding::LF).map_err(|_| BadKey::NoPublicKey)
}

fn read_key(text: &str) -> Result<PublicKey, BadKey> {
    if text.contains("PRIVATE KEY-----") {
        return Err(BadKey::Private);
    }
    PublicKey::from_public_key_pem(text).map_err(|_| BadKey::NoPublicKey)
}

/// Padding of a text to the length of the key (RFC 8017 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// OAEP with SHA-1, which is sound here.
    Oaep,
    Pkcs1v15,
}

/// Login that can be encrypted.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    user: String,
    password: Password,
    key: PublicKey,
}

impl Login {
    /// Checks everything that can be checked without the server.
    ///
    /// # Errors
    /// The server could not read the login. The message names the reason.
    pub(crate) fn check(login: &Iperf3Login, password: Option<&Password>) -> Result<Self, String> {
        let Iperf3Login { user, public_key } = login;
        let password = password.ok_or_else(|| format!("the login of `{user}` has no password"))?;
        if !is_word(user) {
            return Err(format!("iperf3 knows no user name like `{user}`: it must not be empty or contain blanks"));
        }
        if !is_word(&password.0) {
            return Err("iperf3 knows no such password: it must not be empty or contain blanks".to_owned());
        }
        let key = read_key(public_key).map_err(|error| format!("the public key of the iperf3 server: {error}"))?;
        let login = Self { user: user.clone(), password: password.clone(), key };
        let bytes = login.text(clock::unix_now()).len();
        let room = login.key.size() - OAEP_BYTES;
        if bytes > room {
            return Err(format!(
                "user name and password are {} bytes too long together for the server's key of {} bits: choose a shorter password, or \
                 a longer key",
                bytes - room,
                login.key.size() * 8
            ));
        }
        Ok(login)
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Returns the encrypted login with this time, nanoseconds since 1970, as base64.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn token(&self, padding: Padding, unix_ns: u64) -> Result<String, String> {
        let text = self.text(unix_ns);
        let encrypted = match padding {
            Padding::Oaep => self.key.oaep_encrypt::<Sha1>(text.as_bytes()),
            Padding::Pkcs1v15 => self.key.pkcs1v15_encrypt(text.as_bytes()),
        };
        let encrypted = encrypted.map_err(|error| format!("encrypting the login of `{}`: {error}", self.user))?;
        Ok(STANDARD.encode(encrypted))
    }

    fn text(&self, unix_ns: u64) -> String {
        format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password.0, unix_ns / 1_000_000_000)
    }
}

/// Returns whether the server can read `text`: in the encrypted text, blanks and line breaks end names and passwords.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte > b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Public key of 1,024 bits, made by openssl.
    const KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDQFLsk7FLstXQadysSlq5J7qde
Bi/zJKNYjAaRiBM01YNrtDFZVP+qqBB+tBaxNRcXzvnMnHD0+sCjBJ5fmFGMngVZ
m7XMRwZmN1NlDubE3N+eRvHOVeL0vV0FhqztynIjIWKOS/g3NEbIyTF5u8OhoRFV
1WZt9z/b7XMUfS1ErwIDAQAB
-----END PUBLIC KEY-----
";

    fn login(user: &str, password: &str) -> Result<Login, String> {
        let login = Iperf3Login { user: user.to_owned(), public_key: KEY.to_owned() };
        Login::check(&login, Some(&Password(password.to_owned())))
    }

    #[test]
    fn login_text_is_that_of_iperf3() {
        let login = login("ann", "p\u{e4}ss").expect("valid");
        assert_eq!(login.text(1_764_108_000_999_999_999), "user: ann\npwd:  p\u{e4}ss\nts:   1764108000");
        for padding in [Padding::Oaep, Padding::Pkcs1v15] {
            let token = login.token(padding, 0).expect("it fits");
            assert_eq!(STANDARD.decode(&token).expect("base64").len(), 128, "the key's length");
            assert_ne!(token, login.token(padding, 0).expect("it fits"), "each token is padded anew");
        }
    }

    #[test]
    fn login_that_no_server_could_read_is_refused() {
        for (user, password, needle) in [
            ("", "secret", "user name like ``"),
            ("an n", "secret", "user name like `an n`"),
            ("ann\n", "secret", "no user name"),
            ("ann", "", "no such password"),
            ("ann", "a secret", "no such password"),
        ] {
            let error = login(user, password).expect_err(needle);
            assert!(error.contains(needle) && !error.contains("secret"), "{error}");
        }
        let without_password = Login::check(&Iperf3Login { user: "ann".to_owned(), public_key: KEY.to_owned() }, None);
        assert!(without_password.expect_err("no password").contains("`ann` has no password"));
    }

    #[test]
    fn error_names_the_excess_length_of_a_login() {
        // 128 bytes, less 42 of OAEP, 30 of the text and 3 of the name.
        login("ann", &"x".repeat(53)).expect("it fits").token(Padding::Oaep, clock::unix_now()).expect("it fits");
        let error = login("ann", &"\u{e4}".repeat(27)).expect_err("54 bytes");
        assert!(error.contains("1 bytes too long") && error.contains("1024 bits"), "{error}");
    }

    #[test]
    fn only_public_keys_are_read_from_a_text() {
        assert_eq!(public_key(KEY).as_deref(), Ok(KEY));
        assert_eq!(public_key(&format!("for rack-1\n{}", KEY.replace('\n', "\r\n"))).as_deref(), Ok(KEY));
        for kind in ["", "RSA ", "ENCRYPTED ", "EC "] {
            let private = format!("{KEY}-----BEGIN {kind}PRIVATE KEY-----\nAAAA\n-----END {kind}PRIVATE KEY-----\n");
            assert_eq!(public_key(&private), Err(BadKey::Private));
        }
        for text in
            ["", "AAAA", &KEY.replace("PUBLIC KEY", "CERTIFICATE"), &KEY[..KEY.len() / 2], &KEY.replace("AQAB", "AQAA")]
        {
            assert_eq!(public_key(text), Err(BadKey::NoPublicKey), "{text}");
        }
        let error = Login::check(
            &Iperf3Login { user: "ann".to_owned(), public_key: "AAAA".to_owned() },
            Some(&Password("x".to_owned())),
        );
        assert!(error.expect_err("no key").contains("1024 to 8192 bits"));
    }

    #[test]
    fn password_stays_out_of_logs() {
        let text = format!("{:?}", login("ann", "secret").expect("valid"));
        assert!(text.contains("ann") && !text.contains("secret"), "{text}");
    }
}
