//! Removal of what is in a folder, by open handles: no path is used twice, and no link is followed.

use linerate_sys::folder::Folder;
use std::io;
use std::vec;

/// A folder that is being emptied.
struct Level {
    folder: Folder,
    /// In the folder above.
    name: Vec<u8>,
    /// The next names in it, [`NAMES`] at most: whoever fills a folder does not fill this host's memory.
    names: vec::IntoIter<Vec<u8>>,
}

/// Names of a folder that are read at a time.
const NAMES: usize = 4_096;

/// Removes all that is in `folder`, read-only folders included, and leaves the folder itself. There is one open
/// handle for each level.
///
/// # Errors
/// Something could not be opened or removed; what is left stays.
pub(crate) fn empty(folder: &Folder) -> io::Result<()> {
    let mut levels = vec![Level::new(folder.to_empty()?, Vec::new())];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.next() else {
            // Those read before are removed.
            level.names = level.folder.first_names(NAMES)?.into_iter();
            if level.names.len() > 0 {
                continue;
            }
            let Some(Level { name, .. }) = levels.pop() else { break };
            if let Some(above) = levels.last() {
                above.folder.remove_folder(&name)?;
            }
            continue;
        };
        match level.folder.remove_file(&name) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let below = level.folder.open_to_empty(&name)?;
                levels.push(Level::new(below, name));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

impl Level {
    fn new(folder: Folder, name: Vec<u8>) -> Self {
        Self { folder, name, names: Vec::new().into_iter() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_tree_is_removed_and_what_its_links_name_stays() {
        let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let open = |folder: &tempfile::TempDir| Folder::open(folder.path()).expect("opened");
        fs::create_dir(outside.path().join("kept")).expect("made");
        fs::write(outside.path().join("kept/file"), "x").expect("written");
        let kept = open(&outside).open_folder(b"kept").expect("opened");
        kept.settle(0o500, 0).expect("set");
        fs::create_dir_all(inside.path().join("a/b/c")).expect("made");
        fs::write(inside.path().join("a/b/file"), "x").expect("written");
        for number in 0..NAMES + 1 {
            fs::write(inside.path().join(format!("a/b/{number}")), "").expect("written");
        }
        let a = open(&inside).enter(b"a").expect("opened");
        // A system without links has none to follow.
        let _ = a.make_link(b"temporary", b"link", outside.path().as_os_str().as_encoded_bytes(), 0);
        let _ = a.make_link(b"temporary", b"dangling", b"missing", 0);
        let before = open(&outside).about(b"kept").expect("there");
        drop(a);
        empty(&open(&inside)).expect("emptied");
        assert_eq!(fs::read_dir(inside.path()).expect("listed").count(), 0);
        assert!(outside.path().join("kept/file").exists());
        assert_eq!(open(&outside).about(b"kept").expect("there"), before);
        kept.settle(0o700, 0).expect("set");
    }
}
