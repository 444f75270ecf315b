//! Hosts saved by name, and agent URLs that come from a file, from the environment or from standard input: so that no secret
//! stands on a command line, which other users and the shell's history see.

use etcetera::{BaseStrategy as _, base_strategy};
use linerate_agent::private_file;
use linerate_model::{AgentUrl, HostName};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The name of this machine.
pub(crate) const LOCAL: &str = "local";

/// What pipes held, as in `@<(ssh rack-1 cat agent.url)`: they can be read only once, and a command looks at its hosts more often.
static READ_FROM_PIPES: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Hosts by the names they were saved by, in a file that only its owner reads.
#[derive(Debug)]
pub(crate) struct SavedHosts {
    path: PathBuf,
    urls: BTreeMap<HostName, AgentUrl>,
}

impl SavedHosts {
    /// Reads the user's file, `linerate/hosts` in the user's data directory; none are saved if there is no such file.
    ///
    /// # Errors
    /// There is no home directory, others can read the file, or it holds something else.
    pub(crate) fn read() -> Result<Self, String> {
        let base = base_strategy::choose_base_strategy().map_err(|error| format!("no hosts can be saved: {error}"))?;
        Self::of(base.data_dir().join("linerate/hosts"))
    }

    fn of(path: PathBuf) -> Result<Self, String> {
        let text = private_file::read(&path).map_err(|error| error.to_string())?.unwrap_or_default();
        let entry = |line: &str| {
            let (name, url) = line.split_once(' ').ok_or_else(|| "a line without a name".to_owned())?;
            let url = url.parse::<AgentUrl>().map_err(|error| error.to_string())?;
            Ok::<_, String>((HostName::from(name), url))
        };
        let urls = text.lines().map(entry).collect::<Result<_, _>>();
        let urls =
            urls.map_err(|error| format!("{}: {error}; delete the file and save its hosts again", path.display()))?;
        Ok(Self { path, urls })
    }

    /// The host saved by that name.
    pub(crate) fn find(&self, name: &HostName) -> Option<&AgentUrl> {
        self.urls.get(name)
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> &BTreeMap<HostName, AgentUrl> {
        &self.urls
    }

    /// Saves a host, and keeps it. Returns what had that name before.
    ///
    /// # Errors
    /// The name is of another use, or the file cannot be written.
    pub(crate) fn add(&mut self, name: HostName, url: AgentUrl) -> Result<Option<AgentUrl>, String> {
        check_name(&name)?;
        self.change(|urls| Ok(urls.insert(name, url)))
    }

    /// Forgets a host, for good.
    ///
    /// # Errors
    /// No host has that name, or the file cannot be written.
    pub(crate) fn remove(&mut self, name: &HostName) -> Result<AgentUrl, String> {
        if AgentUrl::is_meant(&name.0) {
            return Err("a host is forgotten by its name: `linerate hosts list` shows the names".to_owned());
        }
        self.change(|urls| {
            let known = |urls: &BTreeMap<HostName, AgentUrl>| {
                let names: Vec<&str> = urls.keys().map(|name| name.0.as_str()).collect();
                if names.is_empty() { "none is".to_owned() } else { format!("saved are {}", names.join(", ")) }
            };
            urls.remove(name).ok_or_else(|| format!("no host is saved as `{name}`: {}", known(urls)))
        })
    }

    /// Reads the file again, has `change` change its hosts, and writes it, alone among all commands.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut BTreeMap<HostName, AgentUrl>) -> Result<T, String>,
    ) -> Result<T, String> {
        let _alone = private_file::lock(&self.path.with_extension("lock")).map_err(|error| error.to_string())?;
        *self = Self::of(self.path.clone())?;
        let changed = change(&mut self.urls)?;
        let text: String = self.urls.iter().map(|(name, url)| format!("{name} {url}\n")).collect();
        private_file::replace(&self.path, &text).map_err(|error| error.to_string())?;
        Ok(changed)
    }
}

/// Checks a name, which must be told from all else that names a host, alone and in lists.
///
/// # Errors
/// It is of another use.
pub(crate) fn check_name(name: &HostName) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.0 == LOCAL {
        return Err(format!("`{name}` is this machine: choose another name"));
    }
    if AgentUrl::is_meant(&name.0) {
        return Err(
            "a host's name is missing, or an agent URL stands in its place: `linerate hosts add NAME URL`".to_owned()
        );
    }
    if name.0.is_empty() || !name.0.chars().all(plain) || name.0.starts_with('-') {
        return Err(format!("`{name}` cannot be a host's name: use letters, digits, `-`, `_` and `.`"));
    }
    Ok(())
}

/// Reads agent URLs, one a line, from a file that only its owner reads. Empty lines, and those that begin with `#`, are skipped.
///
/// # Errors
/// It cannot be read, others can read it, or it holds something else.
pub(crate) fn urls_of_file(path: &Path) -> Result<Vec<AgentUrl>, String> {
    let shown = path.display();
    let text = text_of(path)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let urls: Vec<AgentUrl> =
        lines.map(|line| line.parse().map_err(|error| format!("{shown}: {error}"))).collect::<Result<_, _>>()?;
    if urls.is_empty() {
        return Err(format!("{shown} holds no agent URL: write one on each line"));
    }
    Ok(urls)
}

