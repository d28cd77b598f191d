//! Invariants of Redis' protocol for every input, however bad. The property tests and the fuzzer check them.

use nuthatch_protocol::{Awaited, KEY_LEN_MAX, Limits};
use nuthatch_resp::{
    ARGUMENTS_LEN_MAX, Body, Client, ClientFilter, Command, Commands, Config, DUMP_OVERHEAD_MAX,
    Element, Error, Eval, Glob, Many, Parsed, Rest, Restore, Scripts, ServerCommand, Set,
    TransactionCommand, ValueCommand, Version, Writer, element, emptied, parse, parse_queued,
    rewrite, rewritten_max,
};

pub const LIMITS: Limits = Limits::of_values(64);

/// Checks all of it for `input`.
pub fn check(input: &[u8]) {
    check_front(input);
    // The parser sees an error once it has as many bytes as the shortest request: so this many bytes follow the input.
    let behind = [&[b' '; 8 << 10][..], b"\r\n"].concat();
    let whole = outcomes(&[input, &behind]);
    for size in [1, 7, 50] {
        let pieces: Vec<&[u8]> = input.chunks(size).chain([&behind[..]]).collect();
        assert_eq!(outcomes(&pieces), whole, "in pieces of {size}: {input:?}");
    }
    let _ = parse_queued(input);
    let (pattern, text) = input.split_at(input.len().min(20));
    let _ = Glob::new(pattern).matches(&text[..text.len().min(40)]);
}

/// The request at the front is well formed, and neither the input behind it nor the place of a cut makes it another
/// request.
fn check_front(input: &[u8]) {
    let parsed = parse(input, &LIMITS);
    let end = match parsed {
        Parsed::Incomplete(_) => input.len(),
        Parsed::Nothing { consumed }
        | Parsed::Inline { consumed, .. }
        | Parsed::Many { consumed, .. }
        | Parsed::Command { consumed, .. } => {
            assert!(0 < consumed && consumed <= input.len());
            assert_eq!(parse(&input[..consumed], &LIMITS), parsed);
            consumed
        }
        Parsed::Body(body) => {
            check_body(input, &body);
            body.head
        }
        Parsed::Refused(refusal) if refusal.close => return,
        Parsed::Refused(refusal) => {
            assert!(0 < refusal.consumed && refusal.consumed <= input.len());
            // The error of an unknown command shows its arguments.
            return;
        }
    };
    if let Parsed::Command { command, .. } = parsed {
        check_command(&command);
    }
    for cut in (0..end).step_by(end / 256 + 1) {
        let cut_off = parse(&input[..cut], &LIMITS);
        assert!(
            matches!(cut_off, Parsed::Incomplete(_) | Parsed::Body(_)),
            "cut at {cut}, {input:?} is {cut_off:?}"
        );
    }
}

fn check_body(input: &[u8], body: &Body<'_>) {
    assert!((1..=KEY_LEN_MAX).contains(&body.key.len()));
    let dump = if body.whole { 0 } else { DUMP_OVERHEAD_MAX };
    assert!(body.value_len <= LIMITS.value_max + dump && body.line < body.head);
    assert!(input.len() < body.head + body.value_len + 2);
}

fn check_command(command: &Command<'_>) {
    match command {
        Command::Value(ValueCommand::Get { key })
        | Command::Value(ValueCommand::IncrBy { key, .. }) => check_key(key),
        Command::Value(ValueCommand::Set(set)) => {
            check_key(set.key);
            assert!(set.value.len() <= LIMITS.value_max);
        }
        Command::Value(ValueCommand::SetAll(set)) => {
            assert!(set.pairs.len() >= 2 && set.pairs.len() % 2 == 0)
        }
        _ => {}
    }
}

fn check_key(key: &[u8]) {
    assert!((1..=KEY_LEN_MAX).contains(&key.len()));
}

fn said(error: &Error<'_>) -> String {
    let mut out = Vec::new();
    Writer::new(&mut out, Version::Resp2).error(error);
    let lines = out.iter().filter(|&&byte| byte == b'\n').count();
    assert!(lines == 1 && out.ends_with(b"\r\n"), "{out:?}");
    String::from_utf8_lossy(&out).into_owned()
}

