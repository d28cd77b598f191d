//! The parser: it understands the statements and expressions that this server can carry out, and refuses all others.

use crate::SCRIPT_LEN_MAX;
use crate::lexer::{Token, tokens};
use crate::tree::{
    Answer, Binary, Block, Expression, Field, Function, List, Script, Statement, Unary,
};

/// The commands that a script may call: each is about one plain value.
pub const COMMANDS: [&[u8]; 29] = [
    b"get",
    b"set",
    b"setex",
    b"psetex",
    b"setnx",
    b"getset",
    b"getdel",
    b"getex",
    b"strlen",
    b"getrange",
    b"substr",
    b"del",
    b"unlink",
    b"exists",
    b"incr",
    b"incrby",
    b"incrbyfloat",
    b"decr",
    b"decrby",
    b"expire",
    b"pexpire",
    b"expireat",
    b"pexpireat",
    b"persist",
    b"ttl",
    b"pttl",
    b"expiretime",
    b"pexpiretime",
    b"type",
];

/// Blocks within blocks.
const BLOCKS_MAX: usize = 20;

/// Operators, calls and brackets of one expression. They bound how deep it is, and so the stack that it needs.
const NODES_MAX: usize = 200;

/// Words that name no variable.
const KEYWORDS: [&[u8]; 21] = [
    b"and",
    b"break",
    b"do",
    b"else",
    b"elseif",
    b"end",
    b"false",
    b"for",
    b"function",
    b"if",
    b"in",
    b"local",
    b"nil",
    b"not",
    b"or",
    b"repeat",
    b"return",
    b"then",
    b"true",
    b"until",
    b"while",
];

impl Script {
    /// The script of this text. `None` if the text is another program, or none at all. A script calls a command: what
    /// calls none does not need a key.
    pub fn read(text: &[u8]) -> Option<Self> {
        if text.len() > SCRIPT_LEN_MAX {
            return None;
        }
        let tokens = tokens(text)?;
        let mut parser = Parser {
            left: &tokens,
            locals: Vec::new(),
            blocks: 0,
            nodes: 0,
            commands: 0,
        };
        let body = parser.block()?;
        (parser.left.is_empty() && parser.commands > 0).then_some(Self { body })
    }
}

struct Parser<'t> {
    left: &'t [Token<'t>],
    /// The local variables that are in scope.
    locals: Vec<Local<'t>>,
    /// Blocks around what comes next.
    blocks: usize,
    /// Nodes of the expression so far.
    nodes: usize,
    /// Calls of commands so far.
    commands: usize,
}

/// A local variable.
struct Local<'t> {
    name: &'t [u8],
    /// The function that it is another name of. It has no value then.
    function: Option<Function>,
}

impl<'t> Local<'t> {
    fn of_value(name: &'t [u8]) -> Self {
        Self {
            name,
            function: None,
        }
    }
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Option<&'t Token<'t>> {
        let (first, left) = self.left.split_first()?;
        self.left = left;
        Some(first)
    }

    /// Takes the next token if it is this mark.
    fn mark(&mut self, mark: &str) -> Option<()> {
        match self.left.first() {
            Some(Token::Mark(here)) if *here == mark => self.next().map(drop),
            _ => None,
        }
    }

    /// Takes the next token if it is this name.
    fn word(&mut self, word: &str) -> Option<()> {
        match self.left.first() {
            Some(Token::Name(here)) if *here == word.as_bytes() => self.next().map(drop),
            _ => None,
        }
    }

