//! Policies by name, as they are typed.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use nuthatch_store::eviction::log::{LogPolicyKind, POLICIES};

use super::arc::Arc;
use super::clock::Clock;
use super::fifo::Fifo;
use super::gdsf::Gdsf;
use super::library::Library;
use super::lirs::{Lirs, LirsShape};
use super::log::{self, Log, LogShape};
use super::lru::Lru;
use super::one_queue::OneQueue;
use super::optimum::Optimum;
use super::s3fifo::{S3Fifo, S3FifoShape};
use super::sampled::{SampledLru, SampledShape};
use super::sieve::Sieve;
use super::slab::{Slab, SlabShape};
use super::slru::{Slru, SlruShape};
use super::twoq::{TwoQ, TwoQShape};
use super::wtinylfu::{self, WTinyLfu};
use super::{Policy, Room};

/// A policy and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyName {
    /// As it was typed.
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fifo,
    Clock {
        bits: u32,
    },
    Lru,
    SampledLru(SampledShape),
    Slru(SlruShape),
    TwoQ(TwoQShape),
    Arc,
    Lirs(LirsShape),
    Sieve,
    S3Fifo(S3FifoShape),
    WTinyLfu {
        window: f64,
        climbs: bool,
    },
    Gdsf,
    Slab(SlabShape),
    Log(LogShape),
    LogOf {
        pages: u64,
        decides: &'static LogPolicyKind,
    },
    Optimum,
    Library(Library),
}

/// The policies, with their parameters and defaults.
const NAMES: [&str; 20] = [
    "fifo",
    "clock",
    "clock2",
    "clock3",
    "lru",
    "sampled-lru[:SAMPLES=5[:POOL=16]]",
    "slru[:HOT=0.2[:WARM=0.4]]",
    "2q[:NEW=0.25[:GHOSTS=0.5]]",
    "arc",
    "lirs[:HIR=0.01[:GHOSTS=inf]]",
    "sieve",
    "s3-fifo[:SMALL=0.1[:GHOSTS=0.9[:HITS=2[:UNCOUNTED=0]]]]",
    "w-tinylfu[:WINDOW=0.01]",
    "w-tinylfu-climb[:WINDOW=0.01]",
    "gdsf",
    "slab-s3-fifo[:GROWTH=1.1[:PAGES=64[:SMALL[:GHOSTS[:HITS[:UNCOUNTED]]]]]]",
    "log-s3-fifo[:PAGES=128[:SMALL[:GHOSTS[:HITS[:UNCOUNTED]]]]]",
    "optimum",
    "lib:moka",
    "lib:quick_cache",
];

/// The policies in words, for a help text.
pub fn names() -> String {
    let of_log = POLICIES.iter();
    let of_log = of_log.map(|kind| format!("log:{}[:PAGES={}]", kind.name, log::PAGES));
    let names = NAMES.iter().map(|&name| name.to_owned());
    names.chain(of_log).collect::<Vec<_>>().join(", ")
}

impl PolicyName {
    /// A cache of this policy. Panics if it must know the future and `room` has none.
    pub fn build<'a>(&self, room: &Room<'a>) -> Box<dyn Policy + 'a> {
        match self.kind {
            Kind::Fifo => Box::new(OneQueue::new(room, Fifo)),
            Kind::Clock { bits } => Box::new(OneQueue::new(room, Clock::new(bits))),
            Kind::Lru => Box::new(OneQueue::new(room, Lru)),
            Kind::SampledLru(shape) => Box::new(SampledLru::new(room, shape)),
            Kind::Slru(shape) => Box::new(Slru::new(room, shape)),
            Kind::TwoQ(shape) => Box::new(TwoQ::new(room, shape)),
            Kind::Arc => Box::new(Arc::new(room)),
            Kind::Lirs(shape) => Box::new(Lirs::new(room, shape)),
            Kind::Sieve => Box::new(OneQueue::new(room, Sieve::default())),
            Kind::S3Fifo(shape) => Box::new(S3Fifo::new(room, shape)),
            Kind::WTinyLfu { window, climbs } => Box::new(WTinyLfu::new(room, window, climbs)),
            Kind::Gdsf => Box::new(Gdsf::new(room)),
            Kind::Slab(shape) => Box::new(Slab::new(room, shape)),
            Kind::Log(shape) => Box::new(Log::new(room, shape)),
            Kind::LogOf { pages, decides } => Box::new(Log::of(room, pages, decides)),
            Kind::Library(library) => library.build(room),
            Kind::Optimum => {
                let future = room.future.expect("the optimum is given the future");
                Box::new(Optimum::new(room, future))
            }
        }
    }

    /// True if it is another crate's cache, and no simulation.
    pub fn is_library(&self) -> bool {
        matches!(self.kind, Kind::Library(_))
    }

    /// True if it must know the future.
    pub fn is_offline(&self) -> bool {
        self.kind == Kind::Optimum
    }
}

