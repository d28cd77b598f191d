//! Tests of what a run of `nuthatch-lab figure` or `bench coherence` leaves behind: when it is asked to end, when it cannot
//! write, and where there is a result already.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const LAB: &str = env!("CARGO_BIN_EXE_nuthatch-lab");

/// A point.
const ECHO: &str = "[[run]]\nprogram = \"echo\"\nwords = '''\"{{\\\"y\\\": 2}}\"'''\n\
                    read = [{ series = \"a\", x = \"1\", y = \"{@y}\" }]\n";

/// How long something may take that takes no time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command of a shell's words.
fn shell(words: &str) -> String {
    format!(
        "[[run]]\nprogram = \"sh\"\nwords = '''-c \"{words}\"'''\n\
         read = [{{ series = \"c\", x = \"1\", y = \"{{@y}}\" }}]\n"
    )
}

/// A folder with figures' files, and one for what is found.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("cphash")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a figure's file, `5` or `8`: the program has these, so a report shows what was found.
    fn figure(&self, number: u32, more: &str) {
        let head = "source = \"CPHash, Figure\"\ntitle = \"T\"\npaper = \"P\"\n\
                    x = { label = \"x\" }\n";
        let y = match more.contains("y = { label") {
            true => "",
            false => "y = { label = \"y\" }\n",
        };
        let path = self.path(&format!("cphash/{number}.toml"));
        fs::write(path, format!("{head}{y}{more}")).unwrap();
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(LAB);
        let words = words.split_whitespace();
        command.args(words).current_dir(self.folder.path());
        command
    }

    fn run(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    fn figure_run(&self, options: &str) -> Output {
        self.run(&format!("figure cphash/5.toml --output found {options}"))
    }

    fn begun(&self) -> Child {
        let words = "figure cphash/5.toml --quick --output found";
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// What a file has once all of its line is there.
    fn line(&self, name: &str) -> String {
        let path = self.path(name);
        until(name, || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.strip_suffix('\n').map(str::to_owned)
        })
    }

    fn found(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.path("found").join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The names of what was written, with its contents.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = fs::read_dir(self.path("found/cphash")).unwrap();
        let paths = folder.map(|file| file.unwrap().path());
        let mut files: Vec<_> = paths
            .map(|path| {
                let bytes = fs::read(&path).unwrap();
                (path, bytes)
            })
            .collect();
        files.sort();
        files
    }

    fn report(&self) -> String {
        let output = self.run("report --from found");
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(self.path("report.html")).unwrap()
    }
}

/// Waits for something that comes soon.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// Waits until a process is gone. Nobody may reap it here: then it is dead all the same.
fn is_gone(pid: &str) {
    until(pid, || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let state = stat.map(|stat| stat[stat.rfind(')').unwrap()..].starts_with(") Z"));
        state.unwrap_or(true).then_some(())
    });
}

