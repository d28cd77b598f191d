//! What a reader can try that means no good.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use memmap2::{Mmap, MmapMut};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nuthatch_direct::Direct;
use nuthatch_engine::sharing::{Asks, WELCOME_BYTES, hello};

use crate::server::CLIENTS;

/// The server's answer to what this process says; nothing if it just closes the connection.
fn said(shared: &Path, words: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(shared).unwrap();
    stream.write_all(words).unwrap();
    let mut answer = Vec::new();
    // A connection that is closed with unread words is reset.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Nonsense is answered in words, and so is silence.
pub fn talk(shared: &Path) {
    let refused = |words: &[u8], why: &str| {
        let answer = said(shared, words);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(why), "{words:?}: {text}");
    };
    refused(b"GET / HTTP/1.1\r\n", "its own protocol");
    let mut newer = hello(Asks::Reads);
    newer[8] += 2;
    refused(&newer, "another version");
    // It may be longer than this version's.
    refused(&[newer.as_slice(), &[1; 50]].concat(), "another version");
    refused(&[0x80; 100], "its own protocol");
    refused(
        &[hello(Asks::Reads).as_slice(), b"x"].concat(),
        "nobody asked",
    );
    refused(b"nuth", "said nothing");
    // A good beginning does not help.
    let mut stream = UnixStream::connect(shared).unwrap();
    stream.write_all(&hello(Asks::Reads)).unwrap();
    stream.read_exact(&mut [0; WELCOME_BYTES]).unwrap();
    stream.write_all(b"more").unwrap();
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}

/// The descriptor that a reader gets, and the connection.
fn memory(shared: &Path) -> (File, UnixStream) {
    let mut stream = UnixStream::connect(shared).unwrap();
    stream.write_all(&hello(Asks::Reads)).unwrap();
    let mut answer = [0; WELCOME_BYTES];
    let mut space = nix::cmsg_space!([i32; 4]);
    let mut parts = [IoSliceMut::new(&mut answer)];
    let flags = MsgFlags::empty();
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags).unwrap();
    let messages: Vec<_> = received.cmsgs().unwrap().collect();
    let [ControlMessageOwned::ScmRights(descriptors)] = messages.as_slice() else {
        panic!("{messages:?}");
    };
    let [items, hints] = descriptors.as_slice() else {
        panic!("{descriptors:?}");
    };
    // SAFETY: the kernel has just made them for this process.
    let [items, hints] = [items, hints].map(|&fd| unsafe { File::from_raw_fd(fd) });
    lie(&hints);
    (items, stream)
}

/// Claims that everything is in use, and tries to cut the hints under the server.
fn lie(hints: &File) {
    let len = hints.metadata().unwrap().len();
    assert!(hints.set_len(0).is_err() && hints.set_len(2 * len).is_err());
    // SAFETY: the server uses these words as any numbers.
    let mut mapped = unsafe { MmapMut::map_mut(hints) }.unwrap();
    for (number, byte) in mapped.iter_mut().enumerate() {
        *byte = (number * 31 % 256) as u8;
    }
}

/// Nobody can write to the memory, or change its size; it can be filled, up to that size. Returns whether the file could be
/// opened again to write, as by its owner and by root.
pub fn attack(shared: &Path) -> bool {
    let (file, _stream) = memory(shared);
    let len = file.metadata().unwrap().len();
    // As the server's own user this works, and does not help.
    let _ = file.set_permissions(Permissions::from_mode(0o777));
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    let writable = OpenOptions::new().read(true).write(true).open(name);
    for file in [Some(&file), writable.as_ref().ok()].into_iter().flatten() {
        // SAFETY: it fails.
        assert!(unsafe { MmapMut::map_mut(file) }.is_err());
        assert!(file.write_at(b"garbage", 0).is_err());
        assert!(file.set_len(0).is_err() && file.set_len(2 * len).is_err());
    }
    // SAFETY: the words are read one by one, whatever they are.
    let mapped = unsafe { Mmap::map(&file) }.unwrap();
    let sum = mapped
        .iter()
        .step_by(4096)
        .map(|&byte| u64::from(byte))
        .sum::<u64>();
    assert!(sum > 0);
    let taken = file.metadata().unwrap().blocks() * 512;
    assert!(taken <= len, "{taken} of {len}");
    // SAFETY: as above.
    assert!(mapped.make_mut().is_err());
    writable.is_ok()
}

/// One more than may connect is refused in words, and gets in when another leaves.
pub fn crowd(shared: &Path) {
    let connect = || Direct::connect(shared);
    let mut inside: Vec<Direct> = (0..CLIENTS).map(|_| connect().unwrap()).collect();
    let error = connect().err().unwrap();
    assert!(error.to_string().contains("--shared-clients"), "{error}");
    inside.pop();
    while let Err(error) = connect() {
        assert!(error.to_string().contains("--shared-clients"), "{error}");
    }
}
