//! What the grammar lists: types, special names, operators, and the texts that they become.

/// Code of a part and the pattern that it follows: see `Parser::parts`.
pub(super) type Patterns = &'static [(&'static str, &'static str)];

#[rustfmt::skip]
pub(super) const SPECIAL_NAMES: Patterns = &[
    ("TV", "vtable for %t"),
    ("TT", "VTT for %t"),
    ("TI", "typeinfo for %t"),
    ("TS", "typeinfo name for %t"),
    ("TC", "construction vtable for %C"),
    ("TW", "thread-local wrapper routine for %n"),
    ("TH", "thread-local initialization routine for %n"),
    ("Th", "non-virtual thunk to %#%f"),
    ("Tv", "virtual thunk to %#%#%f"),
    ("GV", "guard variable for %n"),
    ("GR", "reference temporary for %n%R"),
];

/// Types that other parts of the name can refer to.
#[rustfmt::skip]
pub(super) const TYPES: Patterns = &[
    ("Dt", "decltype(%e)%E"),
    ("DT", "decltype(%e)%E"),
    ("Dp", "%P"),
    ("Dv", "%v"),
    ("C", "%t complex"),
    ("u", "%u"),
];

/// Suffixes of integers, by the letter of their type.
#[rustfmt::skip]
pub(super) const SUFFIXES: [(u8, &str); 6] =
    [(b'i', ""), (b'j', "u"), (b'l', "l"), (b'm', "ul"), (b'x', "ll"), (b'y', "ull")];

/// Types that other parts repeat.
#[rustfmt::skip]
pub(super) const BUILTIN_TYPES: Patterns = &[
    ("Dn", "std::nullptr_t"),
    ("Ds", "char16_t"),
    ("Di", "char32_t"),
    ("Du", "char8_t"),
    ("Da", "auto"),
    ("Dc", "decltype(auto)"),
    ("Dh", "half"),
    ("Dd", "decimal64"),
    ("De", "decimal128"),
    ("Df", "decimal32"),
    ("DF16b", "std::bfloat16_t"),
    ("DF", "_Float%d%_"),
    ("DB", "_BitInt(%d)%_"),
    ("DU", "unsigned _BitInt(%d)%_"),
];

/// Abbreviated classes of the standard library: code, name, name of the class, its arguments.
#[rustfmt::skip]
pub(super) const STANDARD: [(u8, &str, &str, &str); 6] = [
    (b'a', "std::allocator", "allocator", ""),
    (b'b', "std::basic_string", "basic_string", ""),
    (b's', "std::string", "basic_string", "<char, std::char_traits<char>, std::allocator<char>>"),
    (b'i', "std::istream", "basic_istream", "<char, std::char_traits<char>>"),
    (b'o', "std::ostream", "basic_ostream", "<char, std::char_traits<char>>"),
    (b'd', "std::iostream", "basic_iostream", "<char, std::char_traits<char>>"),
];

/// Types of one letter.
#[rustfmt::skip]
pub(super) const LETTER_TYPES: [(u8, &str); 21] = [
    (b'c', "char"), (b'a', "signed char"), (b'h', "unsigned char"), (b'w', "wchar_t"),
    (b's', "short"), (b't', "unsigned short"), (b'i', "int"), (b'j', "unsigned int"),
    (b'l', "long"), (b'm', "unsigned long"), (b'x', "long long"), (b'y', "unsigned long long"),
    (b'n', "__int128"), (b'o', "unsigned __int128"), (b'f', "float"), (b'd', "double"),
    (b'e', "long double"), (b'g', "__float128"), (b'b', "bool"), (b'v', "void"), (b'z', "..."),
];

/// Literals that are not numbers.
#[rustfmt::skip]
pub(super) const VALUES: Patterns = &[
    ("_Z", "%f%E"),
    ("DnE", "nullptr"),
    ("Dn0E", "nullptr"),
    ("b0E", "false"),
    ("b1E", "true"),
];

// Patterns of operations (`Parser::parts`). `%o` is the symbol, `%0` an operand.
const PREFIX: &str = "%o%0";
const POSTFIXED: &str = "%0%o";
const BINARY: &str = "%0 %o %0";
/// The operands bind tighter, or are of the same operator.
const LOGICAL: &str = "%e %o %e";
/// Between `<` and `>`, `>` needs parentheses.
const GREATER: &str = "(%0 %o %0)";
const CONDITIONAL: &str = "%0 ? %0 : %0";
const MEMBER: &str = "%0%o%0";
const OF_TYPE: &str = "%o (%t)";
const OF_VALUE: &str = "%o (%e)";
const CAST: &str = "%o<%t>(%e)";
/// Has a name, but is in no expression.
const NAME_ONLY: &str = "";

