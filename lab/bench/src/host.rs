//! The program, machine and system that a figure was measured on: without them a figure means nothing.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

/// The program, the machine and its system. Fields that the system does not report are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The version of this program.
    pub nuthatch: String,
    /// The compiler that built it.
    pub compiler: String,
    /// The processor's name; behind a hypervisor it often tells less than family and model.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The size of the last-level cache, as the system writes it.
    pub cache: String,
    /// The system and its version.
    pub kernel: String,
    /// When the system gives huge pages: `always`, `madvise` or `never`.
    pub huge_pages: String,
}

impl Host {
    /// Asks the system.
    pub fn ask() -> Self {
        Self {
            nuthatch: env!("CARGO_PKG_VERSION").to_owned(),
            compiler: env!("BUILT_BY").to_owned(),
            processor: processor(&read("/proc/cpuinfo")),
            cores: available_parallelism().map_or(1, usize::from),
            cache: last_cache(),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype"),
                read("/proc/sys/kernel/osrelease")
            ),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        }
    }
}

impl Host {
    /// Each field by its name, for files that other programs read.
    pub fn named(&self) -> BTreeMap<String, String> {
        [
            ("nuthatch", self.nuthatch.clone()),
            ("compiler", self.compiler.clone()),
            ("processor", self.processor.clone()),
            ("cores", self.cores.to_string()),
            ("cache", self.cache.clone()),
            ("kernel", self.kernel.clone()),
            ("huge pages", self.huge_pages.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The first processor in `/proc/cpuinfo`.
fn processor(cpuinfo: &str) -> String {
    let field = |name: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.find_map(|(field, value)| (field.trim() == name).then(|| value.trim()))
    };
    let name = field("model name").unwrap_or(std::env::consts::ARCH);
    match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name.to_owned(),
    }
}

/// The size of the cache of the highest level.
fn last_cache() -> String {
    let folder = "/sys/devices/system/cpu/cpu0/cache";
    let mut sizes = (0..8).map(|index| read(&format!("{folder}/index{index}/size")));
    sizes.rfind(|size| !size.is_empty()).unwrap_or_default()
}

/// The word in brackets.
fn chosen(words: &str) -> String {
    let chosen = words.split(['[', ']']).nth(1);
    chosen.unwrap_or_default().to_owned()
}

impl Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "nuthatch {} by {}; {} cores of {}, last-level cache {}; {}, huge pages: {}",
            self.nuthatch,
            self.compiler,
            self.cores,
            self.processor,
            self.cache,
            self.kernel,
            self.huge_pages
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_as_far_as_it_is_known() {
        let virtual_one = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n\
                           processor\t: 1\ncpu family\t: 6\nmodel name\t: other\n";
        assert_eq!(processor(virtual_one), "AMD EPYC (family 25, model 1)");
        assert_eq!(processor("BogoMIPS: 1"), std::env::consts::ARCH);
    }

    #[test]
    fn this_machine_is_known() {
        let host = Host::ask();
        assert!(host.compiler.starts_with("rustc "), "{host}");
        assert!(host.cores >= 1 && !host.processor.is_empty(), "{host}");
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen(""), "");
    }
}
