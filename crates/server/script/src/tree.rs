//! A script as the parser understood it.

/// A script: what its text does.
#[derive(Debug, PartialEq)]
pub struct Script {
    pub(crate) body: Block,
}

/// Statements, one after the other.
pub type Block = Vec<Statement>;

/// A statement.
#[derive(Debug, PartialEq)]
pub enum Statement {
    /// `local a, b = x, y`: so many values are added to the local variables.
    Local {
        names: usize,
        values: Vec<Expression>,
    },
    /// `a = x`, of a local variable.
    Assign { place: usize, value: Expression },
    /// A call whose value is not used.
    Call(Expression),
    /// `if`, its `elseif`s, and its `else`, whose condition is true.
    If(Vec<(Expression, Block)>),
    /// `do` ... `end`.
    Do(Block),
    /// `for index, key in ipairs(KEYS) do`: for one key. Its variables are the next two.
    EachKey(Block),
    /// `return`, with the value if there is one.
    Return(Option<Answer>),
}

/// What `return` returns.
#[derive(Debug, PartialEq)]
pub enum Answer {
    One(Expression),
    /// `{a, b}`.
    List(Vec<Expression>),
}

/// An expression.
#[derive(Debug, PartialEq)]
pub enum Expression {
    Nil,
    Bool(bool),
    Number(f64),
    Text(Vec<u8>),
    /// The local variable of this place: they are counted from the outermost on.
    Local(usize),
    /// An element of KEYS or ARGV.
    Element(List, Box<Expression>),
    /// `#KEYS`, `#ARGV`.
    Count(List),
    /// `#`, `not` and `-` of a value.
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<(Expression, Expression)>),
    /// The field of a status or of an error: `.ok`, `.err`.
    Field(Box<Expression>, Field),
    /// An element of a list that a command answered.
    Item(Box<(Expression, Expression)>),
    /// A function and its arguments.
    Call(Function, Vec<Expression>),
    /// A function of texts as a text's method: `text:sub(1, 5)`. The text is the first of the arguments.
    Method(Function, Vec<Expression>),
}

/// KEYS or ARGV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Keys,
    Arguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    Minus,
    Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    And,
    Or,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Join,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Ok,
    Err,
}

/// The functions that a script may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `redis.call`: an error ends the script.
    Command,
    /// `redis.pcall`: an error is a value.
    CommandOrError,
    /// `redis.status_reply`.
    Status,
    /// `redis.error_reply`.
    Error,
    /// `{err = ...}`, whose text stays as it is.
    Failed,
    /// `redis.replicate_commands`, by which scripts of old say that they ask for the time. There is nothing to do.
    Replicate,
    ToNumber,
    ToText,
    /// `type`.
    Kind,
    /// `math.floor`, `math.ceil`, `math.max`, `math.min`.
    Floor,
    Ceil,
    Max,
    Min,
    /// `string.len`, `string.sub`, `string.byte` (of one byte), `string.lower`, `string.upper`.
    Length,
    Part,
    Byte,
    Lower,
    Upper,
}

impl Function {
    /// The function of texts of this name.
    pub fn of_texts(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"len" => Self::Length,
            b"sub" => Self::Part,
            b"byte" => Self::Byte,
            b"lower" => Self::Lower,
            b"upper" => Self::Upper,
            _ => return None,
        })
    }

    /// True if it takes so many arguments. (Of a command, the parser looks at them.)
    pub fn takes(self, arguments: usize) -> bool {
        match self {
            Self::Max | Self::Min => arguments > 0,
            Self::Replicate => arguments == 0,
            Self::Part => (2..=3).contains(&arguments),
            Self::Byte => (1..=2).contains(&arguments),
            _ => arguments == 1,
        }
    }
}
