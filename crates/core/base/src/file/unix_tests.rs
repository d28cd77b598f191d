//! What somebody else may have prepared, as only Unix has it: owners, permissions, links, pipes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};

use crate::file::{BY_MASK, OWNER_ONLY, Unfinished, check_replaceable, try_replace};

/// Whoever may write into the folder has prepared the name: what is written must go to a file of ours alone.
#[test]
fn what_a_killed_process_or_somebody_else_left_is_never_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = || {
        let mut file = Unfinished::begin(&at("file"), OWNER_ONLY).unwrap();
        file.write_all(b"secret").unwrap();
        file.finish(&at("file")).unwrap();
        let there = fs::metadata(at("file")).unwrap();
        assert_eq!((there.mode() & 0o777, there.nlink()), (0o600, 1));
    };
    // All may write to it, and somebody has opened it.
    fs::write(at(".file.unfinished"), "left").unwrap();
    let loose = fs::Permissions::from_mode(0o666);
    fs::set_permissions(at(".file.unfinished"), loose).unwrap();
    let opened = File::open(at(".file.unfinished")).unwrap();
    write();
    assert_eq!(io::read_to_string(opened).unwrap(), "left");
    // Another name of a file of ours.
    fs::write(at("victim"), "keep").unwrap();
    fs::hard_link(at("victim"), at(".file.unfinished")).unwrap();
    write();
    assert_eq!(fs::read(at("victim")).unwrap(), b"keep");
    let refused = |words: &str| {
        let before = fs::symlink_metadata(at(".file.unfinished")).unwrap();
        for tried in [
            Unfinished::begin(&at("file"), OWNER_ONLY).map(drop),
            try_replace(&at("file")),
            check_replaceable(&at("file")),
        ] {
            let error = tried.unwrap_err().to_string();
            assert!(
                error.contains(".file.unfinished: ") && error.contains(words),
                "{error}"
            );
        }
        let after = fs::symlink_metadata(at(".file.unfinished")).unwrap();
        assert_eq!(before.ino(), after.ino());
    };
    std::os::unix::fs::symlink(at("victim"), at(".file.unfinished")).unwrap();
    refused("not a file");
    fs::remove_file(at(".file.unfinished")).unwrap();
    fs::create_dir(at(".file.unfinished")).unwrap();
    refused("not a file");
    fs::remove_dir(at(".file.unfinished")).unwrap();
    fs::write(at(".file.unfinished"), "theirs").unwrap();
    // Root alone gives files away.
    if std::os::unix::fs::chown(at(".file.unfinished"), Some(65534), None).is_ok() {
        refused("it belongs to the user 65534");
        assert_eq!(fs::read(at(".file.unfinished")).unwrap(), b"theirs");
    }
}

/// A usual open of a pipe waits for its other end.
#[test]
fn a_pipe_is_neither_waited_for_nor_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for pipe in ["file", ".file.unfinished"] {
        let pipe = folder.path().join(pipe);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let path = folder.path().join("file");
        assert!(Unfinished::begin(&path, BY_MASK).is_err());
        // With a reader it can be opened.
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&pipe)
            .unwrap();
        assert!(Unfinished::begin(&path, BY_MASK).is_err());
        drop(reader);
        fs::remove_file(&pipe).unwrap();
    }
}
