//! The contract's section 1, written to be obviously right and nothing else.
//!
//! Four steps, each a plain reading of a paragraph: cut the body into tokens,
//! check their order and keep what every object holds, look up the *last*
//! `meta` and in it the *last* `id`, apply the rules for an id.

use serde::Deserialize;

/// Why a body has no usable id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The body is not one well-formed object.
    Malformed,
    /// There is no `meta`, or a `meta` object without `id`.
    Absent,
    /// Everything else.
    Unusable,
}

/// The usable id of a body, or why it has none.
///
/// # Errors
///
/// The reason.
pub fn reference(body: &[u8]) -> Result<String, Reason> {
    let tokens = tokens(body).ok_or(Reason::Malformed)?;
    let nodes = parse(tokens).ok_or(Reason::Malformed)?;
    let Node::Object(envelope) = &nodes[0] else {
        return Err(Reason::Malformed);
    };
    let meta = last(envelope, "meta").ok_or(Reason::Absent)?;
    let Node::Object(meta) = &nodes[meta] else {
        return Err(Reason::Unusable);
    };
    let id = last(meta, "id").ok_or(Reason::Absent)?;
    let Node::Text(Some(id)) = &nodes[id] else {
        return Err(Reason::Unusable);
    };
    if id.is_empty() || id.len() > 2048 || id.contains('\0') {
        return Err(Reason::Unusable);
    }
    Ok(id.clone())
}

/// What a string stands for; `None` if that is not well-formed Unicode.
type Text = Option<String>;

enum Token {
    /// One of `[ ] { } : ,`
    Mark(u8),
    Text(Text),
    /// A number or a literal, checked.
    Scalar,
}

/// Cuts a body into tokens; `None` if a piece of it is no token of JSON.
fn tokens(body: &[u8]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = body;
    while let Some(&first) = rest.first() {
        match first {
            b' ' | b'\t' | b'\n' | b'\r' => rest = &rest[1..],
            b'[' | b']' | b'{' | b'}' | b':' | b',' => {
                tokens.push(Token::Mark(first));
                rest = &rest[1..];
            }
            b'"' => {
                let length = length_of_string(&rest[1..])?;
                tokens.push(Token::Text(text(&rest[1..=length])?));
                rest = &rest[length + 2..];
            }
            _ => {
                let ends = |byte: &u8| b" \t\n\r[]{}:,\"".contains(byte);
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                let word = &rest[..length];
                let literal = [&b"true"[..], b"false", b"null"].contains(&word);
                if !literal && !is_number(word) {
                    return None;
                }
                tokens.push(Token::Scalar);
                rest = &rest[length..];
            }
        }
    }
    Some(tokens)
}

/// How many bytes there are before the quotation mark that ends a string.
fn length_of_string(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match rest.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
fn is_number(word: &[u8]) -> bool {
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let unsigned = word.strip_prefix(b"-").unwrap_or(word);
    let (mantissa, exponent) = split(unsigned, b"eE");
    let (whole, fraction) = split(mantissa, b".");
    let exponent = exponent.map(|part| match part.first() {
        Some(b'+' | b'-') => &part[1..],
        _ => part,
    });
    digits(whole)
        && (whole == b"0" || whole[0] != b'0')
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

/// What comes before and behind the first of some bytes.
fn split<'a>(word: &'a [u8], at: &[u8]) -> (&'a [u8], Option<&'a [u8]>) {
    match word.iter().position(|byte| at.contains(byte)) {
        Some(position) => (&word[..position], Some(&word[position + 1..])),
        None => (word, None),
    }
}

/// What a string stands for; the outer `None` if it is no string of JSON.
///
/// A string is runs of plain bytes and runs of escapes in turn. Plain bytes
/// are UTF-8 or the string is not well-formed Unicode; escapes are code units
/// of UTF-16, or it is not.
fn text(raw: &[u8]) -> Option<Text> {
    let mut whole = Some(String::new());
    let mut rest = raw;
    while !rest.is_empty() {
        let run;
        if rest[0] == b'\\' {
            let mut units = Vec::new();
            while rest.first() == Some(&b'\\') {
                let (unit, length) = escape(rest)?;
                units.push(unit);
                rest = &rest[length..];
            }
            run = String::from_utf16(&units).ok();
        } else {
            let length = rest.iter().position(|&byte| byte == b'\\');
            let (plain, behind) = rest.split_at(length.unwrap_or(rest.len()));
            if plain.iter().any(|&byte| byte < 0x20) {
                return None;
            }
            rest = behind;
            run = String::from_utf8(plain.to_vec()).ok();
        }
        whole = whole.zip(run).map(|(whole, run)| whole + &run);
    }
    Some(whole)
}

/// The code unit that an escape stands for, and the escape's length.
fn escape(rest: &[u8]) -> Option<(u16, usize)> {
    let short = |byte: u8| Some((u16::from(byte), 2));
    match rest.get(1)? {
        b'"' => short(b'"'),
        b'\\' => short(b'\\'),
        b'/' => short(b'/'),
        b'b' => short(0x08),
        b'f' => short(0x0c),
        b'n' => short(0x0a),
        b'r' => short(0x0d),
        b't' => short(0x09),
        b'u' => {
            let digits = rest.get(2..6)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u16::from_str_radix(digits, 16).ok()?, 6))
        }
        _ => None,
    }
}

