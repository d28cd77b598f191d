//! Input files of commands: captures and rules, and the messages about their faults.

use std::path::{Path, PathBuf};

use crate::capture::Capture;
use crate::rules::{DEFAULT_RULES, RuleErrors, Rules};
use crate::source::Frames;
use nuthatch_program::Failure;
use nuthatch_program::output::note;

/// The rules of a file, or the default ones.
pub(crate) fn load_rules(path: Option<&Path>) -> Result<Rules, Failure> {
    let (name, text) = match path {
        None => ("the default rules".to_owned(), DEFAULT_RULES.to_owned()),
        Some(path) => {
            let name = path.display().to_string();
            let bytes =
                std::fs::read(path).map_err(|error| Failure::Run(format!("{name}: {error}")))?;
            let text = String::from_utf8(bytes).map_err(|error| {
                let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
                Failure::Run(format!("{name}: line {line}: it is not text (UTF-8)"))
            })?;
            (name, text)
        }
    };
    text.parse()
        .map_err(|errors: RuleErrors| Failure::Run(format!("{name}: {errors}")))
}

/// Reads captures, and prints on standard error which parts cannot be used.
pub(crate) fn load_frames(files: &[PathBuf]) -> Result<Frames, Failure> {
    let mut capture = Capture::default();
    for path in files {
        let broken = capture.faults().broken_off.len();
        capture
            .read_file(path)
            .map_err(|error| Failure::Run(format!("{}: {error}", path.display())))?;
        for why in &capture.faults().broken_off[broken..] {
            note(&format!("{}: broken off {why}", path.display()));
        }
    }
    let frames = Frames::new(capture);
    let faults = frames.capture().faults();
    let mut unused: Vec<String> = faults
        .unknown_links
        .iter()
        .map(|(link, count)| format!("{count} of unknown link type {link}"))
        .collect();
    let counts = [
        (faults.empty, "empty"),
        (faults.bad_blocks, "in malformed blocks"),
    ];
    unused.extend(
        counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}")),
    );
    unused.extend(
        frames
            .skipped()
            .map(|(skip, count)| format!("{count} {}", skip.name())),
    );
    if !unused.is_empty() {
        note(&format!("packets that are left out: {}", unused.join(", ")));
    }
    if frames.is_empty() {
        return Err(Failure::Run(
            "there is no IP packet in the captures".to_owned(),
        ));
    }
    Ok(frames)
}
