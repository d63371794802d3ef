//! What the grammar lists: types, special names, operators, and the texts that they become.

/// Code of a part and the pattern that it follows: see `Parser::pattern`.
pub(super) type Patterns = &'static [(&'static str, &'static str)];

#[rustfmt::skip]
pub(super) const SPECIAL_NAMES: Patterns = &[
    ("TV", "vtable for %t"),
    ("TT", "VTT for %t"),
    ("TI", "typeinfo for %t"),
    ("TS", "typeinfo name for %t"),
    ("TC", "construction vtable for %C"),
    ("TA", "template parameter object for %a"),
    ("TW", "thread-local wrapper routine for %n"),
    ("TH", "thread-local initialization routine for %n"),
    ("Tc", "covariant return thunk to %h%h%f"),
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
    ("Dk", "%n auto"),
    ("DK", "%n decltype(auto)"),
    ("Dv", "%v"),
    ("C", "%t complex"),
    ("G", "%t imaginary"),
    ("Ts", "struct %n"),
    ("Tu", "union %n"),
    ("Te", "enum %n"),
];

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
    (b'c', "char"),
    (b'i', "int"),
    (b'b', "bool"),
    (b'v', "void"),
    (b'm', "unsigned long"),
    (b'j', "unsigned int"),
    (b'l', "long"),
    (b'h', "unsigned char"),
    (b't', "unsigned short"),
    (b's', "short"),
    (b'd', "double"),
    (b'f', "float"),
    (b'x', "long long"),
    (b'y', "unsigned long long"),
    (b'w', "wchar_t"),
    (b'a', "signed char"),
    (b'n', "__int128"),
    (b'o', "unsigned __int128"),
    (b'e', "long double"),
    (b'g', "__float128"),
    (b'z', "..."),
];

/// Types without names, except lambdas.
pub(super) const UNNAMED: Patterns = &[("Ut", "'unnamed%d'%_"), ("Ub", "'block-literal'%#")];

/// Exceptions of function types.
#[rustfmt::skip]
pub(super) const EXCEPTIONS: Patterns = &[
    ("Do", " noexcept"),
    ("DO", " noexcept(%e)%E"),
    ("Dw", " throw(%T)"),
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

// How loosely operators bind.
pub(super) const POSTFIX: u8 = 1;
pub(super) const UNARY: u8 = 2;
pub(super) const CAST: u8 = 3;
pub(super) const TO_MEMBER: u8 = 4;
pub(super) const MULTIPLICATIVE: u8 = 5;
pub(super) const ADDITIVE: u8 = 6;
pub(super) const SHIFT: u8 = 7;
pub(super) const THREE_WAY: u8 = 8;
pub(super) const RELATIONAL: u8 = 9;
pub(super) const EQUALITY: u8 = 10;
pub(super) const AND: u8 = 11;
pub(super) const XOR: u8 = 12;
pub(super) const OR: u8 = 13;
pub(super) const LOGICAL_AND: u8 = 14;
pub(super) const LOGICAL_OR: u8 = 15;
pub(super) const CONDITIONAL: u8 = 16;
pub(super) const ASSIGNMENT: u8 = 17;
pub(super) const COMMA: u8 = 18;

// Patterns of expressions (`Parser::pattern`). `%o` is the symbol; a digit is an operand, which has
// parentheses if it binds as loosely as the operator (`%0`) or looser by so much, `%m` if it binds
// tighter by 2.
pub(super) const PREFIX: &str = "%o%0";
pub(super) const POSTFIXED: &str = "%1%o";
pub(super) const BINARY: &str = "%1 %o %0";
pub(super) const ASSIGN: &str = "%m %o %1";
pub(super) const MEMBER: &str = "%1%o%0";
pub(super) const OF_TYPE: &str = "%o (%t)";
pub(super) const OF_VALUE: &str = "%o (%e)";
pub(super) const NAMED_CAST: &str = "%o<%t>(%e)";
pub(super) const NEW: &str = "%o%N";
pub(super) const DELETE: &str = "%o %e";
/// Has a name, but is in no expression.
pub(super) const NAME_ONLY: &str = "";

#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    pub(super) code: [u8; 2],
    pub(super) pattern: &'static str,
    pub(super) precedence: u8,
    pub(super) symbol: &'static str,
}

