//! Where a command writes: standard output, or a file that appears when it is whole.

use std::fs::Permissions;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::Failure;

/// A stream of bytes that somebody reads.
pub enum Output {
    /// Standard output.
    Standard(BufWriter<StdoutLock<'static>>),
    /// A file beside the one to be written.
    File {
        /// What is being written.
        file: BufWriter<NamedTempFile>,
        /// What it will be called.
        path: PathBuf,
    },
}

/// Bytes written at a time.
const BUFFER: usize = 1 << 18;

/// Whether anybody reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It was written.
    Listens,
    /// The other end of the pipe is closed: its reader has enough. Not an error.
    Left,
}

impl Output {
    /// Standard output if there is no path. Errors: the file's directory cannot be written.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            let standard = BufWriter::with_capacity(BUFFER, io::stdout().lock());
            return Ok(Self::Standard(standard));
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".nuthatch-")
            // As any program's files: the process's mask decides who may read.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
        Ok(Self::File {
            file: BufWriter::with_capacity(BUFFER, file),
            path: path.to_owned(),
        })
    }

    /// Writes. Errors: what the system says, except that nobody reads.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Reader, Failure> {
        let written = match self {
            Self::Standard(standard) => standard.write_all(bytes),
            Self::File { file, .. } => file.write_all(bytes),
        };
        self.judge(written)
    }

    /// Shows what was written so far. Errors: as [`Output::write`].
    pub fn flush(&mut self) -> Result<Reader, Failure> {
        let flushed = match self {
            Self::Standard(standard) => standard.flush(),
            Self::File { file, .. } => file.flush(),
        };
        self.judge(flushed)
    }

    /// Ends the output: a file takes its name now. Dropped without this, a file never was.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        match self {
            Self::Standard(_) => Ok(()),
            Self::File { file, path } => {
                let failed =
                    |error: io::Error| Failure::run(format!("{}: {error}", path.display()));
                let file = file
                    .into_inner()
                    .map_err(|error| failed(error.into_error()))?;
                file.persist(&path).map_err(|error| failed(error.error))?;
                Ok(())
            }
        }
    }

    fn judge(&self, written: io::Result<()>) -> Result<Reader, Failure> {
        match (written, self) {
            (Ok(()), _) => Ok(Reader::Listens),
            (Err(error), Self::Standard(_)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(Reader::Left)
            }
            (Err(error), Self::Standard(_)) => {
                Err(Failure::run(format!("standard output: {error}")))
            }
            (Err(error), Self::File { path, .. }) => {
                Err(Failure::run(format!("{}: {error}", path.display())))
            }
        }
    }
}

/// Writes a message to standard error, the program's name in front. Not `eprintln!`, which panics if that is a
/// closed pipe.
pub fn note(words: &str) {
    let program = std::env::args_os().next();
    let name = program.as_deref().map(Path::new).and_then(Path::file_name);
    let name = name.map_or("nuthatch".into(), |name| name.to_string_lossy());
    // There is no other place for the message.
    let _ = writeln!(io::stderr(), "{name}: {words}");
}

/// Prints a whole text. A closed pipe is no error: its reader wanted no more.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same of text that need not be UTF-8.
pub fn print_bytes(text: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    match output.write(text)? {
        Reader::Listens => output.finish(),
        Reader::Left => Ok(()),
    }
}

/// Writes a whole file: who reads `path` sees what was there before or all of the new content. Errors: what
/// the file system says; `path` is then as it was.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(Some(path))?;
    output.write(bytes)?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figure.svg");
        save(&path, b"old and longer").unwrap();
        save(&path, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // The name is taken by a directory.
        assert!(save(folder.path(), b"svg").is_err());
        assert!(save(&folder.path().join("none/figure.svg"), b"svg").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