    /// The name of a variable.
    fn name(&mut self) -> Option<&'t [u8]> {
        match self.next()? {
            Token::Name(name) if !KEYWORDS.contains(name) => Some(name),
            _ => None,
        }
    }

    /// Statements up to a keyword that ends them, or to the end.
    fn block(&mut self) -> Option<Block> {
        self.blocks += 1;
        if self.blocks > BLOCKS_MAX {
            return None;
        }
        let outer = self.locals.len();
        let mut block = Vec::new();
        while !self.ends_block() {
            let statement = self.statement()?;
            let is_last = matches!(statement, Statement::Return(_));
            block.push(statement);
            if is_last {
                break;
            }
        }
        self.locals.truncate(outer);
        self.blocks -= 1;
        self.ends_block().then_some(block)
    }

    fn ends_block(&self) -> bool {
        match self.left.first() {
            None => true,
            Some(Token::Name(name)) => matches!(*name, b"end" | b"else" | b"elseif"),
            Some(_) => false,
        }
    }

    fn statement(&mut self) -> Option<Statement> {
        if self.word("local").is_some() {
            return self.local();
        }
        if self.word("if").is_some() {
            return self.branches();
        }
        if self.word("return").is_some() {
            return self.answer();
        }
        if self.word("do").is_some() {
            let block = self.block()?;
            self.word("end")?;
            return Some(Statement::Do(block));
        }
        if self.word("for").is_some() {
            return self.each_key();
        }
        if let [Token::Name(name), Token::Mark("="), left @ ..] = self.left {
            let place = self.place(name)?;
            if self.locals[place].function.is_some() {
                return None;
            }
            self.left = left;
            let value = self.expression()?;
            return Some(Statement::Assign { place, value });
        }
        match self.expression()? {
            call @ Expression::Call(..) => Some(Statement::Call(call)),
            _ => None,
        }
    }

    fn local(&mut self) -> Option<Statement> {
        let mut locals = vec![Local::of_value(self.name()?)];
        while self.mark(",").is_some() {
            locals.push(Local::of_value(self.name()?));
        }
        let mut values = Vec::new();
        let mut has_more = self.mark("=").is_some();
        while has_more {
            let function = self.function_alone();
            values.push(match function {
                Some(_) => Expression::Nil,
                None => self.expression()?,
            });
            if let Some(local) = locals.get_mut(values.len() - 1) {
                local.function = function;
            }
            has_more = self.mark(",").is_some();
        }
        let statement = Statement::Local {
            names: locals.len(),
            values,
        };
        self.locals.extend(locals);
        Some(statement)
    }

    /// A function that is named but not called.
    fn function_alone(&mut self) -> Option<Function> {
        let before = self.left;
        let function = match self.next() {
            Some(Token::Name(name)) if self.place(name).is_none() => self.function(name),
            _ => None,
        };
        let is_alone = match self.left.first() {
            Some(Token::Mark(mark)) => *mark == ",",
            Some(Token::Name(b"and" | b"or")) => false,
            _ => true,
        };
        if function.is_none() || !is_alone {
            self.left = before;
            return None;
        }
        function
    }

    fn branches(&mut self) -> Option<Statement> {
        let mut branches = Vec::new();
        loop {
            let condition = self.expression()?;
            self.word("then")?;
            branches.push((condition, self.block()?));
            if self.word("elseif").is_none() {
                break;
            }
        }
        if self.word("else").is_some() {
            branches.push((Expression::Bool(true), self.block()?));
        }
        self.word("end")?;
        Some(Statement::If(branches))
    }

    fn answer(&mut self) -> Option<Statement> {
        if self.ends_block() {
            return Some(Statement::Return(None));
        }
        let answer = if let Some((function, left)) = self.table() {
            self.left = left;
            let value = self.expression()?;
            self.mark("}")?;
            Answer::One(Expression::Call(function, vec![value]))
        } else if self.mark("{").is_some() {
            let mut values = Vec::new();
            while self.mark("}").is_none() {
                values.push(self.expression()?);
                // A comma may be behind the last one, too.
                if self.mark(",").is_none() {
                    self.mark("}")?;
                    break;
                }
            }
            Answer::List(values)
        } else {
            Answer::One(self.expression()?)
        };
        Some(Statement::Return(Some(answer)))
    }

    /// The front of `{ok = ...}` or `{err = ...}`, as the function that makes the same, and what is behind it.
    fn table(&self) -> Option<(Function, &'t [Token<'t>])> {
        let [
            Token::Mark("{"),
            Token::Name(name),
            Token::Mark("="),
            left @ ..,
        ] = self.left
        else {
            return None;
        };
        match *name {
            b"ok" => Some((Function::Status, left)),
            b"err" => Some((Function::Failed, left)),
            _ => None,
        }
    }

    /// `for index, key in ipairs(KEYS) do ... end`, behind its first word.
    fn each_key(&mut self) -> Option<Statement> {
        let index = self.name()?;
        self.mark(",")?;
        let key = self.name()?;
        self.word("in")?;
        self.word("ipairs").or_else(|| self.word("pairs"))?;
        self.mark("(")?;
        self.word("KEYS")?;
        self.mark(")")?;
        self.word("do")?;
        let outer = self.locals.len();
        self.locals.extend([index, key].map(Local::of_value));
        let block = self.block()?;
        self.locals.truncate(outer);
        self.word("end")?;
        Some(Statement::EachKey(block))
    }

    fn place(&self, name: &[u8]) -> Option<usize> {
        self.locals.iter().rposition(|local| local.name == name)
    }

    /// What `one` takes, once or more, with commas in between.
    fn listed(&mut self, one: impl Fn(&mut Self) -> Option<Expression>) -> Option<Vec<Expression>> {
        let mut all = vec![one(self)?];
        while self.mark(",").is_some() {
            all.push(one(self)?);
        }
        Some(all)
    }

    /// An expression that is no part of another.
    fn expression(&mut self) -> Option<Expression> {
        self.nodes = 0;
        self.part(0)
    }

    /// An expression of operators that bind more than `least`.
    fn part(&mut self, least: u8) -> Option<Expression> {
        self.node()?;
        let mut left = self.unary()?;
        while let Some((operator, binding)) = self.operator()
            && binding > least
        {
            self.node()?;
            self.next();
            // `..` alone associates to the right.
            let right = self.part(binding - u8::from(operator == Binary::Join))?;
            left = Expression::Binary(operator, Box::new((left, right)));
        }
        Some(left)
    }

    fn node(&mut self) -> Option<()> {
        self.nodes += 1;
        (self.nodes <= NODES_MAX).then_some(())
    }

    /// The operator that comes next, and how strongly it binds.
    fn operator(&self) -> Option<(Binary, u8)> {
        Some(match self.left.first()? {
            Token::Name(b"or") => (Binary::Or, 1),
            Token::Name(b"and") => (Binary::And, 3),
            Token::Mark("==") => (Binary::Equal, 5),
            Token::Mark("~=") => (Binary::Unequal, 5),
            Token::Mark("<") => (Binary::Less, 5),
            Token::Mark("<=") => (Binary::LessOrEqual, 5),
            Token::Mark(">") => (Binary::Greater, 5),
            Token::Mark(">=") => (Binary::GreaterOrEqual, 5),
            Token::Mark("..") => (Binary::Join, 7),
            Token::Mark("+") => (Binary::Add, 9),
            Token::Mark("-") => (Binary::Subtract, 9),
            Token::Mark("*") => (Binary::Multiply, 11),
            Token::Mark("/") => (Binary::Divide, 11),
            Token::Mark("%") => (Binary::Modulo, 11),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Option<Expression> {
        /// Unary operators bind more than all others.
        const BINDING: u8 = 12;
        let operator = match self.left.first()? {
            Token::Name(b"not") => Unary::Not,
            Token::Mark("-") => Unary::Minus,
            Token::Mark("#") => Unary::Length,
            _ => return self.suffixed(),
        };
        self.next();
        // `#ARGV[1]` is the length of an argument.
        if operator == Unary::Length
            && !matches!(self.left.get(1), Some(Token::Mark("[")))
            && let Some(list) = self.list()
        {
            return Some(Expression::Count(list));
        }
        let value = self.part(BINDING)?;
        Some(Expression::Unary(operator, Box::new(value)))
    }

    /// KEYS or ARGV.
    fn list(&mut self) -> Option<List> {
        let (list, name) = match self.left.first()? {
            Token::Name(b"KEYS") => (List::Keys, "KEYS"),
            Token::Name(b"ARGV") => (List::Arguments, "ARGV"),
            _ => return None,
        };
        if self.place(name.as_bytes()).is_some() {
            return None;
        }
        self.next();
        Some(list)
    }

    /// A value, and its fields, elements and methods. A constant has none but in brackets.
    fn suffixed(&mut self) -> Option<Expression> {
        let has_none = match self.left.first()? {
            Token::Text(_) | Token::Number(_) => true,
            Token::Name(name) => matches!(*name, b"nil" | b"true" | b"false"),
            Token::Mark(_) => false,
        };
        let mut value = self.value()?;
        while !has_none && let [Token::Mark(mark @ ("." | "[" | ":")), left @ ..] = self.left {
            self.node()?;
            self.left = left;
            value = match *mark {
                "." => Expression::Field(Box::new(value), field(self.name()?)?),
                "[" => self.element(value)?,
                _ => self.method(value)?,
            };
        }
        Some(value)
    }

    /// `'ok'`, `'err'` or a number in brackets, behind the first of them.
    fn element(&mut self, value: Expression) -> Option<Expression> {
        let element = match self.left {
            [Token::Text(name), Token::Mark("]"), left @ ..] => {
                self.left = left;
                return Some(Expression::Field(Box::new(value), field(name)?));
            }
            _ => Expression::Item(Box::new((value, self.part(0)?))),
        };
        self.mark("]")?;
        Some(element)
    }

    /// The call of a text's method, behind its colon.
    fn method(&mut self, text: Expression) -> Option<Expression> {
        let function = Function::of_texts(self.name()?)?;
        let mut arguments = vec![text];
        arguments.extend(self.arguments()?);
        let fits = function.takes(arguments.len());
        fits.then_some(Expression::Method(function, arguments))
    }

    fn value(&mut self) -> Option<Expression> {
        if let Some(list) = self.list() {
            self.mark("[")?;
            let index = self.part(0)?;
            self.mark("]")?;
            return Some(Expression::Element(list, Box::new(index)));
        }
        Some(match self.next()? {
            Token::Number(number) => Expression::Number(*number),
            Token::Text(text) => Expression::Text(text.clone()),
            Token::Name(b"nil") => Expression::Nil,
            Token::Name(b"true") => Expression::Bool(true),
            Token::Name(b"false") => Expression::Bool(false),
            Token::Name(name) => match self.place(name) {
                Some(place) => match self.locals[place].function {
                    Some(function) => self.call(function)?,
                    None => Expression::Local(place),
                },
                None => {
                    let function = self.function(name)?;
                    self.call(function)?
                }
            },
            Token::Mark("(") => {
                let value = self.part(0)?;
                self.mark(")")?;
                value
            }
            Token::Mark(_) => return None,
        })
    }

    /// The function whose first word was taken.
    fn function(&mut self, name: &[u8]) -> Option<Function> {
        Some(match name {
            b"tonumber" => Function::ToNumber,
            b"tostring" => Function::ToText,
            b"type" => Function::Kind,
            b"redis" | b"server" | b"math" | b"string" => {
                self.mark(".")?;
                match (name, self.name()?) {
                    (b"math", b"floor") => Function::Floor,
                    (b"math", b"ceil") => Function::Ceil,
                    (b"math", b"max") => Function::Max,
                    (b"math", b"min") => Function::Min,
                    (b"redis" | b"server", b"call") => Function::Command,
                    (b"redis" | b"server", b"pcall") => Function::CommandOrError,
                    (b"redis" | b"server", b"status_reply") => Function::Status,
                    (b"redis" | b"server", b"error_reply") => Function::Error,
                    (b"redis" | b"server", b"replicate_commands") => Function::Replicate,
                    (b"string", name) => Function::of_texts(name)?,
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// The call of a function, whose arguments come next.
    fn call(&mut self, function: Function) -> Option<Expression> {
        let arguments = self.arguments()?;
        let fits = match function {
            Function::Command | Function::CommandOrError if is_time(&arguments) => true,
            Function::Command | Function::CommandOrError => {
                self.commands += 1;
                is_command(&arguments)
            }
            _ => function.takes(arguments.len()),
        };
        fits.then_some(Expression::Call(function, arguments))
    }

    /// The arguments of a call: parts of the expression that the call is in.
    fn arguments(&mut self) -> Option<Vec<Expression>> {
        self.mark("(")?;
        if self.mark(")").is_some() {
            return Some(Vec::new());
        }
        let arguments = self.listed(|parser| parser.part(0))?;
        self.mark(")")?;
        Some(arguments)
    }
}

fn field(name: &[u8]) -> Option<Field> {
    match name {
        b"ok" => Some(Field::Ok),
        b"err" => Some(Field::Err),
        _ => None,
    }
}

/// True if these are the words of TIME, the only command without a key.
fn is_time(arguments: &[Expression]) -> bool {
    matches!(arguments, [Expression::Text(name)] if name.eq_ignore_ascii_case(b"time"))
}

/// True if the first of these is the name of a command that a script may call, and a key follows.
fn is_command(arguments: &[Expression]) -> bool {
    let [Expression::Text(name), _key, ..] = arguments else {
        return false;
    };
    COMMANDS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}