/// Code and symbol of an operator.
type Symbol = ([u8; 2], &'static str);

/// Operators by their patterns.
#[rustfmt::skip]
const OPERATORS: [(&str, &[Symbol]); 15] = [
    ("%e(%L)", &[(*b"cl", "()")]),
    ("%0[%e]", &[(*b"ix", "[]")]),
    (PREFIX, &[
        (*b"ad", "&"), (*b"de", "*"), (*b"nt", "!"), (*b"ng", "-"), (*b"co", "~"), (*b"ps", "+"),
    ]),
    (BINARY, &[
        (*b"aS", "="), (*b"pL", "+="), (*b"mI", "-="), (*b"mL", "*="), (*b"dV", "/="),
        (*b"rM", "%="), (*b"aN", "&="), (*b"oR", "|="), (*b"eO", "^="), (*b"lS", "<<="),
        (*b"rS", ">>="), (*b"eq", "=="), (*b"ne", "!="), (*b"lt", "<"), (*b"le", "<="),
        (*b"ge", ">="), (*b"ss", "<=>"), (*b"an", "&"),
        (*b"or", "|"), (*b"eo", "^"), (*b"ls", "<<"), (*b"pl", "+"), (*b"mi", "-"),
        (*b"ml", "*"), (*b"dv", "/"), (*b"rm", "%"),
    ]),
    (LOGICAL, &[(*b"aa", "&&"), (*b"oo", "||")]),
    (GREATER, &[(*b"gt", ">"), (*b"rs", ">>")]),
    (MEMBER, &[(*b"dt", "."), (*b"pt", "->"), (*b"ds", ".*"), (*b"pm", "->*")]),
    (POSTFIXED, &[(*b"pp", "++"), (*b"mm", "--")]),
    (CONDITIONAL, &[(*b"qu", "?")]),
    ("(%e, %e)", &[(*b"cm", ",")]),
    ("(%e)(%L)", &[(*b"cp", "()")]),
    (OF_TYPE, &[(*b"st", "sizeof"), (*b"at", "alignof"), (*b"ti", "typeid")]),
    (OF_VALUE, &[(*b"sz", "sizeof"), (*b"az", "alignof"), (*b"te", "typeid")]),
    (CAST, &[
        (*b"sc", "static_cast"), (*b"cc", "const_cast"), (*b"dc", "dynamic_cast"),
        (*b"rc", "reinterpret_cast"),
    ]),
    (NAME_ONLY, &[
        (*b"nw", "new"), (*b"na", "new[]"), (*b"dl", "delete"), (*b"da", "delete[]"),
        (*b"aw", "co_await"),
    ]),
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    pub(super) pattern: &'static str,
    pub(super) symbol: &'static str,
}

/// Other expressions.
#[rustfmt::skip]
pub(super) const EXPRESSIONS: Patterns = &[
    ("cv", "(%z)(%c)"),
    ("fpT", "this"),
    ("fp", "fp%q%d%_"),
    ("fL", "fp%p%q%d%_"),
    ("il", "{%L}"),
    ("tl", "%t{%L}"),
    ("nx", "noexcept (%e)"),
    ("sp", "%X"),
    ("sZT", "sizeof...(%Y)"),
    ("sZ", "sizeof... (%e)"),
    ("tr", "throw"),
    ("tw", "throw %e"),
    ("u", "%i(%A)"),
];

impl Operator {
    /// Returns the operator with a code.
    pub(super) fn of_code(code: [u8; 2]) -> Option<Operator> {
        OPERATORS.iter().find_map(|(pattern, operators)| {
            let (_, symbol) = operators.iter().find(|operator| operator.0 == code)?;
            Some(Operator { pattern, symbol })
        })
    }

    /// Returns whether it has operands on both sides.
    pub(super) fn is_binary(self) -> bool {
        matches!(self.pattern, BINARY | LOGICAL | CONDITIONAL)
    }

    /// Returns the parts of the operator's name, if it can be overloaded.
    pub(super) fn name(self) -> Option<[&'static str; 2]> {
        let is_named = match self.pattern {
            CAST | OF_TYPE | OF_VALUE | CONDITIONAL => false,
            MEMBER => self.symbol.starts_with("->"),
            _ => true,
        };
        let is_word = self.symbol.starts_with(char::is_alphabetic);
        let word = if is_word { "operator " } else { "operator" };
        is_named.then_some([word, self.symbol])
    }

    /// Returns the pattern in an expression; `is_prefix` if the symbol comes first.
    pub(super) fn pattern(self, is_prefix: impl FnOnce() -> bool) -> Option<&'static str> {
        match self.pattern {
            NAME_ONLY => None,
            POSTFIXED if is_prefix() => Some(PREFIX),
            pattern => Some(pattern),
        }
    }
}
