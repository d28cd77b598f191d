//! The macro around the table of `stats`: it makes the table, and the counters that the table names.

/// Declares the metrics of `stats`, in its order. A row is a source, a colon, and the rest of the declaration. Sources:
///
/// * `stat "NAME"`: the row says where it is read;
/// * `count NAME`: a counter of each worker;
/// * `count_by_class NAME`: the same, and by size class;
/// * `count_accepting NAME`: a counter of the acceptor.
///
/// For the counters it makes the structs that have them, their sums and their reset. A counter has its name in `stats`.
macro_rules! metrics {
    ($(
        $(stat $stat:literal)?
        $(count $field:ident)?
        $(count_by_class $class:ident)?
        $(count_accepting $accepting:ident)?
        : $row:expr
    ),* $(,)?) => {
        /// `stats`, in memcached's order.
        pub const GENERAL: &[Metric] = &[$(
            $row
                $(.named($stat))?
                $(.named(stringify!($field)).read(|at| Value::Number(at.totals.$field)))?
                $(.named(stringify!($class)).read(|at| Value::Number(at.totals.$class)))?
                $(
                    .named(stringify!($accepting))
                    .read(|at| Value::Number(at.shared.telemetry.accepting.$accepting.get()))
                )?
        ),*];

        /// The counters of one worker.
        pub struct WorkerCounters {
            $($(
                #[doc = concat!("The counter `", stringify!($field), "`.")]
                pub $field: Counter,
            )?)*
            pub(crate) classes: [ClassCounters; CLASSES],
            pub(crate) sizes: SizeClasses,
            /// The counts at the last `stats reset`: the thread that resets is not the thread that counts.
            base: Mutex<Totals>,
            /// Requests whose time is not known yet.
            pub pending: Pending,
        }

        /// One worker's counters of a size class, in a cache line.
        #[derive(Default)]
        #[repr(align(64))]
        pub(crate) struct ClassCounters {
            $($(pub(crate) $class: Counter,)?)*
        }

        /// The sum over all workers at one moment.
        #[derive(Clone, Debug)]
        pub struct Totals {
            $($(
                #[doc = concat!("The sum of `", stringify!($field), "`.")]
                pub $field: u64,
            )?)*
            $($(
                #[doc = concat!("The sum of `", stringify!($class), "`.")]
                pub $class: u64,
            )?)*
            /// The counts by class, whose sums are above.
            pub classes: [ClassTotals; CLASSES],
        }

        /// The same sum for a size class.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ClassTotals {
            $($(
                #[doc = concat!("The sum of `", stringify!($class), "`.")]
                pub $class: u64,
            )?)*
        }

        impl Default for Totals {
            fn default() -> Self {
                Self {
                    $($($field: 0,)?)*
                    $($($class: 0,)?)*
                    classes: [ClassTotals::default(); CLASSES],
                }
            }
        }

        impl WorkerCounters {
            /// The counters for an engine with these classes.
            pub fn new(sizes: SizeClasses) -> Self {
                Self {
                    $($($field: Counter::default(),)?)*
                    classes: std::array::from_fn(|_| ClassCounters::default()),
                    sizes,
                    base: Mutex::default(),
                    pending: Pending::default(),
                }
            }

            /// Adds the counts since the last reset to `totals`.
            pub fn add_to(&self, totals: &mut Totals) {
                let base = self.base.lock();
                $($(totals.$field += self.$field.get() - base.$field;)?)*
                for (class, (sums, base)) in
                    self.classes.iter().zip(totals.classes.iter_mut().zip(&base.classes))
                {
                    $($(
                        let count = class.$class.get() - base.$class;
                        sums.$class += count;
                        totals.$class += count;
                    )?)*
                }
            }

            /// `stats reset`, by any thread.
            pub fn reset(&self) {
                let mut base = self.base.lock();
                $($(base.$field = self.$field.get();)?)*
                for (class, base) in self.classes.iter().zip(&mut base.classes) {
                    $($(base.$class = class.$class.get();)?)*
                }
            }
        }

        /// The counters of the acceptor, and of the thread that admits readers of shared memory: each has one of the two.
        #[derive(Default)]
        pub struct AcceptorCounters {
            $($(
                #[doc = concat!("The counter `", stringify!($accepting), "`.")]
                pub $accepting: ResettableCounter,
            )?)*
            /// 1 while it is suspended.
            pub suspended: Counter,
            /// Readers of shared memory at present.
            pub readers: Counter,
        }

        impl AcceptorCounters {
            /// `stats reset`.
            pub fn reset(&self) {
                $($(self.$accepting.reset();)?)*
            }
        }
    };
}

pub(crate) use metrics;
