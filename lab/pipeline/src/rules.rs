//! Rule files, which say what to do with which packets.
//!
//! One rule a line; `#` begins a comment:
//!
//! ```text
//! PRIORITY [FIELD=VALUE...] -> ACTION
//!
//! 300 proto=udp dport=53                          -> forward 2
//! 200 src=10.0.0.0/8 proto=tcp dport=8000-8999    -> forward 3
//! 100 vlan=7 frag=later                           -> drop
//!   0                                             -> forward 1
//! ```
//!
//! Of the rules that match a packet the one with the highest priority decides, and of several with
//! that priority the first in the file. A packet that no rule matches is dropped.
//!
//! | field | values | matches |
//! |---|---|---|
//! | `src`, `dst` | an address or a prefix, IPv4 or IPv6 | packets of that family from or to there |
//! | `ip` | `4` or `6` | the IP version |
//! | `proto` | `tcp`, `udp`, `sctp`, `icmp`, `icmp6`, or a number to 255 | the protocol |
//! | `sport`, `dport` | a port, or a range `FIRST-LAST`; with `proto=tcp`, `udp` or `sctp` | packets with ports: no later fragments |
//! | `type`, `code` | a number to 255; with `proto=icmp` or `icmp6` | ICMP's type and code |
//! | `vlan` | a number to 4095, `none` or `any` | the outermost VLAN tag |
//! | `frag` | `no`, `any`, `first` or `later` | whole packets, or fragments |
//!
//! | action | |
//! |---|---|
//! | `forward PORT` | send it out of a port, 0 to 65535 |
//! | `drop` | send it nowhere |

use std::fmt::{self, Display};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use etherparse::ip_number;
use ipnet::IpNet;

use crate::key::{End, Field, FlowKey, Fragment, TAGGED};

/// Rules of a file at most.
pub const RULES_MAX: usize = 1 << 20;

/// Errors of a file that are reported at most.
const ERRORS_MAX: usize = 10;

/// What is done with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It goes nowhere.
    #[default]
    Drop,
    /// It goes out of this port.
    Forward(u16),
}

impl Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => out.write_str("drop"),
            Self::Forward(port) => write!(out, "forward {port}"),
        }
    }
}

/// What `vlan` requires of the outermost tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// There is none.
    None,
    /// There is one.
    Any,
    /// It has this number.
    Number(u16),
}

/// What `frag` requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentMatch {
    /// It is this part.
    Is(Fragment),
    /// It is a fragment.
    Any,
}

/// Matches packets that agree with every field that is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// Where they come from.
    pub source: Option<IpNet>,
    /// Where they go.
    pub destination: Option<IpNet>,
    /// 4 or 6.
    pub version: Option<u8>,
    /// The IP protocol's number.
    pub protocol: Option<u8>,
    /// The source port, or ICMP's type.
    pub source_port: Option<RangeInclusive<u16>>,
    /// The destination port, or ICMP's code.
    pub destination_port: Option<RangeInclusive<u16>>,
    /// The outermost VLAN tag.
    pub tag: Option<Tag>,
    /// Which part of a packet.
    pub fragment: Option<FragmentMatch>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The rule with the higher priority decides.
    pub priority: u32,
    /// The packets that it matches.
    pub matches: Match,
    /// What is done with them.
    pub action: Action,
    /// Its line in the file, from 1.
    pub line: usize,
}

/// The rules of a file, in the order in which they decide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// The rules that are used when there is no file.
pub const DEFAULT_RULES: &str = include_str!("default.rules");

/// What is wrong with a file, line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleErrors {
    errors: Vec<(usize, String)>,
}

impl Display for RuleErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (line, error)) in self.errors.iter().take(ERRORS_MAX).enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(out, "{separator}line {line}: {error}")?;
        }
        match self.errors.len().saturating_sub(ERRORS_MAX) {
            0 => Ok(()),
            more => write!(out, "\nand {more} more"),
        }
    }
}