/// Operators, sorted by code.
#[rustfmt::skip]
pub(super) const OPERATORS: [Operator; 62] = [
    operator(b"aN", ASSIGN, ASSIGNMENT, "&="),
    operator(b"aS", ASSIGN, ASSIGNMENT, "="),
    operator(b"aa", BINARY, LOGICAL_AND, "&&"),
    operator(b"ad", PREFIX, UNARY, "&"),
    operator(b"an", BINARY, AND, "&"),
    operator(b"at", OF_TYPE, UNARY, "alignof"),
    operator(b"aw", NAME_ONLY, 0, "co_await"),
    operator(b"az", OF_VALUE, UNARY, "alignof"),
    operator(b"cc", NAMED_CAST, POSTFIX, "const_cast"),
    operator(b"cl", "%e(%L)", POSTFIX, "()"),
    operator(b"cm", "%1, %0", COMMA, ","),
    operator(b"co", PREFIX, UNARY, "~"),
    operator(b"cp", "(%e)(%L)", POSTFIX, "()"),
    operator(b"dV", ASSIGN, ASSIGNMENT, "/="),
    operator(b"da", DELETE, UNARY, "delete[]"),
    operator(b"dc", NAMED_CAST, POSTFIX, "dynamic_cast"),
    operator(b"de", PREFIX, UNARY, "*"),
    operator(b"dl", DELETE, UNARY, "delete"),
    operator(b"ds", MEMBER, TO_MEMBER, ".*"),
    operator(b"dt", MEMBER, POSTFIX, "."),
    operator(b"dv", BINARY, MULTIPLICATIVE, "/"),
    operator(b"eO", ASSIGN, ASSIGNMENT, "^="),
    operator(b"eo", BINARY, XOR, "^"),
    operator(b"eq", BINARY, EQUALITY, "=="),
    operator(b"ge", BINARY, RELATIONAL, ">="),
    operator(b"gt", BINARY, RELATIONAL, ">"),
    operator(b"ix", "%0[%e]", POSTFIX, "[]"),
    operator(b"lS", ASSIGN, ASSIGNMENT, "<<="),
    operator(b"le", BINARY, RELATIONAL, "<="),
    operator(b"ls", BINARY, SHIFT, "<<"),
    operator(b"lt", BINARY, RELATIONAL, "<"),
    operator(b"mI", ASSIGN, ASSIGNMENT, "-="),
    operator(b"mL", ASSIGN, ASSIGNMENT, "*="),
    operator(b"mi", BINARY, ADDITIVE, "-"),
    operator(b"ml", BINARY, MULTIPLICATIVE, "*"),
    operator(b"mm", POSTFIXED, POSTFIX, "--"),
    operator(b"na", NEW, UNARY, "new[]"),
    operator(b"ne", BINARY, EQUALITY, "!="),
    operator(b"ng", PREFIX, UNARY, "-"),
    operator(b"nt", PREFIX, UNARY, "!"),
    operator(b"nw", NEW, UNARY, "new"),
    operator(b"oR", ASSIGN, ASSIGNMENT, "|="),
    operator(b"oo", BINARY, LOGICAL_OR, "||"),
    operator(b"or", BINARY, OR, "|"),
    operator(b"pL", ASSIGN, ASSIGNMENT, "+="),
    operator(b"pl", BINARY, ADDITIVE, "+"),
    operator(b"pm", MEMBER, TO_MEMBER, "->*"),
    operator(b"pp", POSTFIXED, POSTFIX, "++"),
    operator(b"ps", PREFIX, UNARY, "+"),
    operator(b"pt", MEMBER, POSTFIX, "->"),
    operator(b"qu", "%0 ? %e : %2", CONDITIONAL, "?"),
    operator(b"rM", ASSIGN, ASSIGNMENT, "%="),
    operator(b"rS", ASSIGN, ASSIGNMENT, ">>="),
    operator(b"rc", NAMED_CAST, POSTFIX, "reinterpret_cast"),
    operator(b"rm", BINARY, MULTIPLICATIVE, "%"),
    operator(b"rs", BINARY, SHIFT, ">>"),
    operator(b"sc", NAMED_CAST, POSTFIX, "static_cast"),
    operator(b"ss", BINARY, THREE_WAY, "<=>"),
    operator(b"st", OF_TYPE, UNARY, "sizeof"),
    operator(b"sz", OF_VALUE, UNARY, "sizeof"),
    operator(b"te", OF_VALUE, POSTFIX, "typeid"),
    operator(b"ti", OF_TYPE, POSTFIX, "typeid"),
];

const fn operator(
    code: &[u8; 2],
    pattern: &'static str,
    precedence: u8,
    symbol: &'static str,
) -> Operator {
    Operator {
        code: *code,
        pattern,
        precedence,
        symbol,
    }
}

/// Other expressions.
#[rustfmt::skip]
pub(super) const EXPRESSIONS: Patterns = &[
    ("fpT", "this"),
    ("fp", "fp%q%d%_"),
    ("fL", "fp%p%q%d%_"),
    ("il", "{%V}"),
    ("tl", "%t{%V}"),
    ("nx", "noexcept (%e)"),
    ("sp", "%X"),
    ("sZT", "sizeof...(%Y)"),
    ("sZ", "sizeof... (%e)"),
    ("sP", "sizeof... (%A)"),
    ("tr", "throw"),
    ("tw", "throw %e"),
    ("rq", "requires {%r }"),
    ("rQ", "requires (%U) {%r }"),
    ("u", "%i(%A)"),
];

pub(super) const REQUIREMENTS: Patterns = &[
    ("X", " %e;"),
    ("T", " typename %t;"),
    ("Q", " requires %e;"),
];

pub(super) const DESIGNATORS: Patterns =
    &[("di", ".%i%="), ("dx", "[%e]%="), ("dX", "[%e ... %e]%=")];

impl Operator {
    pub(super) const NONE: Operator = operator(&[0; 2], NAME_ONLY, 0, "");

    /// Returns the parts of the operator's name, if it can be overloaded.
    pub(super) fn name(&self) -> Option<[&'static str; 2]> {
        let is_named = match self.pattern {
            NAMED_CAST | OF_TYPE | OF_VALUE => false,
            MEMBER => self.symbol.starts_with("->"),
            _ => true,
        };
        let is_word = self
            .symbol
            .starts_with(|letter: char| letter.is_alphabetic());
        let word = if is_word { "operator " } else { "operator" };
        is_named.then_some([word, self.symbol])
    }
}