/// The text of a file that only its owner reads.
fn text_of(path: &Path) -> Result<String, String> {
    let mut from_pipes = READ_FROM_PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = from_pipes.get(path) {
        return Ok(text.clone());
    }
    let text = private_file::read(path).map_err(|error| error.to_string())?;
    let text = text.ok_or_else(|| format!("cannot read {}: there is no such file", path.display()))?;
    if !path.is_file() {
        from_pipes.insert(path.to_owned(), text.clone());
    }
    Ok(text)
}

/// The agent URL that an environment variable holds.
///
/// # Errors
/// It is not set, or holds something else.
pub(crate) fn url_of_variable(name: &str) -> Result<AgentUrl, String> {
    let value = std::env::var(name).map_err(|_| format!("the environment variable {name} holds no agent URL"))?;
    value.parse().map_err(|error| format!("the environment variable {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testsuite::files::{mode, pipe_path, set_mode};
    use std::fs;

    fn url(host: &str) -> AgentUrl {
        format!("linerate://{host}:4747#{}.{}", "0f".repeat(16), "ab".repeat(32)).parse().expect("an agent URL")
    }

    #[test]
    fn hosts_are_saved_for_their_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/hosts");
        let mut hosts = SavedHosts::of(path.clone()).expect("none yet");
        assert_eq!(hosts.add("rack-1".into(), url("192.0.2.1")), Ok(None));
        assert_eq!(hosts.add("rack-2".into(), url("2001:db8::1")), Ok(None));
        assert_eq!(hosts.add("rack-1".into(), url("192.0.2.9")), Ok(Some(url("192.0.2.1"))));
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().expect("a folder")), 0o700);

        let mut again = SavedHosts::of(path.clone()).expect("it was written");
        assert_eq!(again.find(&"rack-1".into()), Some(&url("192.0.2.9")));
        assert_eq!(again.remove(&"rack-1".into()), Ok(url("192.0.2.9")));
        let missing = again.remove(&"rack-1".into()).expect_err("it is gone");
        assert!(missing.contains("rack-2"), "{missing}");
        assert_eq!(SavedHosts::of(path.clone()).expect("it was written").all().len(), 1);

        set_mode(&path, 0o644);
        let exposed = SavedHosts::of(path).expect_err("others can read it");
        assert!(exposed.contains("chmod 600"), "{exposed}");
    }

    #[test]
    fn commands_at_once_lose_no_host_of_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts");
        let [mut first, mut second] = [0; 2].map(|_| SavedHosts::of(path.clone()).expect("none yet"));
        first.add("rack-1".into(), url("192.0.2.1")).expect("saved");
        second.add("rack-2".into(), url("192.0.2.2")).expect("saved");
        first.remove(&"rack-2".into()).expect("it was saved by another command");
        second.add("rack-3".into(), url("192.0.2.3")).expect("saved");
        let saved = SavedHosts::of(path).expect("it was written");
        assert_eq!(saved.all().keys().map(|name| name.0.as_str()).collect::<Vec<_>>(), ["rack-1", "rack-3"]);
    }

    #[test]
    fn a_pipe_of_agent_urls_may_be_asked_for_twice() {
        use std::io::Write as _;
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writeln!(writer, "{}", url("192.0.2.1")).expect("written");
        drop(writer);
        let path = pipe_path(&reader);
        for _ in 0..2 {
            assert_eq!(urls_of_file(&path), Ok(vec![url("192.0.2.1")]));
        }
    }

    #[test]
    fn a_saved_name_is_told_from_all_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut hosts = SavedHosts::of(folder.path().join("hosts")).expect("none yet");
        for name in ["local", "", "a,b", "a:eth0", "@a", "-a", "a b", "//a", "a\u{1b}[1m"] {
            assert!(hosts.add(name.into(), url("192.0.2.1")).is_err(), "{name}");
        }
        assert!(hosts.all().is_empty());
    }

    #[test]
    fn a_file_of_agent_urls_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("urls");
        fs::write(&path, format!("# the rack\n{}\n\n  {}\n", url("192.0.2.1"), url("192.0.2.2"))).expect("written");
        set_mode(&path, 0o640);
        let exposed = urls_of_file(&path).expect_err("others can read it");
        assert!(exposed.contains("mode 640") && exposed.contains("chmod 600"), "{exposed}");
        set_mode(&path, 0o600);
        assert_eq!(urls_of_file(&path), Ok(vec![url("192.0.2.1"), url("192.0.2.2")]));
        fs::write(&path, "linerate://192.0.2.1:4747#0123456789abcdef\n").expect("written");
        let broken = urls_of_file(&path).expect_err("no fingerprint");
        assert!(!broken.contains("0123456789abcdef"), "{broken}");
        fs::write(&path, "# none\n").expect("written");
        assert!(urls_of_file(&path).expect_err("none").contains("no agent URL"));
    }
}