/// Class of fault: hours of measurements that a signal other than Ctrl-C's takes along, and commands that it leaves.
#[test]
fn each_signal_that_asks_for_the_end_keeps_what_was_measured() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let place = Place::new();
        let endless = shell("sleep 100000 & echo $! > pid; wait");
        place.figure(5, &format!("{ECHO}{endless}"));
        let running = place.begun();
        let pid = place.line("pid");
        // To this process alone, as `kill` sends it.
        send(&running, signal);
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{signal}: {output:?}");
        let said = text(&output.stderr);
        assert!(
            said.contains("interrupted: what was measured is kept"),
            "{said}"
        );
        is_gone(&pid);
        let found = place.found("cphash/5.json");
        assert_eq!(found["interrupted"], true);
        assert_eq!(found["points"].as_array().unwrap().len(), 1);
        assert!(found["gaps"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_hang_up_that_nohup_ignores_does_not_end_a_run() {
    let place = Place::new();
    place.figure(5, &shell("echo > begun; read line < go; echo 1"));
    let made = Command::new("mkfifo").arg(place.path("go")).status();
    assert!(made.unwrap().success());
    let line = format!("trap '' HUP; exec {LAB} figure cphash/5.toml --output found");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(place.folder.path());
    let mut running = command.stdout(Stdio::null()).spawn().unwrap();
    place.line("begun");
    send(&running, Signal::SIGHUP);
    // Open at both ends, so that nothing waits for a run that was ended.
    let go = File::options()
        .read(true)
        .write(true)
        .open(place.path("go"));
    let mut go = go.unwrap();
    go.write_all(b"\n").unwrap();
    // What it printed is no point, and the run went on to its end.
    assert_eq!(running.wait().unwrap().code(), Some(1));
    assert_eq!(place.found("cphash/5.json")["interrupted"], false);
}

#[test]
fn a_second_signal_ends_a_command_that_ignores_the_first() {
    let place = Place::new();
    let deaf = shell("trap '' INT TERM HUP; echo $$ > pid; sleep 100000");
    place.figure(5, &format!("{ECHO}{deaf}"));
    let mut running = place.begun();
    let pid = place.line("pid");
    // Two of them may arrive as one.
    until("its end", || {
        send(&running, Signal::SIGTERM);
        running.try_wait().unwrap()
    });
    is_gone(&pid);
    assert_eq!(place.found("cphash/5.json")["interrupted"], true);
}

/// Class of fault: a run that finds less destroys what was found.
#[test]
fn an_interrupted_run_destroys_nothing() {
    let place = Place::new();
    let interrupt = |figure: &str| {
        let _ = fs::remove_file(place.path("begun"));
        place.figure(5, figure);
        let running = place.begun();
        place.line("begun");
        send(&running, Signal::SIGTERM);
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        text(&output.stderr)
    };
    let endless = shell("echo > begun; sleep 100000");
    // Nothing is there, and nothing was measured.
    let said = interrupt(&endless);
    assert!(said.contains("interrupted: nothing was measured"), "{said}");
    assert!(place.files().is_empty());

    place.figure(5, ECHO);
    assert!(place.figure_run("--quick").status.success());
    let whole = place.files();
    assert_eq!(whole.len(), 3, "JSON, CSV, SVG");
    interrupt(&endless);
    assert_eq!(place.files(), whole);

    let said = interrupt(&format!("{ECHO}{endless}"));
    let beside = "is kept in found/cphash/5.interrupted.json; the whole run stays";
    assert!(said.contains(beside), "{said}");
    let files = place.files();
    assert_eq!(files.len(), 6);
    assert!(whole.iter().all(|file| files.contains(file)));
    let found = place.found("cphash/5.interrupted.json");
    assert_eq!(found["interrupted"], true);
    // It is a stranger to no report.
    assert!(!place.report().contains("The run was interrupted"));
}

#[test]
fn a_run_without_points_does_not_replace_one_with_points() {
    let place = Place::new();
    place.figure(5, ECHO);
    assert!(place.figure_run("--quick").status.success());
    let whole = place.files();
    place.figure(5, &shell("exit 3"));
    let output = place.figure_run("--quick");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("5.json stays as it was"), "{said}");
    assert_eq!(place.files(), whole);
}

#[test]
fn a_smaller_run_does_not_replace_a_larger_one() {
    let place = Place::new();
    place.figure(5, ECHO);
    assert!(place.figure_run("--smoke").status.success());
    assert!(place.figure_run("").status.success());
    let whole = place.files();
    for smaller in ["--smoke", "--quick"] {
        let output = place.figure_run(smaller);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        for words in ["5.json has a full run", "--output names another folder"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!said.contains("$ echo"), "{said}");
        assert_eq!(place.files(), whole);
    }
    assert!(place.figure_run("").status.success());
    assert!(
        place
            .run("figure cphash/5.toml --smoke --output other")
            .status
            .success()
    );
}

/// Class of fault: a drawing beside numbers that it does not show.
#[test]
fn a_drawing_goes_that_cannot_be_made_anew_and_the_next_figure_runs() {
    let place = Place::new();
    let svg = place.path("found/cphash/5.svg");
    place.figure(5, ECHO);
    assert!(place.figure_run("").status.success());
    assert!(svg.exists());
    let scale = "chart = \"dots\"\ny = { label = \"y\", scale = \"logarithmic\" }\n";
    let zero = ECHO.replace("y\\\": 2", "y\\\": 0");
    place.figure(5, &format!("{scale}{zero}"));
    place.figure(8, ECHO);
    let output = place.run("figure cphash/5.toml cphash/8.toml --output found");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("cphash/5: a value of a is not above 0"),
        "{said}"
    );
    assert!(!svg.exists());
    assert_eq!(place.found("cphash/5.json")["points"][0]["y"], 0.0);
    assert!(place.path("found/cphash/8.svg").exists());

    place.figure(5, ECHO);
    assert!(place.figure_run("").status.success());
    assert!(svg.exists());
    place.figure(5, &format!("chart = \"table\"\n{ECHO}"));
    assert!(place.figure_run("").status.success());
    assert!(!svg.exists());
}

