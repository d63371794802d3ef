//! `test` and `[`.

use crate::access::Cred;
use crate::fs::Body;
use crate::fs::{DIRECTORY, REGULAR};
use crate::kernel::Kernel;

/// S_IFMT.
const TYPE_BITS: u32 = 0o170_000;

/// Evaluates a `test` expression.
pub(crate) fn evaluate(
    kernel: &Kernel,
    cred: &Cred,
    cwd: &str,
    args: &[String],
) -> Result<bool, String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    evaluate_words(kernel, cred, cwd, &args)
}

fn evaluate_words(kernel: &Kernel, cred: &Cred, cwd: &str, args: &[&str]) -> Result<bool, String> {
    let unary = |op: &str, operand: &str| unary(kernel, cred, cwd, op, operand);
    // POSIX decides by the number of arguments.
    match *args {
        [] => Ok(false),
        [one] => Ok(!one.is_empty()),
        ["!", one] => Ok(one.is_empty()),
        [op, operand] => {
            unary(op, operand).ok_or_else(|| format!("{op}: unexpected operator/operand"))
        }
        [left, op, right] if is_binary(op) => binary(left, op, right),
        ["!", ..] => evaluate_words(kernel, cred, cwd, &args[1..]).map(|value| !value),
        [_, extra, ..] => Err(format!("{extra}: unexpected operator/operand")),
    }
}

fn is_binary(op: &str) -> bool {
    ["=", "!=", "-lt", "-le", "-gt", "-ge"].contains(&op)
}

fn unary(kernel: &Kernel, cred: &Cred, cwd: &str, op: &str, operand: &str) -> Option<bool> {
    let entry = || kernel.entry(cred, cwd, operand, true).ok();
    let is = |bits| entry().is_some_and(|e| e.stat.mode & TYPE_BITS == bits);
    Some(match op {
        "-n" => !operand.is_empty(),
        "-z" => operand.is_empty(),
        "-e" => entry().is_some(),
        "-d" => is(DIRECTORY),
        "-f" => is(REGULAR),
        "-s" => entry().is_some_and(|e| match e.body {
            Body::File(data) => data.len() > 0 && e.stat.size > 0,
            _ => true,
        }),
        _ => return None,
    })
}

fn binary(left: &str, op: &str, right: &str) -> Result<bool, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<i64>();
        number.map_err(|_| format!("{text}: unexpected '{text}'"))
    };
    Ok(match op {
        "=" => left == right,
        "!=" => left != right,
        "-lt" => number(left)? < number(right)?,
        "-le" => number(left)? <= number(right)?,
        "-gt" => number(left)? > number(right)?,
        _ => number(left)? >= number(right)?,
    })
}
