//! Files that are whole or not there.

use std::io::{self, Write};
use std::path::Path;

/// Writes a figure to a file. See [`save_bytes`].
pub fn save(path: &Path, svg: &str) -> io::Result<()> {
    save_bytes(path, svg.as_bytes())
}

/// Writes a file beside `path` and gives it that name when it is whole: whoever reads `path` sees what
/// was there before or all of the new content. Errors: what the file system says; `path` is then as
/// it was.
pub fn save_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".nuthatch-")
        .permissions(readable_by_all())
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// A figure is made to be shown; the process's mask still applies.
fn readable_by_all() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figure.svg");
        save(&path, "old and longer").unwrap();
        save(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // The name is taken by a directory.
        assert!(save(folder.path(), "svg").is_err());
        assert!(save(&folder.path().join("none/figure.svg"), "svg").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