/// A value. Its parts are named by their place in the list of all values, so
/// that no depth of nesting is a depth of anything here.
enum Node {
    Object(Vec<(Text, usize)>),
    Array,
    Text(Text),
    Scalar,
}

/// The last member of a name.
fn last(members: &[(Text, usize)], name: &str) -> Option<usize> {
    let mut from_behind = members.iter().rev();
    let found = from_behind.find(|(text, _)| text.as_deref() == Some(name))?;
    Some(found.1)
}

/// What may come next.
#[derive(PartialEq)]
enum Next {
    Value,
    /// Directly behind `[`.
    ValueOrEnd,
    Name,
    /// Directly behind `{`.
    NameOrEnd,
    Colon,
    /// Behind a value in a container.
    CommaOrEnd,
    /// Behind the outermost value.
    Nothing,
}

/// All values of a body that holds exactly one, the outermost first; `None`
/// if the tokens do not stand in the order that the grammar asks for.
fn parse(tokens: Vec<Token>) -> Option<Vec<Node>> {
    let mut nodes: Vec<Node> = Vec::new();
    // The containers that are open, the innermost last.
    let mut open: Vec<usize> = Vec::new();
    // The names whose values are still to come, the innermost last.
    let mut names: Vec<Text> = Vec::new();
    let mut next = Next::Value;
    for token in tokens {
        next = match (next, token) {
            (Next::ValueOrEnd, Token::Mark(b']')) | (Next::NameOrEnd, Token::Mark(b'}')) => {
                open.pop();
                behind_value(&open)
            }
            (Next::CommaOrEnd, Token::Mark(mark)) => {
                let in_object = matches!(nodes[*open.last()?], Node::Object(_));
                match (mark, in_object) {
                    (b',', true) => Next::Name,
                    (b',', false) => Next::Value,
                    (b'}', true) | (b']', false) => {
                        open.pop();
                        behind_value(&open)
                    }
                    _ => return None,
                }
            }
            (Next::Name | Next::NameOrEnd, Token::Text(name)) => {
                names.push(name);
                Next::Colon
            }
            (Next::Colon, Token::Mark(b':')) => Next::Value,
            (Next::Value | Next::ValueOrEnd, token) => {
                let place = nodes.len();
                if let Some(&container) = open.last()
                    && let Node::Object(members) = &mut nodes[container]
                {
                    members.push((names.pop()?, place));
                }
                match token {
                    Token::Mark(b'{') => {
                        nodes.push(Node::Object(Vec::new()));
                        open.push(place);
                        Next::NameOrEnd
                    }
                    Token::Mark(b'[') => {
                        nodes.push(Node::Array);
                        open.push(place);
                        Next::ValueOrEnd
                    }
                    Token::Mark(_) => return None,
                    Token::Text(text) => {
                        nodes.push(Node::Text(text));
                        behind_value(&open)
                    }
                    Token::Scalar => {
                        nodes.push(Node::Scalar);
                        behind_value(&open)
                    }
                }
            }
            _ => return None,
        };
    }
    (next == Next::Nothing).then_some(nodes)
}

fn behind_value(open: &[usize]) -> Next {
    if open.is_empty() {
        Next::Nothing
    } else {
        Next::CommaOrEnd
    }
}