/// A connection takes longer values piece by piece.
const AWAITED_MAX: usize = 20;

/// What the next byte means.
enum Phase {
    /// It begins a request, or an element of the command of many keys.
    Begins,
    /// It is dropped.
    Drop(Rest),
    /// It belongs to a value, of which `missing` bytes are missing, or to the bytes behind it.
    Value {
        missing: usize,
        emptied: Vec<u8>,
        /// Bytes of the request that have arrived, without the value.
        passed: usize,
        rest: Rest,
    },
}

/// A connection that records what it parses.
struct Connection {
    phase: Phase,
    many: Option<(Many, u32)>,
    outcomes: Vec<String>,
    awaits: Awaited,
    over: bool,
}

/// The outcomes of a connection that receives these pieces, in order. Progress in an incomplete request is no outcome.
fn outcomes(pieces: &[&[u8]]) -> Vec<String> {
    let mut connection = Connection {
        phase: Phase::Begins,
        many: None,
        outcomes: Vec::new(),
        awaits: Awaited::default(),
        over: false,
    };
    let mut input = Vec::new();
    for piece in pieces {
        let worth_a_look = connection.awaits.has_come(input.len(), piece);
        input.extend_from_slice(piece);
        if !worth_a_look {
            continue;
        }
        connection.awaits = Awaited::default();
        let mut at = 0;
        while let Some(taken) = connection.step(&input[at..]) {
            at += taken;
            if connection.over {
                return connection.outcomes;
            }
        }
        input.drain(..at);
    }
    connection.outcomes
}

impl Connection {
    /// The bytes that one step took. `None` if more must arrive first.
    fn step(&mut self, input: &[u8]) -> Option<usize> {
        match &mut self.phase {
            Phase::Begins => match self.many {
                Some((_, 0)) => {
                    self.many = None;
                    self.outcomes.push("all".into());
                    Some(0)
                }
                Some((verb, _)) => self.element(verb, input),
                None => self.request(input),
            },
            Phase::Drop(rest) => match rest.pass(input) {
                Ok(taken) => {
                    let over = rest.is_over();
                    if over {
                        self.phase = Phase::Begins;
                    }
                    (over || taken > 0).then_some(taken)
                }
                Err(error) => self.broken(&error),
            },
            Phase::Value {
                missing: missing @ 1..,
                ..
            } => {
                let here = input.len().min(*missing);
                *missing -= here;
                (here > 0).then_some(here)
            }
            Phase::Value {
                emptied,
                passed,
                rest,
                ..
            } => match rest.pass(input) {
                Ok(taken) => {
                    *passed += taken;
                    if rest.is_too_long(*passed) {
                        self.outcomes.push(said(&Error::ARGUMENTS_TOO_LONG));
                        self.phase = Phase::Drop(*rest);
                        return Some(taken);
                    }
                    emptied.extend_from_slice(&input[..taken]);
                    if !rest.is_over() {
                        return (taken > 0).then_some(taken);
                    }
                    let whole = std::mem::take(emptied);
                    self.phase = Phase::Begins;
                    let understood = self.step(&whole);
                    assert_eq!(understood, Some(whole.len()));
                    Some(taken)
                }
                Err(error) => self.broken(&error),
            },
        }
    }

    fn request(&mut self, input: &[u8]) -> Option<usize> {
        match parse(input, &LIMITS) {
            Parsed::Incomplete(awaited) => self.awaits(input, awaited),
            Parsed::Nothing { consumed } => Some(consumed),
            Parsed::Inline { line, consumed } => {
                let mut request = Vec::new();
                match rewrite(line, &mut request) {
                    Ok(()) => {
                        assert!(request.len() <= rewritten_max(line.len()));
                        self.outcomes.push(format!("{request:?}"));
                    }
                    Err(error) => return self.broken(&error),
                }
                Some(consumed)
            }
            Parsed::Command { command, consumed } => {
                self.outcomes.push(without_value(command));
                Some(consumed)
            }
            Parsed::Many {
                verb,
                arguments,
                consumed,
            } => {
                self.outcomes.push(format!("{verb:?} {arguments}"));
                let pair = if verb == Many::Mset { 2 } else { 1 };
                assert_eq!(arguments % pair, 0);
                self.many = Some((verb, arguments / pair));
                Some(consumed)
            }
            Parsed::Body(body) => self.body(input, &body),
            Parsed::Refused(refusal) if refusal.close => self.broken(&refusal.error),
            Parsed::Refused(refusal) => {
                self.outcomes.push(said(&refusal.error));
                self.phase = Phase::Drop(refusal.rest);
                Some(refusal.consumed)
            }
        }
    }

