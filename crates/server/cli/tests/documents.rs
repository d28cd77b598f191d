//! The tables of settings in docs/running.md, and the example dist/nuthatch.toml, say what the declarations say.
//!
//! After a change of those: `DOCS=write cargo test -p nuthatch-cli --test documents`

use clap::Args;
use nuthatch_cli::cuckoo::DefaultEngine;
use std::path::Path;
use std::{env, fs};

use nuthatch_server::settings::{About, FLAGS, Kind, OPTIONS, Reload};

/// Compares a document with what it should be, or writes it.
fn check(file: &str, wanted: impl Fn(&str) -> String) {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let path = root.join(file);
    let text = fs::read_to_string(&path).unwrap();
    let wanted = wanted(&text);
    if env::var_os("DOCS").is_some_and(|what| what == "write") {
        fs::write(&path, &wanted).unwrap();
        return;
    }
    let line = text.lines().zip(wanted.lines()).find(|(is, be)| is != be);
    assert!(
        text == wanted,
        "{file} is out of date: DOCS=write cargo test -p nuthatch-cli --test documents. {line:?}"
    );
}

/// The text with another block between the marks of this name.
fn with_block(text: &str, name: &str, block: &str) -> String {
    let (begin, end) = (
        format!("<!-- settings: {name} -->\n"),
        format!("<!-- end of {name} -->\n"),
    );
    let (before, rest) = text.split_once(&begin).expect("the mark of the block");
    let (_, after) = rest.split_once(&end).expect("the end of the block");
    format!("{before}{begin}{block}{end}{after}")
}

/// What a setting means, for a table.
fn meaning(about: &About) -> String {
    if !about.manual.is_empty() {
        return about.manual.to_owned();
    }
    let mut letters = about.help.chars();
    let first = letters.next().unwrap_or_default();
    first.to_lowercase().chain(letters).collect()
}

fn flags() -> String {
    let mut table = "\n| flag | long | meaning | default |\n|---|---|---|---|\n".to_owned();
    for setting in FLAGS {
        let about = setting.about;
        // A switch is said without a value.
        let value = match setting.kind {
            Kind::Switch | Kind::Level => String::new(),
            _ => format!(" {}", about.value),
        };
        let (short, long) = match about.short {
            Some(short) => (format!("`-{short}{value}`"), format!("`--{}`", about.name)),
            None => (String::new(), format!("`--{}{value}`", about.name)),
        };
        let default = match about.manual_default {
            "" => about.default,
            default => default,
        };
        table += &format!("| {short} | {long} | {} | {default} |\n", meaning(about));
    }
    table + "\n"
}

fn options() -> String {
    let mut table = "\n| option | | default |\n|---|---|---|\n".to_owned();
    for setting in OPTIONS {
        let about = setting.about;
        let value = match about.value {
            "" => String::new(),
            value => format!("={value}"),
        };
        let (name, default) = (about.name, about.default);
        table += &format!("| `{name}{value}` | {} | {default} |\n", meaning(about));
    }
    table + "\n"
}

/// The settings that SIGHUP applies, in sentences.
fn reloaded() -> String {
    let list = |names: Vec<String>| names.join(", ");
    let flags = FLAGS.iter().filter(|flag| flag.reload != Reload::Restart);
    let flags = flags.map(|flag| format!("`{}`", flag.about.name)).collect();
    let options = |of: fn(Reload) -> bool| {
        let options = OPTIONS.iter().filter(|option| of(option.reload));
        list(
            options
                .map(|option| format!("`{}`", option.about.name))
                .collect(),
        )
    };
    let applied = options(|reload| matches!(reload, Reload::Live | Reload::Own));
    let files = options(|reload| reload == Reload::Certificates);
    let text = format!(
        "SIGHUP applies {}, and of `extended` {applied} and, on a server with TLS, other files for {files}.",
        list(flags)
    );
    format!("\n{}\n", wrapped(&text, "", 120))
}

/// Lines of at most so many characters, each behind `begin`.
fn wrapped(text: &str, begin: &str, most: usize) -> String {
    let (mut lines, mut line) = (String::new(), begin.to_owned());
    for word in text.split_whitespace() {
        let blank = if line == begin { "" } else { " " };
        if line.len() + blank.len() + word.len() > most {
            lines += &line;
            lines += "\n";
            line = begin.to_owned() + word;
        } else {
            line += blank;
            line += word;
        }
    }
    lines + &line + "\n"
}

#[test]
fn the_manual_has_the_settings() {
    check("docs/running.md", |text| {
        let text = with_block(text, "flags", &flags());
        let text = with_block(&text, "options", &options());
        with_block(&text, "reload", &reloaded())
    });
}

#[test]
fn the_example_has_the_settings() {
    const MARK: &str = "# Lines that begin with `#` and a key show the default, or an example where there is none.\n";
    check("dist/nuthatch.toml", |text| {
        let (head, _) = text.split_once(MARK).expect("the head of the file");
        let mut file = head.to_owned() + MARK;
        for setting in FLAGS {
            let about = setting.about;
            let value = match (setting.kind, about.example) {
                (Kind::Switch, "") => "false",
                (_, "") => about.default,
                (_, example) => example,
            };
            file += "\n";
            file += &wrapped(&(about.help.to_owned() + "."), "# ", 120);
            file += &format!("#{} = {value}\n", about.name);
        }
        // Those of the program's own engine.
        for own in DefaultEngine::augment_args(clap::Command::new("")).get_arguments() {
            let name = own.get_long().unwrap();
            let value = match name {
                "upstream" => "\"tcp://cache-1:11211,cache-2:11211\"",
                "upstream-lifetime" => "1000",
                other => panic!("{other} has no example here"),
            };
            let help = own.get_help().unwrap().to_string();
            let (help, _) = help.split_once(" [default").unwrap_or((&help, ""));
            file += "\n";
            file += &wrapped(&(help.to_owned() + "."), "# ", 120);
            file += &format!("#{name} = {value}\n");
        }
        file
    });
}

/// A part of a document.
fn section(file: &str, begin: &str, end: &str) -> String {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let text = fs::read_to_string(root.join(file)).unwrap();
    let (_, rest) = text.split_once(begin).expect("the section");
    let (section, _) = rest.split_once(end).expect("its end");
    section.to_owned()
}

#[test]
fn every_line_of_stats_settings_is_explained() {
    let told = section("docs/statistics.md", "\n## `stats settings`\n", "\n## ");
    let flags = FLAGS.iter().flat_map(|setting| setting.about.stats);
    let options = OPTIONS.iter().flat_map(|setting| setting.about.stats);
    for (name, _) in flags.chain(options) {
        assert!(told.contains(&format!("`{name}`")), "{name}");
    }
}

/// Who goes back to memcached has to leave out what it does not know. All of its flags have a letter.
#[test]
fn the_way_back_names_what_memcached_does_not_know() {
    let known = ["idle_timeout", "hashpower", "drop_privileges"];
    let named = section(
        "docs/operations.md",
        "**The way back:**",
        "These forms differ",
    );
    let flags = FLAGS.iter().map(|setting| setting.about);
    let flags = flags.filter(|about| about.short.is_none());
    let options = OPTIONS.iter().map(|setting| setting.about);
    let options =
        options.filter(|about| !about.name.starts_with("ssl_") && !known.contains(&about.name));
    for name in flags
        .map(About::typed)
        .chain(options.map(|about| about.name.to_owned()))
    {
        assert!(named.contains(&format!("`{name}`")), "{name}");
    }
}
