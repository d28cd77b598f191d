//! The paper's Figures 6 and 7: its kinds of accesses, which of ours belong to each, and its own numbers.
//!
//! The paper counts what misses a core's second-level cache and comes from its socket as an L2 miss, what comes from
//! beyond the socket as an L3 miss. It has no row for a thread's own memory, which we count apart.

use serde::Serialize;

use crate::recording::Class;
use crate::report::{LinesReport, Row, Side};

/// A function of the paper's Figure 7, or a sum of some.
struct Function {
    name: &'static str,
    served: bool,
    /// Who accesses: `None` is both.
    by: Option<&'static str>,
    classes: &'static [Class],
    /// The paper's misses of the second and of the third level.
    paper: Option<(f64, f64)>,
}

const TABLE: &[Class] = &[
    Class::Lock,
    Class::Partition,
    Class::Space,
    Class::Bucket,
    Class::Chain,
    Class::Order,
    Class::Data,
    Class::Insert,
];
const TRAVERSAL: &[Class] = &[
    Class::Partition,
    Class::Bucket,
    Class::Chain,
    Class::Order,
    Class::Data,
];
const INSERT: &[Class] = &[Class::Space, Class::Insert];
const OWN: &[Class] = &[Class::Shared, Class::Server, Class::Client];
/// What the paper has rows for.
const COUNTED: &[Class] = &[
    Class::Lock,
    Class::Partition,
    Class::Space,
    Class::Bucket,
    Class::Chain,
    Class::Order,
    Class::Data,
    Class::Insert,
    Class::Request,
    Class::Answer,
];
const REQUEST: &[Class] = &[Class::Request];
const ANSWER: &[Class] = &[Class::Answer];

const fn function(
    name: &'static str,
    served: bool,
    by: Option<&'static str>,
    classes: &'static [Class],
    paper: Option<(f64, f64)>,
) -> Function {
    Function {
        name,
        served,
        by,
        classes,
        paper,
    }
}

const CLIENT: Option<&str> = Some("client");
const SERVER: Option<&str> = Some("server");

/// Figure 7's rows. The sum of client and server is not in it, but in its text.
#[rustfmt::skip]
const FUNCTIONS: [Function; 15] = [
    function("LockHash: spinlock acquire", false, CLIENT, &[Class::Lock], Some((0.1, 0.9))),
    function("LockHash: hash table traversal", false, CLIENT, TRAVERSAL, Some((2.0, 2.4))),
    function("LockHash: hash table insert", false, CLIENT, INSERT, Some((0.4, 1.2))),
    function("LockHash: total", false, CLIENT, COUNTED, Some((2.4, 4.6))),
    function("LockHash: own memory", false, CLIENT, OWN, None),
    function("CPHash client: send messages", true, CLIENT, REQUEST, Some((0.1, 0.5))),
    function("CPHash client: receive responses", true, CLIENT, ANSWER, Some((0.5, 0.4))),
    function("CPHash client: access data", true, CLIENT, TABLE, Some((0.4, 0.9))),
    function("CPHash client: total", true, CLIENT, COUNTED, Some((1.0, 1.9))),
    function("CPHash client: own memory", true, CLIENT, OWN, None),
    function("CPHash server: receive messages", true, SERVER, REQUEST, Some((1.4, 0.4))),
    function("CPHash server: send responses", true, SERVER, ANSWER, Some((0.4, 0.4))),
    function("CPHash server: execute message", true, SERVER, TABLE, Some((0.7, 0.4))),
    function("CPHash server: total", true, SERVER, COUNTED, Some((2.5, 1.2))),
    function("CPHash server: own memory", true, SERVER, OWN, None),
];

/// A number of one of the two figures.
#[derive(Clone, Debug, Serialize)]
pub struct Number {
    /// The column: a design, or whose misses.
    pub column: String,
    /// The row.
    pub row: String,
    /// The number.
    pub value: f64,
}

fn number(column: &str, row: &str, value: f64) -> Number {
    Number {
        column: column.to_owned(),
        row: row.to_owned(),
        value,
    }
}

/// The paper's own numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// Figure 6.
    pub figure_6: Vec<Number>,
    /// Figure 7.
    pub figure_7: Vec<Number>,
}

const CYCLES: &str = "cycles an operation";
const L2: &str = "L2 misses";
const L2_COST: &str = "cycles of an L2 miss";
const L3: &str = "L3 misses";
const L3_COST: &str = "cycles of an L3 miss";

