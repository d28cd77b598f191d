//! Tests of `nuthatch-lab figure` and `report` from outside: what is written when all goes well, and when it does not.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

const LAB: &str = env!("CARGO_BIN_EXE_nuthatch-lab");

/// A command that prints a row for a series.
const ECHO: &str = r#"
[[run]]
program = "echo"
words = '''"[{{\"series\": \"a\", \"y\": 1}}, {{\"series\": \"b\", \"y\": 2}}]"'''
read = [{ rows = "[]", series = "{@series}", x = "1", y = "{@y}" }]
"#;

/// A folder with a figure's file, and one for what is found.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("cphash")).unwrap();
        fs::create_dir(folder.path().join("found")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a figure's file. It has the name of a figure that the program has, so that a report shows what it found.
    fn figure(&self, more: &str) {
        let head = "source = \"CPHash, Figure 5\"\ntitle = \"T\"\npaper = \"P\"\n\
                    x = { label = \"x\" }\ny = { label = \"y\" }\n";
        fs::write(self.path("cphash/5.toml"), format!("{head}{more}")).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LAB);
        command.args(words).current_dir(self.folder.path());
        command
    }

    /// Runs the figure in the file.
    fn run(&self) -> Output {
        let words = ["figure", "cphash/5.toml", "--quick", "--output", "found"];
        self.command(&words).output().unwrap()
    }

    fn report(&self) -> Output {
        let words = ["report", "--from", "found"];
        self.command(&words).output().unwrap()
    }

    fn found(&self) -> Value {
        let text = fs::read_to_string(self.path("found/cphash/5.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn page(&self) -> String {
        fs::read_to_string(self.path("report.html")).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_that_fails_or_cannot_run_leaves_a_gap_and_the_rest_goes_on() {
    let place = Place::new();
    let read = "read = [{ series = \"c\", x = \"1\", y = \"{@y}\" }]\n";
    let fails = format!("[[run]]\nwords = \"bench nonsense\"\n{read}");
    let large = format!("[[run]]\nwords = \"bench\"\nneeds = {{ cores = 100000 }}\n{read}");
    let absent =
        format!("[[run]]\nwords = \"bench\"\nneeds = {{ programs = [\"memcached\"] }}\n{read}");
    let hosts = format!("[[run]]\nwords = \"bench\"\nneeds = {{ namespaces = true }}\n{read}");
    place.figure(&format!("{fails}{large}{absent}{hosts}{ECHO}"));
    // No other program is there, so nothing makes namespaces.
    fs::create_dir(place.path("bin")).unwrap();
    symlink("/bin/echo", place.path("bin/echo")).unwrap();
    let words = ["figure", "cphash/5.toml", "--quick", "--output", "found"];
    let mut command = place.command(&words);
    let output = command
        .env("MEMCACHED", "/nowhere/memcached")
        .env("PATH", place.path("bin"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("commands failed: cphash/5"),
        "{output:?}"
    );
    let printed = text(&output.stdout);
    assert!(
        printed.contains("left out: needs 100000 cores"),
        "{printed}"
    );
    assert!(
        printed.contains("/nowhere/memcached is not installed (package memcached"),
        "{printed}"
    );
    assert!(
        printed.contains("needs network namespaces (as root): unshare"),
        "{printed}"
    );
    let found = place.found();
    let skipped: Vec<_> = found["gaps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gap| &gap["skipped"])
        .collect();
    assert_eq!(skipped, [true, true, true, false]);
    assert_eq!(found["points"].as_array().unwrap().len(), 2);
    assert_eq!(
        found["command"],
        "nuthatch-lab figure cphash/5.toml --quick"
    );
    let table = fs::read_to_string(place.path("found/cphash/5.csv")).unwrap();
    let mut rows = table.lines().filter(|line| !line.starts_with("# "));
    assert_eq!(rows.next(), Some("series,x,median,least,greatest,kind"));
    assert_eq!(rows.next(), Some("a,1,1,1,1,measured"));

    assert!(place.report().status.success());
    let page = place.page();
    assert!(page.contains("Failed: "), "{page}");
    assert!(page.contains("needs 100000 cores"), "{page}");
}

/// Class of fault: a number of which nobody knows what gave it.
#[test]
fn numbers_say_what_gave_them() {
    let place = Place::new();
    let memcached = place.path("memcached");
    fs::write(&memcached, "#!/bin/sh\necho memcached 9.9.9\n").unwrap();
    fs::set_permissions(&memcached, Permissions::from_mode(0o755)).unwrap();
    let needs = "needs = { programs = [\"memcached\"] }\n";
    place.figure(&ECHO.replace("[[run]]\n", &format!("[[run]]\n{needs}")));
    let words = ["figure", "cphash/5.toml", "--quick", "--output", "found"];
    let mut command = place.command(&words);
    let status = command.env("MEMCACHED", &memcached).status().unwrap();
    assert!(status.success());
    let found = place.found();
    assert_eq!(found["versions"]["memcached"], "memcached 9.9.9");
    for name in [
        "commit",
        "compiler",
        "kernel",
        "nuthatch",
        "processor",
        "rivals in process",
    ] {
        assert!(found["machine"][name].is_string(), "{name}: {found}");
    }
    let table = fs::read_to_string(place.path("found/cphash/5.csv")).unwrap();
    for line in [
        "# figure: cphash/5 (CPHash, Figure 5)",
        "# command: nuthatch-lab figure cphash/5.toml --quick",
        "# commit: ",
        "# memcached: memcached 9.9.9",
        "# processor: ",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    assert!(place.report().status.success());
    assert!(place.page().contains(", with memcached 9.9.9"));
}

/// What the machine lacks is a reason, and no failure.
#[test]
fn what_a_machine_lacks_leaves_a_gap_with_its_reason() {
    let place = Place::new();
    let run = |needs: &str| {
        format!(
            "[[run]]\nwords = \"bench\"\nread = [{{ series = \"c\", x = \"1\", y = \"{{@y}}\" }}]\nneeds = {needs}\n"
        )
    };
    let all = [
        run("{ memory = \"3G\" }"),
        run("{ programs = [\"traces\"] }"),
        run("{ options = { memcached = \"ssl_chain_cert\" } }"),
        run("{ command = \"bench nonsense\" }"),
    ];
    place.figure(&format!("{ECHO}{}", all.concat()));
    // A limit of 2 GB.
    let line = format!("ulimit -v 2000000; exec {LAB} figure cphash/5.toml --quick --output found");
    let output = Command::new("sh")
        .args(["-c", &line])
        .current_dir(place.folder.path())
        .env("MEMCACHED", "true")
        .env_remove("TRACES")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    for words in [
        "left out: needs 3G of memory, and ",
        "left out: the variable TRACES names no folder with traces of requests",
        "left out: true was built without ssl_chain_cert",
        "left out: exit status: 2: ",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert_eq!(place.found()["points"].as_array().unwrap().len(), 2);
}

#[test]
fn a_command_that_the_system_kills_is_told_as_such() {
    let place = Place::new();
    let killed = "[[run]]\nprogram = \"sh\"\nwords = \"-c 'kill -9 $$'\"\n\
                  read = [{ series = \"c\", x = \"1\", y = \"{@y}\" }]\n";
    place.figure(&format!("{ECHO}{killed}"));
    let output = place.run();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = text(&output.stdout);
    assert!(
        printed.contains("it was killed, as the system does where memory is short"),
        "{printed}"
    );
}

#[test]
fn a_part_of_what_a_command_prints_may_come_from_a_model() {
    let place = Place::new();
    let reads = r#"[{ rows = "[]", where = { series = "a" }, series = "a", x = "1", y = "{@y}" },
        { rows = "[]", where = { series = "b" }, series = "b", x = "1", y = "{@y}", modelled = true }]"#;
    let (command, _) = ECHO.split_once("read = ").unwrap();
    place.figure(&format!("{command}read = {reads}\n"));
    assert!(place.run().status.success());
    let table = fs::read_to_string(place.path("found/cphash/5.csv")).unwrap();
    let is_row = |line: &&str| !line.starts_with("# ");
    let rows: Vec<_> = table.lines().filter(is_row).skip(1).collect();
    assert_eq!(rows, ["a,1,1,1,1,measured", "b,1,2,2,2,modelled"]);
}

#[test]
fn a_wrong_file_is_refused_before_anything_runs() {
    let place = Place::new();
    for (more, complaint) in [
        ("colour = \"red\"\n", "unknown field `colour`"),
        (
            "[[statement]]\nseries = \"a\"\nabove = \"b\"\nwhenever = 1\n",
            "whenever",
        ),
        ("chart = \"cake\"\n", "unknown variant `cake`"),
        ("title = \n", "cphash/5.toml: "),
    ] {
        place.figure(&format!("{more}{ECHO}"));
        let output = place.run();
        assert_eq!(output.status.code(), Some(2), "{more}: {output:?}");
        assert!(
            text(&output.stderr).contains(complaint),
            "{more}: {output:?}"
        );
        assert!(!place.path("found/cphash").exists(), "{more}");
    }
    let output = place.command(&["figure", "absent.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn statements_are_judged_and_what_is_missing_is_said() {
    let place = Place::new();
    place.figure(&format!(
        "{ECHO}\n[[statement]]\nseries = \"a\"\nbelow = \"b\"\n\
         [[statement]]\nseries = \"a\"\nabove = \"b\"\nknown = \"so it is\"\n\
         [[statement]]\nseries = \"c\"\nabove = \"b\"\n"
    ));
    let output = place.run();
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    for line in [
        "  holds: a is below b (0.50)",
        "  DOES NOT HOLD: a is above b (0.50 at 1)",
        "    so it is",
        "  not judged: c is above b (there is no series c)",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

/// Class of fault: a statement that holds since the point that would refute it failed.
#[test]
fn a_point_that_failed_is_no_evidence() {
    let place = Place::new();
    let run = r#"
[[run]]
program = "sh"
words = "-c 'test {threads} = 1 && echo 3'"
each.threads = [1, 2]
read = [{ series = "a", x = "{threads}", y = "{@$}" }]
"#;
    let statements = "[[statement]]\nseries = \"a\"\nlevel = 0.1\n\
                      [[statement]]\nseries = \"a\"\nbetween = [0, 9]\n\
                      [[statement]]\nseries = \"a\"\nbetween = [0, 9]\nat = 1\n";
    place.figure(&format!("{run}{statements}"));
    assert_eq!(place.run().status.code(), Some(1));
    let found = place.found();
    let verdicts = &found["verdicts"];
    for number in [0, 1] {
        assert_eq!(verdicts[number]["holds"], Value::Null, "{verdicts}");
        let because = "a has no point at 2: its command failed";
        assert_eq!(verdicts[number]["because"], because);
    }
    assert_eq!(verdicts[2]["holds"], true);
}

/// Class of fault: a lower bound that is drawn and judged as a measurement.
#[test]
fn a_point_that_does_not_count_is_left_out_with_its_reason() {
    let place = Place::new();
    let valid = "valid = { is = \"{@kept}\", otherwise = \"the rate was not kept\" }";
    let run = |kept: &str| {
        ECHO.replace(
            "\\\"y\\\": 2",
            &format!("\\\"y\\\": 2, \\\"kept\\\": {kept}"),
        )
        .replace("\\\"y\\\": 1", "\\\"y\\\": 1, \\\"kept\\\": true")
        .replace("y = \"{@y}\"", &format!("y = \"{{@y}}\", {valid}"))
    };
    let statement = "[[statement]]\nseries = \"a\"\nbelow = \"b\"\n";
    place.figure(&format!("{}{statement}", run("false")));
    let output = place.run();
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    let left_out = "left out: b at 1: the rate was not kept";
    assert!(printed.contains(left_out), "{printed}");
    let found = place.found();
    assert_eq!(found["points"].as_array().unwrap().len(), 1);
    assert_eq!(found["verdicts"][0]["holds"], Value::Null);
    let because = "b has no point at 1: the rate was not kept";
    assert_eq!(found["verdicts"][0]["because"], because);

    place.figure(&run("3"));
    let output = place.run();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = text(&output.stdout);
    assert!(printed.contains("neither true nor false"), "{printed}");
}

#[test]
fn what_a_command_warns_of_stands_beside_its_points() {
    let place = Place::new();
    let warning = "\\\"y\\\": 2, \\\"warning\\\": \\\"it is <old>\\\"";
    place.figure(&ECHO.replace("\\\"y\\\": 2", warning));
    let output = place.run();
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    assert!(printed.contains("warning: it is <old>"), "{printed}");
    assert_eq!(place.found()["notes"], json!(["it is <old>"]));
    assert!(place.report().status.success());
    let page = place.page();
    assert!(
        page.contains("A command warns: it is &lt;old&gt;"),
        "{page}"
    );
}

/// Ctrl-C reaches all processes of a terminal.
#[test]
fn ctrl_c_keeps_what_was_measured() {
    let place = Place::new();
    let endless = "[[run]]\nprogram = \"sleep\"\nwords = \"100000\"\n\
                   read = [{ series = \"c\", x = \"1\", y = \"{@y}\" }]\n";
    place.figure(&format!("{ECHO}{endless}"));
    let words = ["figure", "cphash/5.toml", "--quick", "--output", "found"];
    let mut command = place.command(&words);
    command
        .process_group(0)
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut running = command.spawn().unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let begun = lines.find(|line| line.as_ref().unwrap().ends_with("$ sleep 100000"));
    assert!(begun.is_some());
    let group = Pid::from_raw(running.id() as i32);
    // A signal between the line and the start of the command reaches only one of the two, so it is repeated.
    let status = loop {
        killpg(group, Signal::SIGINT).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        if let Some(status) = running.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(1));
    let last = lines.last().unwrap().unwrap();
    assert!(
        last.contains("interrupted: what was measured is kept"),
        "{last}"
    );
    let found = place.found();
    assert_eq!(found["interrupted"], true);
    assert_eq!(found["points"].as_array().unwrap().len(), 2);
    assert_eq!(found["gaps"], json!([]));
    let missing = json!([{ "series": "c", "x": 1.0, "why": "the run was interrupted" }]);
    assert_eq!(found["missing"], missing);

    assert!(place.report().status.success());
    assert!(place.page().contains("The run was interrupted"));
}

#[test]
fn a_full_disk_is_said_and_what_was_there_stays() {
    let place = Place::new();
    place.figure(ECHO);
    fs::create_dir(place.path("found/cphash")).unwrap();
    symlink("/dev/full", place.path("found/cphash/5.json")).unwrap();
    let output = place.run();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("No space left"), "{output:?}");

    fs::remove_file(place.path("found/cphash/5.json")).unwrap();
    assert!(place.run().status.success());
    fs::write(place.path("report.html"), "old").unwrap();
    let words = ["report", "--from", "found", "--output", "/dev/full"];
    let output = place.command(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("/dev/full: No space left"),
        "{output:?}"
    );
    assert_eq!(place.page(), "old");
}

#[test]
fn a_report_has_every_figure_also_those_that_were_not_run() {
    let place = Place::new();
    let output = place.report();
    assert!(output.status.success(), "{output:?}");
    let page = place.page();
    let list = place.command(&["figure", "list"]).output().unwrap();
    for line in text(&list.stdout).lines() {
        let name = line.split_whitespace().next().unwrap();
        let again = page.contains(&format!("nuthatch-lab figure {name} --quick"));
        let not_here = line.ends_with("(cannot be run here)");
        assert_eq!(again, !not_here, "{name}");
    }
    assert!(page.contains("What the README says"));
    // Nothing is loaded from elsewhere, and nothing runs.
    for word in ["http:", "src=", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    let absent = place
        .command(&["report", "--from", "absent"])
        .output()
        .unwrap();
    assert_eq!(absent.status.code(), Some(2), "{absent:?}");
}

#[test]
fn a_figure_that_cannot_be_run_says_why() {
    let place = Place::new();
    place.figure("why = \"it needs eight sockets\"");
    let output = place.run();
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stdout);
    assert!(
        said.contains("cannot be run here: it needs eight sockets"),
        "{said}"
    );
    assert!(!place.path("found/cphash").exists());
    // One of the program's own.
    let words = ["report", "--from", "found", "--into", "papers.md"];
    let document = "<!-- figures: begin -->\n<!-- figures: end -->\n";
    fs::write(place.path("papers.md"), document).unwrap();
    assert!(place.command(&words).status().unwrap().success());
    let row = "| it measures a whole machine of its time under";
    assert!(
        fs::read_to_string(place.path("papers.md"))
            .unwrap()
            .contains(row)
    );
    assert!(
        place
            .page()
            .contains("It cannot be run here: </strong>it measures a whole")
    );
}

/// A run of the figure on a machine of this name.
fn run_on(place: &Place, machine: &str, name: &str) {
    let mut found = place.found();
    found["figure"] = json!(name);
    found["machine"]["processor"] = json!(machine);
    let path = place.path("found").join(name).with_added_extension("json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, found.to_string()).unwrap();
}

#[test]
fn files_that_cannot_be_used_are_named_and_the_rest_is_shown() {
    let place = Place::new();
    place.figure(ECHO);
    assert!(place.run().status.success());
    run_on(&place, "another", "cphash/8");
    run_on(&place, "a third", "nobody/1");
    let write = |name: &str, text: &str| fs::write(place.path("found").join(name), text).unwrap();
    write("cphash/9.json", "{\"figure\": \"cphash/9\", ");
    write(
        "cphash/10.json",
        "{\"figure\": \"cphash/10\", \"points\": []}",
    );
    let mut other = place.found();
    other["format"] = json!(1000);
    write("cphash/batch.json", &other.to_string());
    fs::create_dir_all(place.path("found/memc3")).unwrap();
    write("memc3/7.json", &place.found().to_string());

    let output = place.report();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    for words in [
        "found/cphash/9.json: no result of a figure: EOF",
        "found/cphash/10.json: of an older nuthatch-lab: format 0",
        "found/cphash/batch.json: of a newer nuthatch-lab: format 1000",
        "found/memc3/7.json: of another figure: cphash/5",
        "found/nobody/1.json: of no figure",
        "files that could not be used: 5",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let page = place.page();
    assert_eq!(page.matches("cannot be used").count(), 4);
    assert_eq!(page.matches("class=\"chart wide\"").count(), 2);
    assert!(page.contains("2 different machines"));
}

#[test]
fn hostile_text_stays_text() {
    let place = Place::new();
    let hostile = "<script>alert(1)</script>&amp;\"'|";
    place.figure(ECHO);
    assert!(place.run().status.success());
    let mut found = place.found();
    found["points"][0]["series"] = json!(hostile);
    found["points"][0]["x"] = json!(hostile);
    found["command"] = json!(hostile);
    found["machine"][hostile] = json!(hostile);
    found["gaps"] = json!([{ "command": hostile, "reason": hostile, "skipped": false }]);
    fs::write(place.path("found/cphash/5.json"), found.to_string()).unwrap();
    let document = "# Papers\n\n<!-- figures: begin -->\nold\n<!-- figures: end -->\n";
    fs::write(place.path("papers.md"), document).unwrap();
    let words = ["report", "--from", "found", "--into", "papers.md"];
    let output = place.command(&words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = place.page();
    assert!(!page.contains("<script"), "{page}");
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;&quot;"),
        "{page}"
    );
    let papers = fs::read_to_string(place.path("papers.md")).unwrap();
    assert!(
        papers.contains("| [Figure 5](../lab/figures/cphash/5.toml)"),
        "{papers}"
    );
    assert!(
        !papers.contains("<script") && !papers.contains("\nold\n"),
        "{papers}"
    );
}

/// Class of fault: a document's numbers that are replaced by nothing, or by worthless ones.
#[test]
fn a_document_shows_the_figures_that_its_marks_name() {
    let place = Place::new();
    place.figure(ECHO);
    assert!(place.run().status.success());
    let mark = |name: &str| {
        format!("<!-- figures: begin {name}. Written -->\nold\n<!-- figures: end -->\n")
    };
    let report = |document: &str| {
        fs::write(place.path("engines.md"), document).unwrap();
        let words = ["report", "--from", "found", "--into", "engines.md"];
        let output = place.command(&words).output().unwrap();
        (
            output,
            fs::read_to_string(place.path("engines.md")).unwrap(),
        )
    };
    let both = [mark("cphash/5"), mark("cphash/5 cphash/8")].concat();
    let (output, written) = report(&both);
    assert!(output.status.success(), "{output:?}");
    let (first, second) = written.split_once("<!-- figures: end -->").unwrap();
    assert!(
        first.contains("| 1 | 1 | 2 |") && first.contains("](../lab/figures/cphash/5.toml)"),
        "{first}"
    );
    assert!(!first.contains("old"), "{first}");
    // A figure that was not run leaves its part as it is.
    assert!(second.contains("Written -->\nold\n<!--"), "{second}");
    let said = text(&output.stderr);
    assert!(
        said.contains("engines.md: cphash/8: it was not run; what stands there stays"),
        "{said}"
    );

    let absent = mark("cphash/absent");
    let (output, written) = report(&absent);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("engines.md: cphash/absent: no figure"),
        "{output:?}"
    );
    assert_eq!(written, absent);
}

#[test]
fn a_document_without_marks_is_left_alone() {
    let place = Place::new();
    fs::write(place.path("papers.md"), "# Papers\n").unwrap();
    let words = ["report", "--from", "found", "--into", "papers.md"];
    let output = place.command(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("papers.md: no lines"),
        "{output:?}"
    );
    assert_eq!(
        fs::read_to_string(place.path("papers.md")).unwrap(),
        "# Papers\n"
    );
}

/// The smoke size of every figure: its commands work. Those that cannot run here say so.
#[test]
fn every_figure_runs_in_its_smoke_size() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["figure", "--all", "--smoke", "--output"];
    let output = Command::new(LAB)
        .args(words)
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(Path::new(&folder.path().join("cphash/5.json")).is_file());
}
