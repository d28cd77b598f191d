//! Tests of `nuthatch-lab hash` from outside: what it prints, what it refuses, what it leaves behind.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const LAB: &str = env!("CARGO_BIN_EXE_nuthatch-lab");

fn run(words: &[&str]) -> Output {
    Command::new(LAB).arg("hash").args(words).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn help_and_version_that_cannot_be_written_are_a_failure() {
    for word in ["-V", "-h", "--help"] {
        let full = fs::File::options().write(true).open("/dev/full");
        let output = Command::new(LAB).arg(word).stdout(full.unwrap()).output();
        refused(&output.unwrap(), 1, "standard output: No space left");
    }
}

/// Asserts that it ends with this code, prints why in one line on standard error, and nothing on standard output.
fn refused(output: &Output, code: i32, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(why), "`{why}` in {said}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Analyses keys that come on standard input.
fn analyze(keys: &[u8], words: &[&str]) -> Output {
    let mut child = Command::new(LAB)
        .args(["hash", "analyze", "--keys", "-"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its options does not read its input; then the pipe may be closed.
    let _ = child.stdin.take().unwrap().write_all(keys);
    child.wait_with_output().unwrap()
}

fn numbers(count: u64) -> Vec<u8> {
    let lines: String = (0..count).map(|number| format!("{number}\n")).collect();
    lines.into_bytes()
}

/// The value of a field in a line of JSON.
fn field(line: &serde_json::Value, name: &str) -> f64 {
    line[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} in {line}"))
}

fn json(output: &Output) -> Vec<serde_json::Value> {
    let text = stdout(output);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn json_has_one_object_a_function() {
    for buckets in ["auto", "16384"] {
        let words = ["--format", "u64", "--json", "--buckets", buckets];
        let lines = json(&analyze(&numbers(10_000), &words));
        assert!(lines.len() > 10);
        for line in &lines {
            assert_eq!(field(line, "buckets"), 16_384.0);
            assert_eq!(field(line, "items"), 10_000.0);
            for name in [
                "searched_hit",
                "searched_miss",
                "chi_squared",
                "ns_per_key",
                "largest",
            ] {
                assert!(field(line, name).is_finite());
            }
            let rows = line["histogram"].as_array().unwrap();
            let sum = |name| {
                rows.iter()
                    .map(|row| row[name].as_u64().unwrap())
                    .sum::<u64>()
            };
            assert_eq!((sum("buckets"), sum("items")), (16_384, 10_000));
            let empty = rows[0]["buckets"].as_u64().unwrap();
            assert_eq!(line["used_buckets"].as_u64(), Some(16_384 - empty));
        }
        let find = |name: &str| lines.iter().find(|line| line["function"] == name).unwrap();
        // Consecutive numbers: identity keeps them apart, and a 64-bit word needs a larger constant.
        assert_eq!(field(find("identity"), "largest"), 1.0);
        assert_eq!(field(find("identity"), "searched_miss"), 0.0);
        assert!(field(find("mult-top-64"), "largest") > 1000.0);
        let perfect = 1.0 + 9_999.0 / 32_768.0;
        assert!((field(find("rapidhash-seeded"), "searched_hit") - perfect).abs() < 0.02);
        assert_eq!(
            lines
                .iter()
                .filter(|line| line["recommended"] == true)
                .count(),
            1
        );
        assert_eq!(lines[0]["recommended"], true);
    }
}

#[test]
fn text_has_the_papers_histogram_and_one_line_of_advice() {
    let text = stdout(&analyze(
        &numbers(1000),
        &["--format", "u64", "--functions", "xxh3,identity"],
    ));
    assert_eq!(text.matches("hash table histogram:").count(), 2);
    assert!(
        text.contains("size    buckets       items sum-pct"),
        "{text}"
    );
    assert!(text.contains("hash table contains 1000 objects"));
    let advice = text.lines().last().unwrap();
    assert!(advice.starts_with("take identity: "), "{advice}");
}

#[test]
fn a_collector_and_an_analysis_are_joined_by_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (mut names, mut pages) = (0, 0);
    for directory in 0..20 {
        let path = folder.path().join(format!("directory-{directory}"));
        fs::create_dir(&path).unwrap();
        names += 1;
        for file in 0..directory {
            fs::write(path.join(format!("file\n{file}")), vec![1; file * 3000]).unwrap();
            names += 1;
            pages += (file * 3000).div_ceil(4096);
        }
    }
    let root = folder.path().to_str().unwrap();
    for (kind, keys) in [
        ("dentries", names),
        ("inodes", names + 1),
        ("page-cache", pages),
    ] {
        let collected = run(&["collect", kind, root]);
        let text = stdout(&collected);
        assert!(
            text.ends_with(&format!("# end: {keys}\n")),
            "{kind}: {text}"
        );
        // The file contains its format.
        let lines = json(&analyze(&collected.stdout, &["--json"]));
        assert_eq!(field(&lines[0], "items"), keys as f64, "{kind}");
        // A part of the file is analysed, with a warning that it is a part.
        let part = text.lines().take(10).collect::<Vec<_>>().join("\n");
        let analysed = analyze(part.as_bytes(), &[]);
        assert!(analysed.status.success());
        assert!(String::from_utf8_lossy(&analysed.stderr).contains("no end mark after 9 keys"));
    }
    let limited = stdout(&run(&["collect", "dentries", root, "--limit", "7"]));
    assert_eq!(limited.lines().count(), 7 + 2);
    // Keys of kernels of the paper's time, from the same tree.
    for (kind, keys) in [("swap-cache", pages), ("ext2-inodes", names + 1)] {
        let text = stdout(&run(&["collect", kind, root]));
        assert!(
            text.ends_with(&format!("# end: {keys}\n")),
            "{kind}: {text}"
        );
    }
    let blocks = run(&["collect", "ext2-blocks", root]);
    let lines = json(&analyze(
        &blocks.stdout,
        &["--json", "--functions", "buffer-xor,mult-11"],
    ));
    // Each directory has a group of its own: two bitmaps, a block of inodes and one of names, or more.
    assert!(field(&lines[0], "items") >= 21.0 * 4.0, "{}", lines[0]);
}

#[test]
fn numbers_of_threads_and_users_are_collected() {
    for (kind, function) in [("pids", "task-xor"), ("uids", "task-xor")] {
        let collected = run(&["collect", kind]);
        let text = stdout(&collected);
        assert!(text.starts_with("# nuthatch keys: u64\n"), "{text}");
        let lines = json(&analyze(
            &collected.stdout,
            &["--json", "--functions", function],
        ));
        assert!(field(&lines[0], "items") >= 2.0, "{kind}");
    }
    let limited = stdout(&run(&["collect", "uids", "--limit", "1"]));
    assert_eq!(limited.lines().count(), 1 + 2);
}

#[test]
fn searches_hit_as_often_as_asked() {
    let words = [
        "--format",
        "u64",
        "--json",
        "--buckets",
        "256",
        "--functions",
        "hash_64",
    ];
    let words = |ratio: &'static str| [&words[..], &["--hit-ratio", ratio]].concat();
    for ratio in ["0", "0.03", "1"] {
        let lines = json(&analyze(&numbers(10_000), &words(ratio)));
        assert_eq!(field(&lines[0], "hit_ratio"), ratio.parse::<f64>().unwrap());
        assert!(field(&lines[0], "ns_per_search") > 0.0);
    }
    for ratio in ["1.5", "-0.1", "half"] {
        let why = if ratio == "-0.1" {
            "unexpected argument"
        } else {
            "a share from 0 to 1"
        };
        refused(&analyze(&numbers(10), &words(ratio)), 2, why);
    }
}

#[test]
fn a_pruned_cache_searches_less_and_hits_less() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..700 {
        fs::write(folder.path().join(format!("file-{file}")), "").unwrap();
    }
    let root = folder.path().to_str().unwrap();
    let words = [
        "shrink",
        "--root",
        root,
        "--objects",
        "700",
        "--buckets",
        "256",
    ];
    let more = ["--runs", "2", "--searches", "5000"];
    let rows = json(&run(&[&words[..], &more, &["--json"]].concat()));
    assert_eq!(rows.len(), 1 + 6 + 6);
    let kept: Vec<f64> = rows[..7].iter().map(|row| field(row, "kept")).collect();
    assert_eq!(kept, [700.0, 600.0, 500.0, 400.0, 300.0, 200.0, 100.0]);
    assert_eq!(field(&rows[0], "hit_ratio"), 1.0);
    // Pruning the oldest loses fewer hits than pruning any.
    for number in 1..7 {
        let (oldest, any) = (&rows[number], &rows[number + 6]);
        assert_eq!(
            (&oldest["policy"], &any["policy"]),
            (&"oldest".into(), &"any".into())
        );
        assert!(
            field(oldest, "hit_ratio") > field(any, "hit_ratio"),
            "{oldest} {any}"
        );
    }
    assert!(stdout(&run(&[&words[..], &more].concat())).contains("oldest"));
    refused(
        &run(&[&words[..], &["--function", "md5"]].concat()),
        2,
        "no md5",
    );
    refused(
        &run(&["shrink", "--buckets", "1000"]),
        2,
        "not a power of two",
    );
    refused(
        &run(&["shrink", "--theta", "many"]),
        2,
        "an exponent from 0 to 10",
    );
}

#[test]
fn a_table_has_the_papers_columns() {
    let folder = tempfile::tempdir().unwrap();
    for directory in 0..20 {
        let path = folder.path().join(format!("directory-{directory}"));
        fs::create_dir(&path).unwrap();
        for file in 0..20 {
            fs::write(path.join(format!("file-{file}")), vec![1; 9000]).unwrap();
        }
    }
    let root = folder.path().to_str().unwrap();
    for (number, kernels) in [("1", 9), ("2", 3), ("3", 11), ("4", 9), ("5", 6)] {
        let words = ["table", number, "--root", root, "--objects", "150"];
        let more = ["--runs", "4", "--searches", "2000", "--json"];
        let rows = json(&run(&[&words[..], &more].concat()));
        assert_eq!(rows.len(), kernels, "{number}");
        for row in &rows {
            let of = |name: &str| field(row, name);
            assert_eq!((of("objects"), of("runs")), (150.0, 4.0), "{row}");
            assert!(
                of("maximum") >= of("average") && of("maximum") >= of("first"),
                "{row}"
            );
            assert!(
                of("elapsed_seconds") > 0.0 && of("deviation_without_first") >= 0.0,
                "{row}"
            );
            assert_eq!(row["buckets"].is_null(), row["kernel"] == "rbtree", "{row}");
        }
        assert_eq!(rows[0]["ratio"], 1.0);
    }
    let text = stdout(&run(&[
        "table",
        "5",
        "--root",
        root,
        "--objects",
        "100",
        "--runs",
        "2",
        "--searches",
        "100",
    ]));
    assert!(
        text.contains("Table 5: the inode cache: 100 objects"),
        "{text}"
    );
    refused(&run(&["table", "6"]), 2, "6");
    refused(
        &run(&["table", "3", "--objects", "40000"]),
        2,
        "37256 blocks",
    );
    refused(&run(&["table", "1", "--runs", "1"]), 2, "--runs");
}

#[test]
fn blocks_come_from_the_file_system_or_it_is_said_to_have_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::File::create(folder.path().join("file"))
        .and_then(|mut file| {
            file.write_all(&vec![1; 100_000])?;
            file.sync_all()
        })
        .unwrap();
    let output = run(&["collect", "blocks", folder.path().to_str().unwrap()]);
    match output.status.code() {
        Some(0) => {
            let lines = json(&analyze(&output.stdout, &["--json", "--format", "block"]));
            assert!(field(&lines[0], "items") >= 25.0, "{lines:?}");
        }
        _ => refused_late(&output, "FIEMAP"),
    }
}

/// Asserts that it ends with 1 after it had begun to write.
fn refused_late(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(why), "`{why}` in {said}");
}

#[test]
fn bad_keys_end_with_1() {
    for (keys, words, why) in [
        (&b""[..], &["--format", "u64"][..], "no keys"),
        (b"# nothing\n\n", &["--format", "u64"], "no keys"),
        (b"7\n", &["--format", "u64"], "one key says nothing"),
        (
            b"7\n",
            &["--format", "u64", "--buckets", "8"],
            "one key says nothing",
        ),
        (b"7\n7\n7\n", &["--format", "u64"], "all 3 keys are equal"),
        (
            b"7\n7\n7\n",
            &["--format", "u64", "--buckets", "8"],
            "all 3 keys are equal",
        ),
        (
            b"7\nseven\n",
            &["--format", "u64"],
            "line 2: `seven` is not a number",
        ),
        (
            b"1 2 3\n",
            &["--format", "inode"],
            "two numbers are expected, not 3",
        ),
        (
            b"abc\n",
            &["--format", "hex"],
            "not an even number of hexadecimal digits",
        ),
        (b"123456789", &["--format", "u64le"], "1 bytes into a key"),
        (
            b"same\nsame",
            &["--format", "lines"],
            "all 2 keys are equal",
        ),
    ] {
        refused(&analyze(keys, words), 1, why);
    }
    refused(
        &run(&["analyze", "--keys", "/no/such/file"]),
        1,
        "/no/such/file: No such file",
    );
    refused(&run(&["analyze", "--keys", "/"]), 1, "a directory");
}

#[test]
fn bad_usage_ends_with_2() {
    for (words, why) in [
        (&["--buckets", "0"][..], "holds nothing"),
        (&["--buckets", "-1"], "unexpected argument"),
        (&["--buckets", "many"], "a number of buckets, or auto"),
        (&["--buckets", "8589934592"], "at most"),
        (&["--buckets", "4294967296"], "name fewer"),
        (&["--format", "words"], "invalid value"),
        (&["--functions", "md5"], "no md5; there are: page-shift-add"),
        (
            &["--functions", "buffer-xor", "--format", "u64"],
            "takes no number keys",
        ),
        (
            &[
                "--functions",
                "mult-11",
                "--format",
                "u64",
                "--buckets",
                "1000",
            ],
            "1000 buckets: not a power of two (the next are 512 and 1024)",
        ),
    ] {
        refused(&analyze(b"1\n2\n", words), 2, why);
    }
    refused(
        &analyze(b"# nuthatch keys: inode\n1 2\n", &["--format", "block"]),
        2,
        "of the format inode",
    );
    refused(&run(&["analyze"]), 2, "--keys");
    refused(&run(&["size", "--memory", "none"]), 2, "a size such as 64M");
    refused(
        &run(&["size", "--memory", "64M", "--items", "0"]),
        2,
        "--items",
    );
}

#[test]
fn a_table_that_is_no_power_of_two_leaves_the_masks_out() {
    let output = analyze(&numbers(3000), &["--format", "u64", "--buckets", "1000"]);
    let text = stdout(&output);
    assert!(
        text.contains("left out, since they need a power of two: steiner, mult-11"),
        "{text}"
    );
    assert!(text.contains("3000 number keys in 1000 buckets"));
}

#[test]
fn keys_with_any_byte() {
    let hex: String = (0..300)
        .map(|number| format!("{number:04x}000a\n"))
        .collect();
    let lines = json(&analyze(hex.as_bytes(), &["--format", "hex", "--json"]));
    assert_eq!(field(&lines[0], "items"), 300.0);
    let binary: Vec<u8> = (0..300_u64)
        .flat_map(|number| (number * 10).to_le_bytes())
        .collect();
    let lines = json(&analyze(&binary, &["--format", "u64le", "--json"]));
    assert_eq!(field(&lines[0], "items"), 300.0);
    // In `lines` any byte but a newline is part of a key, and equal keys count once.
    let words = ["--format", "lines", "--json", "--functions", "fnv-1a"];
    let lines = json(&analyze(b"a\0b\n\n#\na\0b\n\xff", &words));
    assert_eq!(field(&lines[0], "items"), 4.0);
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, out) = (folder.path().join("tree"), folder.path().join("out"));
    for path in [&tree, &tree.join("closed"), &out] {
        fs::create_dir(path).unwrap();
    }
    fs::write(tree.join("seen"), "x").unwrap();
    let keys = out.join("keys");
    let collect = |more: &[&str]| {
        let words = [
            "collect",
            "dentries",
            tree.to_str().unwrap(),
            "-o",
            keys.to_str().unwrap(),
        ];
        run(&[&words[..], more].concat())
    };
    assert!(collect(&[]).status.success());
    let before = fs::read_to_string(&keys).unwrap();
    assert!(before.ends_with("# end: 2\n"), "{before}");

    // With a directory that cannot be read the old file stays, unless unreadable entries may be skipped. Root can read
    // all.
    fs::set_permissions(tree.join("closed"), PermissionsExt::from_mode(0o000)).unwrap();
    if fs::read_dir(tree.join("closed")).is_err() {
        fs::write(tree.join("another"), "x").unwrap();
        refused(&collect(&[]), 1, "closed");
        assert_eq!(fs::read_to_string(&keys).unwrap(), before);
        assert!(collect(&["--skip-unreadable"]).status.success());
        assert!(fs::read_to_string(&keys).unwrap().ends_with("# end: 3\n"));
    }
    fs::set_permissions(tree.join("closed"), PermissionsExt::from_mode(0o755)).unwrap();

    // A figure of keys that turn out to be bad is not begun.
    let svg = out.join("figure.svg");
    let words = ["--format", "u64", "--svg", svg.to_str().unwrap()];
    refused(&analyze(b"1\nx\n", &words), 1, "line 2");
    assert!(analyze(&numbers(100), &words).status.success());
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    // A figure that cannot be written: nothing was printed either.
    let words = ["--format", "u64", "--svg", "/no/such/folder/figure.svg"];
    refused(&analyze(&numbers(100), &words), 1, "/no/such/folder");
    assert_eq!(names(&out), ["figure.svg", "keys"]);
    refused(
        &run(&["collect", "inodes", "/no/such/root"]),
        1,
        "/no/such/root",
    );
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_reader_may_leave() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..2000 {
        fs::write(
            folder
                .path()
                .join(format!("a-file-with-a-long-name-{file}")),
            "",
        )
        .unwrap();
    }
    let mut child = Command::new(LAB)
        .args(["hash", "collect", "dentries"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn sizes_of_the_papers_machine() {
    let text = stdout(&run(&["size", "--memory", "64M", "--items", "16384"]));
    assert!(text.contains("Linux 2.2.16 (from pages)"), "{text}");
    assert!(
        text.contains("room for one item in 4 KiB of memory"),
        "{text}"
    );
    let lines = json(&run(&[
        "size", "--memory", "64M", "--items", "16384", "--json",
    ]));
    let pages = |rule: &str| {
        let is = |line: &&serde_json::Value| {
            line["table"] == "page cache" && line["rule"].as_str().unwrap().contains(rule)
        };
        lines.iter().find(is).unwrap()["buckets"].as_u64().unwrap()
    };
    assert_eq!(pages("2.2.5"), 2048);
    assert_eq!(pages("from pages"), 16_384);
    assert_eq!(pages("half"), 8192);
    assert_eq!(pages("a quarter"), 4096);
    // This machine's own memory.
    assert!(stdout(&run(&["size"])).contains("MiB of memory"));
}

#[test]
fn figures_are_drawn_from_any_tree() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    for directory in 0..30 {
        let path = tree.join(format!("directory-{directory}"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..10 {
            fs::write(path.join(format!("file-{file}")), vec![1; 9000]).unwrap();
        }
    }
    let figures = folder.path().join("figures");
    let (root, to) = (tree.to_str().unwrap(), figures.to_str().unwrap());
    let text = stdout(&run(&[
        "figures", "--quick", "--root", root, "--output", to,
    ]));
    for title in [
        "Histograms 1 and 3",
        "Histogram 5",
        "Table 1",
        "Table 5",
        "Section 4",
    ] {
        assert!(text.contains(title), "{title}");
    }
    let drawn = names(&figures);
    for name in [
        "histograms-1-3.svg",
        "histograms-2-4.svg",
        "search-lengths.svg",
        "table-3.svg",
    ] {
        assert!(
            drawn.iter().any(|other| other == name),
            "{name} in {drawn:?}"
        );
    }
    let words = [
        "figures", "--quick", "--json", "--root", root, "--output", to,
    ];
    let lines = json(&run(&words));
    let histogram = lines
        .iter()
        .find(|line| line["figure"] == "histograms-2-4")
        .unwrap();
    assert_eq!(field(&histogram["histogram"][15], "size"), 15.0);
    assert!(lines.iter().any(|line| line["kernel"] == "rbtree"));
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let refused = run(&[
        "figures",
        "--quick",
        "--root",
        empty.to_str().unwrap(),
        "--output",
        to,
    ]);
    assert_eq!(refused.status.code(), Some(1));
}