    fn element(&mut self, verb: Many, input: &[u8]) -> Option<usize> {
        let (outcome, taken) = match element(verb, input, &LIMITS) {
            Element::Incomplete(awaited) => return self.awaits(input, awaited),
            Element::Item { key, consumed, .. } => {
                check_key(key);
                (format!("{key:?}"), consumed)
            }
            Element::Body(body) => return self.body(input, &body),
            Element::Refused {
                error,
                consumed,
                rest,
            } => {
                self.phase = Phase::Drop(rest);
                (said(&error), consumed)
            }
            Element::Broken(error) => return self.broken(&error),
        };
        self.outcomes.push(outcome);
        if let Some((_, left)) = &mut self.many {
            *left -= 1;
        }
        Some(taken)
    }

    fn body(&mut self, input: &[u8], body: &Body<'_>) -> Option<usize> {
        if body.value_len <= AWAITED_MAX {
            return self.awaits(input, body.awaited);
        }
        self.phase = Phase::Value {
            missing: body.value_len,
            emptied: emptied(input, body),
            passed: body.head - body.key.len(),
            rest: body.rest,
        };
        Some(body.head)
    }

    fn awaits(&mut self, input: &[u8], awaited: Awaited) -> Option<usize> {
        assert!(
            !awaited.has_come(input.len(), b""),
            "nothing is awaited: {input:?}"
        );
        let soon = [0; ARGUMENTS_LEN_MAX + 1024];
        assert!(
            awaited.has_come(input.len(), &soon),
            "it waits for too much: {input:?}"
        );
        self.awaits = awaited;
        None
    }

    fn broken(&mut self, error: &Error<'_>) -> Option<usize> {
        self.outcomes.push(said(error));
        self.over = true;
        Some(0)
    }
}

/// A command as text, the same whether its value arrived with it or piece by piece.
fn without_value(command: Command<'_>) -> String {
    match command {
        Command::Value(ValueCommand::Set(set)) => format!("{:?}", Set { value: b"", ..set }),
        Command::Value(ValueCommand::Append { key, .. }) => format!("append {key:?}"),
        Command::Value(ValueCommand::SetRange { key, offset, .. }) => {
            format!("setrange {key:?} {offset}")
        }
        Command::Value(ValueCommand::Eval(Eval {
            script,
            key,
            keys,
            read_only,
            arguments,
        })) => format!(
            "eval {script:?} {key:?} {keys} {read_only} {}",
            arguments.len()
        ),
        // Arguments borrow all of the input behind them, so they are written word by word.
        Command::Value(ValueCommand::SetAll(set)) => {
            let words: Vec<_> = set.pairs.collect();
            format!("{words:?} {:?} {:?}", set.lifetime, set.when)
        }
        Command::Value(ValueCommand::Restore(restore)) => {
            format!(
                "{:?}",
                Restore {
                    dump: b"",
                    ..restore
                }
            )
        }
        Command::Server(ServerCommand::Info(values))
        | Command::Transaction(TransactionCommand::Watch(values)) => {
            format!("{:?}", values.collect::<Vec<_>>())
        }
        Command::Server(
            ServerCommand::Command(Commands::Info(values) | Commands::GetKeys(values))
            | ServerCommand::Script(Scripts::Exists(values))
            | ServerCommand::Client(Client::List(ClientFilter::Of(values)))
            | ServerCommand::Config(Config::Get(values) | Config::Set(values)),
        ) => {
            format!("{:?}", values.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}