impl Display for PolicyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl FromStr for PolicyName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let mut parameters = Parameters { text, words };
        let kind = match name {
            "fifo" => Kind::Fifo,
            "clock" => Kind::Clock { bits: 1 },
            "clock2" => Kind::Clock { bits: 2 },
            "clock3" => Kind::Clock { bits: 3 },
            "lru" => Kind::Lru,
            "sampled-lru" => Kind::SampledLru(SampledShape {
                samples: parameters.count(SampledShape::default().samples, 1..=1000)?,
                pool: parameters.count(SampledShape::default().pool, 0..=1000)?,
            }),
            "slru" => parameters.slru()?,
            "2q" => Kind::TwoQ(TwoQShape {
                new: parameters.share(TwoQShape::default().new)?,
                ghosts: parameters.ghosts(TwoQShape::default().ghosts)?,
            }),
            "arc" => Kind::Arc,
            "lirs" => Kind::Lirs(LirsShape {
                high: parameters.share(LirsShape::default().high)?,
                ghosts: parameters.ghosts(LirsShape::default().ghosts)?,
            }),
            "sieve" => Kind::Sieve,
            "s3-fifo" => Kind::S3Fifo(parameters.s3_fifo()?),
            "w-tinylfu" | "w-tinylfu-climb" => Kind::WTinyLfu {
                window: parameters.share(wtinylfu::WINDOW)?,
                climbs: name == "w-tinylfu-climb",
            },
            "gdsf" => Kind::Gdsf,
            "slab-s3-fifo" => Kind::Slab(SlabShape {
                growth: parameters.number(
                    SlabShape::default().growth,
                    |growth| *growth > 1.0 && *growth <= 4.0,
                    "a factor of more than 1, up to 4",
                )?,
                pages: parameters.count(SlabShape::default().pages, 8..=4096)?,
                queues: parameters.s3_fifo()?,
            }),
            "log-s3-fifo" => Kind::Log(LogShape {
                pages: parameters.count(LogShape::default().pages, 8..=4096)?,
                queues: parameters.s3_fifo()?,
            }),
            "log" => Kind::LogOf {
                decides: parameters.log_policy()?,
                pages: parameters.count(log::PAGES, 8..=4096)?,
            },
            "optimum" => Kind::Optimum,
            "lib" => Kind::Library(parameters.named_crate()?),
            _ => return Err(format!("`{text}` is no policy; there are {}", names())),
        };
        parameters.end()?;
        let text = text.to_owned();
        Ok(Self { text, kind })
    }
}

/// Numbers behind a policy's name.
struct Parameters<'a> {
    text: &'a str,
    words: std::str::Split<'a, char>,
}

impl Parameters<'_> {
    /// The crate that is meant.
    fn named_crate(&mut self) -> Result<Library, String> {
        let library = self.words.next().and_then(Library::by_name);
        library.ok_or_else(|| self.wrong("moka or quick_cache"))
    }

    /// The policy of the engine's log that is meant.
    fn log_policy(&mut self) -> Result<&'static LogPolicyKind, String> {
        let policy = self.words.next().and_then(LogPolicyKind::named);
        let names = || POLICIES.iter().map(|kind| kind.name).collect::<Vec<_>>();
        policy.ok_or_else(|| self.wrong(&names().join(" or ")))
    }

    fn slru(&mut self) -> Result<Kind, String> {
        let shape = SlruShape {
            hot: self.share(SlruShape::default().hot)?,
            warm: self.share(SlruShape::default().warm)?,
        };
        if shape.hot + shape.warm >= 1.0 {
            return Err(self.wrong("shares of less than 1 together"));
        }
        Ok(Kind::Slru(shape))
    }

    fn s3_fifo(&mut self) -> Result<S3FifoShape, String> {
        let default = S3FifoShape::default();
        Ok(S3FifoShape {
            small: self.share(default.small)?,
            ghosts: self.ghosts(default.ghosts)?,
            promotion: self.count(default.promotion, 1..=3)?,
            uncounted: self.number(
                default.uncounted,
                |share| (0.0..1.0).contains(share),
                "a share from 0 to less than 1",
            )?,
        })
    }

    /// A share of the capacity.
    fn share(&mut self, default: f64) -> Result<f64, String> {
        let taken = |share: &f64| *share > 0.0 && *share < 1.0;
        self.number(default, taken, "a share between 0 and 1")
    }

    /// A multiple of the capacity, which may be infinite.
    fn ghosts(&mut self, default: f64) -> Result<f64, String> {
        let taken = |times: &f64| *times >= 0.0;
        self.number(default, taken, "a number of capacities")
    }

    /// A whole number in this range.
    fn count<N>(&mut self, default: N, range: RangeInclusive<N>) -> Result<N, String>
    where
        N: FromStr + PartialOrd + Display,
    {
        let what = format!("{} to {}", range.start(), range.end());
        self.number(default, |count| range.contains(count), &what)
    }

    /// The next one, or its default where there is none.
    fn number<N: FromStr>(
        &mut self,
        default: N,
        taken: impl Fn(&N) -> bool,
        what: &str,
    ) -> Result<N, String> {
        let Some(word) = self.words.next() else {
            return Ok(default);
        };
        let number = word.parse().ok().filter(taken);
        number.ok_or_else(|| self.wrong(what))
    }

    fn end(&mut self) -> Result<(), String> {
        match self.words.next() {
            None => Ok(()),
            Some(_) => Err(self.wrong("fewer parameters")),
        }
    }

    fn wrong(&self, what: &str) -> String {
        format!("`{}`: {what} expected", self.text)
    }
}
