//! `linerate view`: the kept records in a browser.

use crate::exit::Failure;
use crate::options::StorePath;
use crate::output::{language, print, say};
use linerate_sys::private;
use linerate_view::{Key, TrustedProxy, View};
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::sync::watch;

/// Show records in a browser: list, filter, open, compare, watch a run
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate view                         prints an address; Ctrl-C ends it
  linerate view --open                  opens it too
  linerate view --store lab.db --listen 127.0.0.1:8000
  ssh -L 8000:127.0.0.1:8000 HOST linerate view --listen 127.0.0.1:8000

The address contains a key, new at each start. Anyone with the address can read
the records while the program runs, but not change them.")]
pub(crate) struct Arguments {
    /// Serve pages there [default: a free port]
    ///
    /// Address and port. The default is a free port on loopback.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", hide_default_value = true)]
    listen: SocketAddr,

    /// Open the list in the browser
    #[arg(long)]
    open: bool,

    #[command(flatten)]
    store: StorePath,

    #[command(flatten)]
    proxy: ProxyOptions,
}

/// Options for readers that a reverse proxy logs in.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Behind a reverse proxy")]
struct ProxyOptions {
    /// Header with the user's name
    ///
    /// A trusted reverse proxy names in it the user that it has logged in.
    ///
    /// Such users need no key. The proxy must replace a header of this name that a browser sends.
    #[arg(long, value_name = "HEADER", requires = "trusted_proxy")]
    trusted_header: Option<String>,

    /// Address of the proxy; several by commas
    ///
    /// Requests from other addresses that have the header are refused.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', requires = "trusted_header")]
    trusted_proxy: Vec<IpAddr>,

    /// Users who may read [default: all]
    #[arg(long, value_name = "USER", value_delimiter = ',', requires = "trusted_header")]
    viewers: Vec<String>,

    /// Users who may also delete records
    #[arg(long, value_name = "USER", value_delimiter = ',', requires = "trusted_header")]
    operators: Vec<String>,
}

impl ProxyOptions {
    fn trusted(&self) -> Result<Option<TrustedProxy>, Failure> {
        let Some(header) = &self.trusted_header else { return Ok(None) };
        let Self { trusted_proxy, viewers, operators, .. } = self;
        TrustedProxy::new(header, trusted_proxy.clone(), viewers.clone(), operators.clone())
            .map(Some)
            .map_err(|error| Failure::usage(format!("--trusted-header: {error}")))
    }
}

pub(crate) async fn run(arguments: &Arguments, mut cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let proxy = arguments.proxy.trusted()?;
    let store = arguments.store.open()?;
    let listener = TcpListener::bind(arguments.listen).map_err(|error| cannot_listen(arguments.listen, &error))?;
    let exposed = !listener.local_addr().map_err(Failure::measure)?.ip().is_loopback();
    let shown = store.name();
    let view = View::start(listener, store, Key::generate(), language(), proxy).await.map_err(Failure::measure)?;
    print(view.address());
    say(&format!("linerate: showing {shown}; Ctrl-C ends it"));
    if exposed {
        say(
            "linerate: pages and key cross the network unencrypted: listen on 127.0.0.1 and use `ssh -L` where others \
             might read along",
        );
    }
    if arguments.proxy.trusted_proxy.iter().any(|address| address.to_canonical().is_loopback()) {
        say(
            "linerate: every program of this machine can connect from the address of the trusted proxy and name any user: \
             run the proxy on a machine of its own if others have accounts here",
        );
    }
    // Kept until the end: a browser may take its time.
    let _page = if arguments.open { open(view.address()) } else { None };
    // An error here means the sender is gone, and with it the program.
    let _ = cancel.wait_for(|asked| *asked).await;
    view.shutdown().await;
    Ok(())
}

/// A file of the user's own that leads to an address. On a browser's command line all users of the machine would see the
/// key in it.
struct AddressPage(PathBuf);

impl AddressPage {
    fn make(folder: &Path, address: &str) -> io::Result<Self> {
        // Not the key itself: the file's name is seen by all.
        let path = folder.join(format!("linerate-view-{}.html", std::process::id()));
        let mut file = match private::new_file(&path) {
            // Left behind by a program of the same number that was killed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                std::fs::remove_file(&path)?;
                private::new_file(&path)?
            }
            made => made?,
        };
        let page = Self(path);
        write!(
            file,
            "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
             <meta http-equiv=\"refresh\" content=\"0; url={address}\"><title>linerate</title>\
             <p><a href=\"{address}\">linerate</a></p>"
        )?;
        Ok(page)
    }
}

impl Drop for AddressPage {
    fn drop(&mut self) {
        // Nothing is left to tell at the end.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens `address` in the user's browser; where there is none, the printed address is as good.
fn open(address: &str) -> Option<AddressPage> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let opened = AddressPage::make(&folder, address).and_then(|page| {
        Command::new("xdg-open")
            .arg(&page.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(page)
    });
    opened
        .inspect_err(|error| say(&format!("linerate: cannot open a browser (xdg-open: {error}); open the address")))
        .ok()
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            "another program, perhaps another `linerate view`, has that port: stop it, choose another, or leave --listen out"
        }
        ErrorKind::AddrNotAvailable => "no interface of this machine has that address: `ip address` lists them",
        ErrorKind::PermissionDenied => "ports below 1024 need privilege: choose a higher one",
        _ => "choose another address with --listen",
    };
    Failure::measure(format!("cannot listen on {address}: {error}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testsuite::files::mode;

    #[test]
    fn the_page_with_the_key_is_private_and_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let leftover = folder.path().join(format!("linerate-view-{}.html", std::process::id()));
        std::fs::write(&leftover, "old").expect("written");
        let page = AddressPage::make(folder.path(), "http://127.0.0.1:1/key/").expect("made");
        let path = page.0.clone();
        assert_eq!(mode(&path), 0o600);
        let text = std::fs::read_to_string(&path).expect("read");
        assert!(text.contains("url=http://127.0.0.1:1/key/\"") && !text.contains("old"), "{text}");
        drop(page);
        assert!(!path.exists());
    }
}