impl std::error::Error for RuleErrors {}

impl Rules {
    /// Sorts rules by priority; of equals the first stays first.
    pub fn new(mut rules: Vec<Rule>) -> Self {
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        Self { rules }
    }

    /// The rules, in the order in which they decide.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True if there is none: everything is dropped.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

impl FromStr for Rules {
    type Err = RuleErrors;

    fn from_str(text: &str) -> Result<Self, RuleErrors> {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            match parse_rule(content, index + 1) {
                Ok(_) if rules.len() == RULES_MAX => {
                    errors.push((index + 1, format!("more than {RULES_MAX} rules")));
                    break;
                }
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push((index + 1, error)),
            }
        }
        if errors.is_empty() {
            Ok(Self::new(rules))
        } else {
            Err(RuleErrors { errors })
        }
    }
}

impl Match {
    /// True if it matches a packet. Field by field, as a reader of the file would: the classifier, which is quicker, is
    /// tested against this.
    pub fn matches(&self, key: &FlowKey) -> bool {
        let version = key.get(Field::Version);
        let fragment = key.get(Field::Fragment);
        let in_prefix = |prefix: &Option<IpNet>, end| {
            prefix.is_none_or(|prefix| prefix.contains(&key.address(end)))
        };
        let in_range = |range: &Option<RangeInclusive<u16>>, field| {
            range.as_ref().is_none_or(|range| {
                fragment != Fragment::Later as u64 && range.contains(&(key.get(field) as u16))
            })
        };
        let tag = key.get(Field::OuterTag) as u16;
        in_prefix(&self.source, End::Source)
            && in_prefix(&self.destination, End::Destination)
            && self
                .version
                .is_none_or(|wanted| u64::from(wanted) == version)
            && self
                .protocol
                .is_none_or(|wanted| u64::from(wanted) == key.get(Field::Protocol))
            && in_range(&self.source_port, Field::SourcePort)
            && in_range(&self.destination_port, Field::DestinationPort)
            && self.tag.is_none_or(|wanted| match wanted {
                Tag::None => tag == 0,
                Tag::Any => tag != 0,
                Tag::Number(number) => tag == TAGGED | number,
            })
            && self.fragment.is_none_or(|wanted| match wanted {
                FragmentMatch::Is(part) => fragment == part as u64,
                FragmentMatch::Any => fragment != Fragment::Whole as u64,
            })
    }

    fn set(&mut self, field: &str, value: &str) -> Result<(), String> {
        match field {
            "src" => self.source = Some(prefix(value)?),
            "dst" => self.destination = Some(prefix(value)?),
            "ip" => {
                self.version = Some(match value {
                    "4" => 4,
                    "6" => 6,
                    _ => return Err(format!("ip={value}: 4 or 6")),
                });
            }
            "proto" => self.protocol = Some(protocol(value)?),
            "sport" => self.source_port = Some(ports(value)?),
            "dport" => self.destination_port = Some(ports(value)?),
            "type" => self.source_port = Some(byte(value)?),
            "code" => self.destination_port = Some(byte(value)?),
            "vlan" => self.tag = Some(tag(value)?),
            "frag" => self.fragment = Some(fragment(value)?),
            _ => return Err(format!("there is no field `{field}`")),
        }
        Ok(())
    }