/// What the paper prints. It gives one cost of a miss for CPHash, under its client.
pub fn published() -> Published {
    let column = |name: &str, values: &[(&str, f64)]| {
        let numbers = values.iter().map(|&(row, value)| number(name, row, value));
        numbers.collect::<Vec<_>>()
    };
    let client = [
        (CYCLES, 1126.0),
        (L2, 1.0),
        (L2_COST, 64.0),
        (L3, 1.9),
        (L3_COST, 381.0),
    ];
    let server = [(CYCLES, 672.0), (L2, 2.5), (L3, 1.2)];
    let lockhash = [
        (CYCLES, 3664.0),
        (L2, 2.4),
        (L2_COST, 170.0),
        (L3, 4.6),
        (L3_COST, 1421.0),
    ];
    let mut figure_7 = Vec::new();
    for function in &FUNCTIONS {
        if let Some((second, third)) = function.paper {
            figure_7.push(number("the paper's L2 misses", function.name, second));
            figure_7.push(number("the paper's L3 misses", function.name, third));
        }
    }
    figure_7.push(number("the paper's L2 misses", TOTAL, 3.5));
    figure_7.push(number("the paper's L3 misses", TOTAL, 3.1));
    Published {
        figure_6: [
            column("CPHash client, the paper's", &client),
            column("CPHash server, the paper's", &server),
            column("LockHash, the paper's", &lockhash),
        ]
        .concat(),
        figure_7,
    }
}

/// The sum of both sides.
const TOTAL: &str = "CPHash: total";

/// A row's part of Figure 6.
pub fn figure_6(row: &Row, served: bool) -> Vec<Number> {
    let column = |name: &str, side: &Side| {
        [
            number(name, CYCLES, side.cycles_per_op),
            number(name, L2, side.from_socket_per_op),
            number(name, L2_COST, side.from_socket_cycles),
            number(name, L3, side.from_afar_per_op),
            number(name, L3_COST, side.from_afar_cycles),
        ]
    };
    match served {
        true => [
            column("CPHash client", &row.client),
            column("CPHash server", &row.server),
        ]
        .concat(),
        false => column("LockHash", &row.client).to_vec(),
    }
}

/// A row's part of Figure 7.
pub fn figure_7(lines: &[LinesReport], served: bool) -> Vec<Number> {
    let functions = FUNCTIONS
        .iter()
        .filter(|function| function.served == served);
    let total = function(TOTAL, true, None, COUNTED, None);
    let mut numbers = Vec::new();
    for function in functions.chain(served.then_some(&total)) {
        let belongs = |line: &&LinesReport| {
            function.by.is_none_or(|by| by == line.by) && function.classes.contains(&line.class)
        };
        let sum = |of: fn(&LinesReport) -> f64| lines.iter().filter(belongs).map(of).sum();
        numbers.push(number(L2, function.name, sum(|line| line.from_socket)));
        let third = sum(|line| line.from_other + line.from_memory);
        numbers.push(number(L3, function.name, third));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(by: &'static str, class: Class, from_socket: f64, from_other: f64) -> LinesReport {
        LinesReport {
            by,
            class,
            from_socket,
            from_other,
            from_memory: 0.5,
            cycles: 0.0,
            waited: 0.0,
        }
    }

    fn value(numbers: &[Number], column: &str, row: &str) -> f64 {
        let found = |number: &&Number| number.column == column && number.row == row;
        numbers.iter().find(found).unwrap().value
    }

    #[test]
    fn each_class_belongs_to_one_function_of_each_side() {
        for (served, by) in [(false, "client"), (true, "client"), (true, "server")] {
            for class in Class::ALL {
                let numbers = figure_7(&[line(by, class, 1.0, 2.0)], served);
                let parts = FUNCTIONS.iter().filter(|function| {
                    function.served == served && !function.name.ends_with("total")
                });
                let sum: f64 = parts.map(|part| value(&numbers, L3, part.name)).sum();
                // A LockHash has no lines of messages.
                let known = served || !matches!(class, Class::Request | Class::Answer);
                assert_eq!(sum, if known { 2.5 } else { 0.0 }, "{by} {class:?}");
            }
        }
    }

    #[test]
    fn sums_are_of_what_the_paper_counts() {
        let lines = [
            line("client", Class::Request, 1.0, 2.0),
            line("client", Class::Client, 8.0, 8.0),
            line("server", Class::Bucket, 0.25, 4.0),
        ];
        let numbers = figure_7(&lines, true);
        assert_eq!(value(&numbers, L2, "CPHash client: total"), 1.0);
        assert_eq!(value(&numbers, L3, "CPHash client: own memory"), 8.5);
        assert_eq!(value(&numbers, L2, TOTAL), 1.25);
        assert_eq!(value(&numbers, L3, TOTAL), 7.0);
    }

    #[test]
    fn the_papers_totals_are_those_of_its_rows() {
        let numbers = published().figure_7;
        for side in ["CPHash client", "CPHash server", "LockHash"] {
            let of_side = numbers.iter().filter(|number| {
                number.row.starts_with(&format!("{side}: ")) && number.column.contains("L3")
            });
            let (totals, parts): (Vec<_>, Vec<_>) =
                of_side.partition(|number| number.row.ends_with("total"));
            let sum: f64 = parts.iter().map(|number| number.value).sum();
            // The paper rounds each, and each operation of LockHash has 0.3 inserts.
            assert!((sum - totals[0].value).abs() < 0.15, "{side}: {sum}");
        }
    }
}
