//! The pages of the program's own files that lie in memory: its code and its constants.

use std::ops::Range;

/// The mappings of the program's file and of the libraries that it was linked to.
///
/// Invariant: each of them stays mapped for as long as the process lives. What the system and the loader map before the
/// program begins is never unmapped. A library that is opened later may be closed by any thread at any moment, and its
/// addresses may belong to other memory then: so no mapping that is made later is ever touched.
#[derive(Debug, Default)]
pub struct ProgramFiles(Vec<Range<usize>>);

impl ProgramFiles {
    /// Finds them. To be called when the program begins, before it starts a thread or opens a library. There are none
    /// without `/proc`.
    pub fn find() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self(maps.lines().filter_map(private_file).collect())
    }

    /// Takes the pages that hold nothing but what these files say out of the process's memory; they stay in the system's
    /// cache of files.
    ///
    /// To be called when a program has started: what only the start needed (the parser of a command line, tables of the
    /// loader, settings) is half of what was ever read of these files, several MiB, and counts as resident for as long as
    /// the system has no other use for the memory. What is needed again comes back by itself, at a fault for each 64 KiB.
    pub fn unmap_read_pages(&self) {
        if self.0.is_empty() {
            return;
        }
        if let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") {
            let stays = |pages: &Range<usize>| {
                let holds = |own: &Range<usize>| own.start <= pages.start && pages.end <= own.end;
                self.0.iter().any(holds)
            };
            unchanged_files(&maps).filter(stays).for_each(unmap);
        }
    }
}

/// Unmaps the pages of a mapping of a file that is not writable, to which nothing was written before, and which stays
/// mapped.
fn unmap(pages: Range<usize>) {
    let start = std::ptr::without_provenance_mut(pages.start);
    // The result is ignored: locked memory (-k) stays as it is, as its operator wants.
    //
    // SAFETY: the addresses belong to a mapping of `ProgramFiles`, so they are no other memory by now. No page of it
    // has content of its own, and none can get it: nothing here makes mappings of files writable. So each access finds
    // in it what it would have found before.
    unsafe { libc::madvise(start, pages.len(), libc::MADV_DONTNEED) };
}

/// The addresses of a mapping of a file that is private and cannot be written to, from its line in `/proc/self/maps` or
/// `/proc/self/smaps`. `None` for other mappings, and for other lines.
fn private_file(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
    // Permissions, the place in the file, the device, the file's number.
    let is_private = matches!(words.next()?, "r--p" | "r-xp");
    let is_file = words.nth(2)? != "0";
    (is_private && is_file).then_some(start?..end?)
}

/// The mappings of files that are private, cannot be written to, and have no page of their own, neither in memory nor
/// swapped out, of all that `/proc/self/smaps` lists. What the loader has filled in and made read-only has such pages, and
/// so has code in which a debugger has set a breakpoint.
fn unchanged_files(maps: &str) -> impl Iterator<Item = Range<usize>> {
    let mut file = None;
    maps.lines().filter_map(move |line| {
        let mut words = line.split_ascii_whitespace();
        let first = words.next()?;
        match first {
            "Anonymous:" => file = file.take().filter(|_| words.next() == Some("0")),
            // Later than the other. Not counted there: the system may have swapped out what the loader has filled in.
            "Swap:" => return file.take().filter(|_| words.next() == Some("0")),
            _ if first.contains('-') => file = private_file(line),
            _ => {}
        }
        None
    })
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_no_pages_of_its_own_is_unmapped() {
        let map = |head: &str, anonymous: u64, swapped: u64| {
            format!(
                "{head}\nSize: 8 kB\nRss: 8 kB\nAnonymous: {anonymous} kB\nKSM: 0 kB\nSwap: {swapped} kB\nSwapPss: 0 kB\n\
                 VmFlags: rd mr\n"
            )
        };
        let maps: String = [
            map("1000-3000 r--p 00000000 fe:00 648 /bin/nuthatch", 0, 0),
            map("3000-5000 r-xp 00002000 fe:00 648 /bin/nuthatch", 0, 0),
            map("5000-7000 r-xp 00004000 fe:00 648 /bin/nuthatch", 4, 0),
            map("7000-9000 rw-p 00006000 fe:00 648 /bin/nuthatch", 0, 0),
            map("9000-b000 r--p 00000000 00:00 0", 0, 0),
            map("b000-d000 r--s 00000000 fe:00 12 /tmp/a file", 0, 0),
            map("d000-f000 r-xp 00000000 00:00 0 [vdso]", 0, 0),
            map("f000-11000 r-xp 00001000 fe:00 12 /lib/a library", 0, 0),
            map("11000-13000 r--p 00003000 fe:00 12 /lib/a library", 0, 4),
        ]
        .concat();
        let found: Vec<_> = unchanged_files(&maps).collect();
        assert_eq!(
            found,
            [0x1000..0x3000, 0x3000..0x5000, 0xf000..0x11000],
            "{maps}"
        );
    }

    /// Bytes of pages of files that are resident.
    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssFile:"));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<usize>().unwrap() << 10
    }

    #[test]
    fn a_program_runs_on_without_its_pages() {
        const LEN: usize = 1 << 17;
        static CONSTANTS: [u64; LEN] = [7; LEN];
        let sum = || std::hint::black_box(&CONSTANTS).iter().sum::<u64>();
        let files = ProgramFiles::find();
        let (before, read) = (sum(), resident());
        files.unmap_read_pages();
        let left = resident();
        // Other threads need pages meanwhile.
        assert!(
            left + size_of_val(&CONSTANTS) / 2 < read,
            "{left} of {read}"
        );
        assert_eq!(sum(), before);
    }
    /// Class of bug: a library that is opened and closed while the server runs leaves its addresses to other memory, of
    /// which pages are taken away.
    #[test]
    fn what_is_mapped_later_is_left_alone() {
        const LEN: usize = 1 << 20;
        let files = ProgramFiles::find();
        let mut library = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut library, &[7; LEN]).unwrap();
        // SAFETY: nobody else has the file.
        let mapped = unsafe { memmap2::MmapOptions::new().map_copy_read_only(&library) }.unwrap();
        assert_eq!(mapped.iter().filter(|&&byte| byte == 7).count(), LEN);
        let start = mapped.as_ptr() as usize;
        let pages = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let lines = maps
                .lines()
                .skip_while(|line| private_file(line).is_none_or(|pages| !pages.contains(&start)));
            let mut resident = lines.filter_map(|line| line.strip_prefix("Rss:"));
            resident.next().unwrap().trim().to_owned()
        };
        let before = pages();
        files.unmap_read_pages();
        assert_eq!(pages(), before);
        // It would be one of the files of a program that begins now.
        assert!(
            ProgramFiles::find()
                .0
                .iter()
                .any(|pages| pages.contains(&start))
        );
    }
}
