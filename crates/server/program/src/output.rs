//! The output of a command: standard output, or a file that appears when it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use nuthatch_base::file::{BY_MASK, Unfinished};

use crate::Failure;

/// A destination of bytes.
pub enum Output {
    /// Standard output.
    Standard(BufWriter<StdoutLock<'static>>),
    /// A pipe, or a device, by its name: `/dev/null`, or the pipe of a shell's `>(COMMAND)`.
    Stream {
        /// The open stream.
        file: BufWriter<File>,
        /// Its name.
        path: PathBuf,
    },
    /// A file that appears when it is whole.
    File {
        /// What is being written.
        file: BufWriter<Unfinished>,
        /// The name that it will get.
        path: PathBuf,
    },
}

/// Bytes written at a time.
const BUFFER: usize = 1 << 18;

/// Whether the output still has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The bytes were written.
    Listens,
    /// The reader has closed its end of the pipe. Not an error.
    Left,
}

impl Output {
    /// Standard output if there is no path.
    ///
    /// Errors: the file's directory cannot be written; another process is writing that file.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            let standard = BufWriter::with_capacity(BUFFER, io::stdout().lock());
            return Ok(Self::Standard(standard));
        };
        // If the path is a link, its target is written: the link stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_stream = fs::metadata(&path).is_ok_and(|there| !there.is_file() && !there.is_dir());
        let opened = if is_stream {
            let file = File::options().write(true).open(&path);
            file.map(|file| Self::Stream {
                file: BufWriter::with_capacity(BUFFER, file),
                path: path.clone(),
            })
        } else {
            let file = Unfinished::begin(&path, BY_MASK);
            file.map(|file| Self::File {
                file: BufWriter::with_capacity(BUFFER, file),
                path: path.clone(),
            })
        };
        opened.map_err(|error| Failure::run(format!("{}: {error}", path.display())))
    }

    /// Writes. Errors: those of the system, except that the reader has left.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Reader, Failure> {
        let written = match self {
            Self::Standard(standard) => standard.write_all(bytes),
            Self::Stream { file, .. } => file.write_all(bytes),
            Self::File { file, .. } => file.write_all(bytes),
        };
        self.judge(written)
    }

    /// Writes all of the bytes, past the buffer, or none: if there is no room for them, a file is as it was before. Of a
    /// stream a part may have gone. Errors: as [`Output::write`].
    pub fn write_whole(&mut self, bytes: &[u8]) -> Result<Reader, Failure> {
        if self.flush()? == Reader::Left {
            return Ok(Reader::Left);
        }
        let Self::File { file, .. } = self else {
            return match self.write(bytes)? {
                Reader::Listens => self.flush(),
                Reader::Left => Ok(Reader::Left),
            };
        };
        let written = file.get_mut().write_whole(bytes);
        self.judge(written)
    }

    /// Flushes the bytes written so far. Errors: as [`Output::write`].
    pub fn flush(&mut self) -> Result<Reader, Failure> {
        let flushed = match self {
            Self::Standard(standard) => standard.flush(),
            Self::Stream { file, .. } => file.flush(),
            Self::File { file, .. } => file.flush(),
        };
        self.judge(flushed)
    }

    /// Ends the output: a file takes its name now. A file that is dropped without this call never appears.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        match self {
            Self::Standard(_) | Self::Stream { .. } => Ok(()),
            Self::File { file, path } => {
                let file = file.into_inner().map_err(|error| error.into_error());
                file.and_then(|file| file.finish(&path))
                    .map_err(|error| Failure::run(format!("{}: {error}", path.display())))
            }
        }
    }

    fn judge(&self, written: io::Result<()>) -> Result<Reader, Failure> {
        match (written, self) {
            (written, Self::Standard(_)) => judge_standard(written),
            (Ok(()), _) => Ok(Reader::Listens),
            (Err(error), Self::Stream { .. }) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(Reader::Left)
            }
            (Err(error), Self::Stream { path, .. } | Self::File { path, .. }) => {
                Err(Failure::run(format!("{}: {error}", path.display())))
            }
        }
    }
}

/// The outcome of writing to standard output. Errors: those of the system, except that the reader has left.
pub fn judge_standard(written: io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::Listens),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Left),
        Err(error) => Err(Failure::run(format!("standard output: {error}"))),
    }
}

/// The name by which the program was called.
pub fn program() -> String {
    let program = std::env::args_os().next();
    let name = program.as_deref().map(Path::new).and_then(Path::file_name);
    name.map_or("nuthatch".into(), |name| {
        name.to_string_lossy().into_owned()
    })
}

/// A line of the program's own, with its name in front.
pub fn line(words: &str) -> String {
    format!("{}: {words}\n", program())
}

/// Writes a message to standard error, the program's name in front. Not `eprintln!`, which panics if that is a
/// closed pipe.
pub fn note(words: &str) {
    // There is no other place for the message. In one call, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(line(words).as_bytes());
}

/// Prints a whole text. A closed pipe is no error: its reader has left.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same for text that need not be UTF-8.
pub fn print_bytes(text: &[u8]) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    match output.write(text)? {
        Reader::Listens => output.finish(),
        Reader::Left => Ok(()),
    }
}

/// Writes a whole file: a reader of `path` sees the old file or all of the new content. Errors: those of the file
/// system; `path` is then as it was.
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

    /// A rename would replace a device or a pipe by a file: `/dev/null` for all programs.
    #[test]
    fn a_link_stays_a_link_and_a_pipe_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("file"), b"old").unwrap();
        std::os::unix::fs::symlink(place("file"), place("link")).unwrap();
        save(&place("link"), b"new").unwrap();
        assert!(place("link").is_symlink());
        assert_eq!(std::fs::read(place("file")).unwrap(), b"new");

        let (mut near, far) = std::io::pipe().unwrap();
        let far: std::os::fd::OwnedFd = far.into();
        let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&far));
        save(Path::new(&name), b"through").unwrap();
        drop(far);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut near, &mut text).unwrap();
        assert_eq!(text, "through");
        save(Path::new("/dev/null"), b"gone").unwrap();
        let null = std::fs::metadata("/dev/null").unwrap();
        assert!(std::os::unix::fs::FileTypeExt::is_char_device(
            &null.file_type()
        ));
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
