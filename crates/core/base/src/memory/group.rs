//! How much memory the control groups of this process leave it: in a container that may be less than the machine has, and
//! the kernel kills a process that takes more without a word.

/// The tree of groups of the second version; those of the first have a tree for memory alone.
const TREE: &str = "/sys/fs/cgroup";

/// The names of a group's files: its limit, the bytes in use, and the part of these that is files' pages, which can be
/// reclaimed.
struct Names {
    limit: &'static str,
    used: &'static str,
    files: &'static str,
}

const FIRST: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    files: "total_inactive_file ",
};

const SECOND: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    files: "inactive_file ",
};

/// Bytes that the groups of this process leave it; `None` if no group has a limit.
pub fn available() -> Option<u64> {
    least(&own()?, left, read)
}

/// Bytes that the groups of this process may have; `None` if no group has a limit.
pub fn limit() -> Option<u64> {
    least(&own()?, allowed, read)
}

/// The groups of this process.
fn own() -> Option<String> {
    read("/proc/self/cgroup")
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The least that `of` tells of any of the groups, or of any group around them. `groups` is the text of
/// `/proc/self/cgroup`, and `read` reads a file by its name.
fn least<R: Fn(&str) -> Option<String>>(
    groups: &str,
    of: impl Fn(&str, &Names, &R) -> Option<u64>,
    read: R,
) -> Option<u64> {
    let of_group = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let (tree, names) = match controllers {
            "" => (TREE.to_owned(), &SECOND),
            _ if controllers.split(',').any(|one| one == "memory") => {
                (format!("{TREE}/memory"), &FIRST)
            }
            _ => return None,
        };
        let around = group.match_indices('/').map(|(at, _)| &group[..at]);
        around
            .chain([group.trim_end_matches('/')])
            .filter_map(|group| of(&format!("{tree}{group}"), names, &read))
            .min()
    };
    groups.lines().filter_map(of_group).min()
}

/// The number in a file of a group.
fn number(group: &str, file: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    read(&format!("{group}/{file}"))?.trim().parse().ok()
}

/// What one group may have. A limit that is not a number means no limit.
fn allowed(group: &str, names: &Names, read: &impl Fn(&str) -> Option<String>) -> Option<u64> {
    number(group, names.limit, read)
}

/// What one group leaves.
fn left(group: &str, names: &Names, read: &impl Fn(&str) -> Option<String>) -> Option<u64> {
    let (limit, used) = (
        allowed(group, names, read)?,
        number(group, names.used, read)?,
    );
    let stat = read(&format!("{group}/memory.stat")).unwrap_or_default();
    let mut files = stat
        .lines()
        .filter_map(|line| line.strip_prefix(names.files));
    let files: u64 = files
        .next()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files<'a>(all: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |path| {
            let found = all.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned())
        }
    }

    #[test]
    fn the_tightest_group_around_decides() {
        let read = files(&[
            ("/sys/fs/cgroup/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "1000\n"),
            ("/sys/fs/cgroup/a/memory.current", "700\n"),
            (
                "/sys/fs/cgroup/a/memory.stat",
                "anon 5\ninactive_file 100\n",
            ),
            ("/sys/fs/cgroup/a/b/memory.max", "5000\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "600\n"),
        ]);
        assert_eq!(least("0::/a/b\n", left, &read), Some(400));
        assert_eq!(least("0::/\n", left, &read), None);
        assert_eq!(least("0::/a/b\n", allowed, &read), Some(1000));
        assert_eq!(least("0::/\n", allowed, &read), None);
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let read = files(&[
            ("/sys/fs/cgroup/memory.max", "1000\n"),
            ("/sys/fs/cgroup/memory.current", "100\n"),
        ]);
        assert_eq!(least("0::/\n", left, &read), Some(900));
    }

    #[test]
    fn groups_of_the_first_version_have_a_tree_for_memory() {
        let read = files(&[
            ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n"),
            ("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1100\n"),
            (
                "/sys/fs/cgroup/memory/job/memory.stat",
                "total_inactive_file 150\n",
            ),
        ]);
        let groups = "5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n";
        assert_eq!(least(groups, left, &read), Some(50));
        assert_eq!(least(groups, allowed, &read), Some(1000));
    }
}