/// Class of fault: what was measured is lost with what is printed of it.
#[test]
fn standard_output_that_is_full_costs_no_result() {
    let place = Place::new();
    place.figure(5, ECHO);
    place.figure(8, ECHO);
    let mut command = place.command("figure cphash/5.toml cphash/8.toml --output found");
    command.stdout(File::options().write(true).open("/dev/full").unwrap());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.matches("standard output: ").count(), 1, "{said}");
    assert_eq!(place.files().len(), 6);
}

#[test]
fn a_folder_that_cannot_be_written_is_noticed_before_anything_runs() {
    let place = Place::new();
    place.figure(5, ECHO);
    fs::write(place.path("file"), "").unwrap();
    for folder in ["file", "file/below", "/proc/absent"] {
        let output = place.run(&format!("figure cphash/5.toml --output {folder}"));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("--output: "), "{said}");
        assert!(!said.contains("$ echo"), "{said}");
    }
}

#[test]
fn too_many_commands_are_refused_before_anything_runs() {
    let place = Place::new();
    let values: Vec<usize> = (0..100).collect();
    let lists = ["a", "b", "c", "d"].map(|name| format!("each.{name} = {values:?}\n"));
    place.figure(5, ECHO);
    place.figure(8, &format!("{ECHO}{}", lists.concat()));
    let output = place.run("figure cphash/5.toml cphash/8.toml --output found");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    for words in ["cphash/8.toml: ", "100000000 combinations", "at most 10000"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!place.path("found").exists());
}

fn script(path: &Path, words: &str) {
    fs::write(path, format!("#!/bin/sh\n{words}\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Class of fault: a run of hours waits for ever for a program that was only asked who it is.
#[test]
fn a_program_that_does_not_tell_its_version_stops_nothing() {
    let place = Place::new();
    let needs = "needs = { programs = [\"memcached\"] }\n";
    place.figure(5, &ECHO.replace("[[run]]\n", &format!("[[run]]\n{needs}")));
    let path = place.path("memcached");
    // The second leaves a process behind, which has its output open.
    for (words, told) in [
        ("echo $$ > pid; sleep 100000", Value::Null),
        ("sleep 100000 & echo $! > pid; echo v9", "v9".into()),
    ] {
        script(&path, words);
        let mut command = place.command("figure cphash/5.toml --output found");
        let output = command.env("MEMCACHED", &path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(place.found("cphash/5.json")["versions"]["memcached"], told);
        is_gone(&place.line("pid"));
    }
}

/// Class of fault: a number that no file can keep, so that no report can read it.
#[test]
fn numbers_that_overflow_are_gaps() {
    let place = Place::new();
    let times =
        |times: &str| ECHO.replace("y = \"{@y}\"", &format!("y = \"{{@y}}\", times = {times}"));
    place.figure(5, &format!("{ECHO}{}{}", times("1e308"), times("nan")));
    let output = place.figure_run("--quick");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = text(&output.stdout);
    for times in ["1e308", "NaN"] {
        let words = format!("{{@y}}: 2 times {times} is no number");
        assert!(printed.contains(&words), "{words}: {printed}");
    }
    let found = place.found("cphash/5.json");
    assert_eq!(found["points"][0]["y"], 2.0);
    assert!(place.report().contains("times NaN is no number"));
}

#[test]
fn a_report_says_what_cannot_be_drawn() {
    let place = Place::new();
    let extreme = |series: &str, y: &str| {
        ECHO.replace("y\\\": 2", &format!("y\\\": {y}"))
            .replace("series = \"a\"", &format!("series = \"{series}\""))
    };
    let both = [extreme("a", "-1e308"), extreme("b", "1e308")].concat();
    for chart in ["lines", "dots", "bars"] {
        place.figure(5, &format!("chart = \"{chart}\"\n{both}"));
        let output = place.figure_run("--quick");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(place.found("cphash/5.json")["points"][1]["y"], 1e308);
        assert!(place.report().contains("It cannot be drawn: a value of"));
    }
}

/// Class of fault: a recorded program goes on for hours when nobody reads it any more.
#[test]
fn a_bench_that_is_ended_takes_what_it_records_along() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let place = Place::new();
        let valgrind = place.path("valgrind");
        script(&valgrind, "echo $$ > pid\nexec sleep 100000");
        let words = "bench coherence --recording new --engine lockhash";
        let mut command = place.command(words);
        command.env("VALGRIND", &valgrind).stderr(Stdio::null());
        let mut running = command.spawn().unwrap();
        let pid = place.line("pid");
        send(&running, signal);
        let status = running.wait().unwrap();
        assert!(!status.success(), "{signal}: {status}");
        is_gone(&pid);
    }
}
