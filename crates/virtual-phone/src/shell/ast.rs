//! The syntax tree of a shell script.

use std::sync::Arc;

/// A part of a word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// Plain text; `quoted` text is neither split nor matched as a pattern.
    Text { text: String, quoted: bool },
    /// `$name`, `${name}`, `${name<op>word}`.
    Parameter {
        name: String,
        op: ParamOp,
        quoted: bool,
    },
    /// `$(…)`.
    Command { script: Arc<Node>, quoted: bool },
    /// `$((…))`.
    Arithmetic { expr: Word, quoted: bool },
    /// Empty quotes, or quotes around an empty expansion: keeps the word.
    Empty,
}

/// A word before expansion.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Word(pub(crate) Vec<Part>);

/// Operation of a `${…}`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ParamOp {
    Plain,
    /// `:-`: the word, if the value is empty or unset.
    Default(Word),
    /// `#`, `##`, `%`, `%%`.
    Trim {
        suffix: bool,
        longest: bool,
        pattern: Word,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Redirect {
    pub(crate) fd: u32,
    pub(crate) kind: RedirectKind,
    pub(crate) target: Word,
}

/// Kind of a redirection: `<`, `>`, `>>`, `>&`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    Read,
    Write,
    Append,
    Duplicate,
}

/// A command of any form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Simple {
        assigns: Vec<(String, Word)>,
        words: Vec<Word>,
        redirects: Vec<Redirect>,
    },
    Pipeline {
        negated: bool,
        parts: Vec<Arc<Node>>,
    },
    /// `&&` (`and` is true) and `||`.
    AndOr {
        left: Arc<Node>,
        and: bool,
        right: Arc<Node>,
    },
    /// Commands one after another; `true` marks those that run in the background.
    List(Vec<(Arc<Node>, bool)>),
    /// A compound command with redirections.
    Redirected {
        body: Arc<Node>,
        redirects: Vec<Redirect>,
    },
    Subshell(Arc<Node>),
    If {
        branches: Vec<(Arc<Node>, Arc<Node>)>,
        otherwise: Option<Arc<Node>>,
    },
    Loop {
        condition: Arc<Node>,
        body: Arc<Node>,
    },
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: Arc<Node>,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, Arc<Node>)>,
    },
    Function {
        name: String,
        body: Arc<Node>,
    },
}