    /// Checks that the fields fit together.
    fn check(&self, fields: &[&str]) -> Result<(), String> {
        let has = |names: [&'static str; 2]| names.into_iter().find(|name| fields.contains(name));
        let is_one_of = |numbers: &[etherparse::IpNumber]| {
            let protocol = self.protocol.map(etherparse::IpNumber);
            protocol.is_some_and(|number| numbers.contains(&number))
        };
        if let Some(field) = has(["sport", "dport"])
            && !is_one_of(&[ip_number::TCP, ip_number::UDP, ip_number::SCTP])
        {
            return Err(format!("`{field}` needs proto=tcp, udp or sctp"));
        }
        if let Some(field) = has(["type", "code"])
            && !is_one_of(&[ip_number::ICMP, ip_number::IPV6_ICMP])
        {
            return Err(format!("`{field}` needs proto=icmp or icmp6"));
        }
        if has(["sport", "dport"]).or(has(["type", "code"])).is_some()
            && self.fragment == Some(FragmentMatch::Is(Fragment::Later))
        {
            return Err("a later fragment has no ports, type or code".to_owned());
        }
        let families = [
            self.version.map(|version| version == 4),
            self.source.map(|prefix| prefix.addr().is_ipv4()),
            self.destination.map(|prefix| prefix.addr().is_ipv4()),
        ];
        if families.contains(&Some(true)) && families.contains(&Some(false)) {
            return Err("IPv4 and IPv6 in one rule: it matches nothing".to_owned());
        }
        Ok(())
    }
}

fn parse_rule(text: &str, line: usize) -> Result<Rule, String> {
    let (head, action) = text.split_once("->").ok_or("there is no `-> ACTION`")?;
    let mut words = head.split_whitespace();
    let priority = words.next().ok_or("there is no priority")?;
    let priority = priority
        .parse()
        .map_err(|_| format!("`{priority}` is not a priority: 0 to {}", u32::MAX))?;
    let (mut matches, mut seen) = (Match::default(), Vec::new());
    for word in words {
        let (field, value) = word
            .split_once('=')
            .ok_or_else(|| format!("`{word}` is not FIELD=VALUE"))?;
        if seen.contains(&field) {
            return Err(format!("`{field}` twice"));
        }
        matches.set(field, value)?;
        seen.push(field);
    }
    matches.check(&seen)?;
    Ok(Rule {
        priority,
        matches,
        action: parse_action(action)?,
        line,
    })
}

fn parse_action(text: &str) -> Result<Action, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["drop"] => Ok(Action::Drop),
        ["forward", port] => port
            .parse()
            .map(Action::Forward)
            .map_err(|_| format!("forward {port}: a port is 0 to 65535")),
        _ => Err(format!(
            "`{}` is not an action: drop, or forward PORT",
            text.trim()
        )),
    }
}

fn prefix(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .map(|prefix| prefix.trunc())
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| format!("`{text}` is neither an address nor a prefix"))
}

fn protocol(text: &str) -> Result<u8, String> {
    let number = match text {
        "tcp" => ip_number::TCP.0,
        "udp" => ip_number::UDP.0,
        "sctp" => ip_number::SCTP.0,
        "icmp" => ip_number::ICMP.0,
        "icmp6" => ip_number::IPV6_ICMP.0,
        _ => text
            .parse()
            .map_err(|_| format!("`{text}` is not a protocol"))?,
    };
    Ok(number)
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("`{text}` is neither a port nor a range FIRST-LAST")),
    }
}

fn byte(text: &str) -> Result<RangeInclusive<u16>, String> {
    match text.parse::<u8>() {
        Ok(number) => Ok(u16::from(number)..=u16::from(number)),
        Err(_) => Err(format!("`{text}` is not a number to 255")),
    }
}

fn tag(text: &str) -> Result<Tag, String> {
    match (text, text.parse::<u16>()) {
        ("none", _) => Ok(Tag::None),
        ("any", _) => Ok(Tag::Any),
        (_, Ok(number @ 0..=4095)) => Ok(Tag::Number(number)),
        _ => Err(format!("vlan={text}: a number to 4095, none or any")),
    }
}

