//! Remembers from which inputs something was made, so that it is made again when they change and not otherwise.

use anyhow::Context;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A digest of files and of whole folders, by name and content. Times say nothing after a clone or a change of branch.
pub(crate) fn digest(paths: &[PathBuf], skip: &[&str], also: &str) -> anyhow::Result<String> {
    let mut hasher = DefaultHasher::new();
    also.hash(&mut hasher);
    for path in paths {
        add(path, skip, &mut hasher).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn add(path: &Path, skip: &[&str], hasher: &mut DefaultHasher) -> std::io::Result<()> {
    if path.is_dir() {
        let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            if !skip.iter().any(|skipped| name == *skipped) {
                name.hash(hasher);
                add(&entry.path(), skip, hasher)?;
            }
        }
        // Tells a file that moved out of the folder from one that stayed.
        "end of folder".hash(hasher);
    } else {
        fs::read(path)?.hash(hasher);
    }
    Ok(())
}

/// Calls `make` unless the stamp says that it was done with this digest.
pub(crate) fn unless_fresh(
    stamp: &Path,
    digest: &str,
    what: &str,
    make: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if fs::read_to_string(stamp).is_ok_and(|known| known == digest) {
        println!("{what}: up to date");
        return Ok(());
    }
    // Gone while it is being made, so that half of it never counts as the whole.
    match fs::remove_file(stamp) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", stamp.display()));
        }
        _ => {}
    }
    make()?;
    fs::write(stamp, digest).with_context(|| format!("cannot write {}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_digest_follows_names_and_content_and_skips_what_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let now = |also: &str| digest(&[folder.path().into()], &["dist"], also).unwrap();
        write("a/x.ts", "1");
        let first = now("");
        assert_eq!(now(""), first);
        assert_ne!(now("another version"), first);
        write("dist/x.js", "made");
        assert_eq!(now(""), first);
        write("a/x.ts", "2");
        assert_ne!(now(""), first);
        write("a/x.ts", "1");
        assert_eq!(now(""), first);
        fs::rename(folder.path().join("a/x.ts"), folder.path().join("x.ts")).unwrap();
        assert_ne!(now(""), first);
    }

    #[test]
    fn what_failed_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = folder.path().join("stamp");
        let made = Cell::new(0);
        let make = |digest: &str, works: bool| {
            unless_fresh(&stamp, digest, "it", || {
                made.set(made.get() + 1);
                if works { Ok(()) } else { anyhow::bail!("no") }
            })
        };
        make("a", true).unwrap();
        make("a", true).unwrap();
        assert_eq!(made.get(), 1);
        make("b", false).unwrap_err();
        make("a", true).unwrap();
        assert_eq!(made.get(), 3, "after a failure nothing counts as made");
    }
}