fn fragment(text: &str) -> Result<FragmentMatch, String> {
    match text {
        "no" => Ok(FragmentMatch::Is(Fragment::Whole)),
        "first" => Ok(FragmentMatch::Is(Fragment::First)),
        "later" => Ok(FragmentMatch::Is(Fragment::Later)),
        "any" => Ok(FragmentMatch::Any),
        _ => Err(format!("frag={text}: no, any, first or later")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rules, String> {
        text.parse().map_err(|error: RuleErrors| error.to_string())
    }

    #[test]
    fn priorities_decide_and_then_lines() {
        let rules = parse("1 -> drop\n\n5 -> forward 1 # five\n5 -> forward 2\n").unwrap();
        let order: Vec<_> = rules
            .iter()
            .map(|rule| (rule.priority, rule.line))
            .collect();
        assert_eq!(order, [(5, 3), (5, 4), (1, 1)]);
    }

    #[test]
    fn every_field_is_read() {
        let rules = parse(
            "7 src=10.1.2.3/8 dst=10.0.0.1 ip=4 proto=tcp sport=1-5 dport=80 vlan=4 frag=first \
             -> forward 9",
        )
        .unwrap();
        let rule = rules.iter().next().unwrap();
        assert_eq!(
            rule.matches,
            Match {
                source: Some("10.0.0.0/8".parse().unwrap()),
                destination: Some("10.0.0.1/32".parse().unwrap()),
                version: Some(4),
                protocol: Some(6),
                source_port: Some(1..=5),
                destination_port: Some(80..=80),
                tag: Some(Tag::Number(4)),
                fragment: Some(FragmentMatch::Is(Fragment::First)),
            }
        );
        assert_eq!(rule.action, Action::Forward(9));
    }

    #[test]
    fn every_error_names_its_line() {
        for (line, complaint) in [
            ("1", "no `-> ACTION`"),
            ("-> drop", "no priority"),
            ("x -> drop", "`x` is not a priority"),
            ("-1 -> drop", "`-1` is not a priority"),
            ("1 tcp -> drop", "`tcp` is not FIELD=VALUE"),
            ("1 port=1 -> drop", "no field `port`"),
            ("1 ip=4 ip=4 -> drop", "`ip` twice"),
            ("1 ip=5 -> drop", "ip=5: 4 or 6"),
            (
                "1 src=10.0.0.0/33 -> drop",
                "neither an address nor a prefix",
            ),
            ("1 proto=256 -> drop", "`256` is not a protocol"),
            ("1 dport=1 -> drop", "`dport` needs proto=tcp"),
            ("1 proto=icmp sport=1 -> drop", "`sport` needs proto=tcp"),
            ("1 proto=tcp type=1 -> drop", "`type` needs proto=icmp"),
            (
                "1 proto=icmp type=256 -> drop",
                "`256` is not a number to 255",
            ),
            (
                "1 proto=tcp dport=5-1 -> drop",
                "neither a port nor a range",
            ),
            (
                "1 proto=tcp dport=1 frag=later -> drop",
                "a later fragment has no ports",
            ),
            ("1 vlan=4096 -> drop", "a number to 4095"),
            ("1 frag=yes -> drop", "no, any, first or later"),
            ("1 ip=4 dst=::1 -> drop", "IPv4 and IPv6"),
            ("1 -> forward", "`forward` is not an action"),
            ("1 -> forward 65536", "a port is 0 to 65535"),
        ] {
            let error = parse(&format!("# a comment\n{line}")).unwrap_err();
            assert!(error.starts_with("line 2: "), "{line}: {error}");
            assert!(error.contains(complaint), "{line}: {error}");
        }
    }

    #[test]
    fn errors_are_told_together_but_not_without_end() {
        let error = parse(&"bad\n".repeat(13)).unwrap_err();
        assert_eq!(error.lines().count(), ERRORS_MAX + 1);
        assert!(error.contains("line 10: ") && error.ends_with("and 3 more"));
    }

    #[test]
    fn the_default_rules_are_right() {
        assert!(parse(DEFAULT_RULES).unwrap().len() > 10);
        assert!(parse("").unwrap().is_empty());
    }
}
