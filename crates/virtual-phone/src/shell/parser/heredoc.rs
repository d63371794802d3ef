//! Puts the bodies of here-documents, which come after the commands that use them, into the
//! tree.

use std::sync::Arc;

use crate::shell::ast::{Node, Redirect, RedirectKind, Word};

type Find<'a> = dyn Fn(&Word) -> Option<Word> + 'a;

fn redirects(list: Vec<Redirect>, find: &Find<'_>) -> Vec<Redirect> {
    list.into_iter()
        .map(|r| Redirect {
            fd: r.fd,
            kind: match r.kind {
                RedirectKind::Here(word) => {
                    let body = find(&word).unwrap_or(word);
                    RedirectKind::Here(body)
                }
                other => other,
            },
        })
        .collect()
}

fn arc(node: Arc<Node>, find: &Find<'_>) -> Arc<Node> {
    Arc::new(fill(Arc::unwrap_or_clone(node), find))
}

/// The node with every placeholder that `find` knows replaced.
pub(super) fn fill(node: Node, find: &Find<'_>) -> Node {
    match node {
        Node::Simple {
            assigns,
            words,
            redirects: r,
        } => Node::Simple {
            assigns,
            words,
            redirects: redirects(r, find),
        },
        Node::Pipeline { negated, parts } => Node::Pipeline {
            negated,
            parts: parts.into_iter().map(|p| arc(p, find)).collect(),
        },
        Node::AndOr { left, and, right } => Node::AndOr {
            left: arc(left, find),
            and,
            right: arc(right, find),
        },
        Node::List(list) => Node::List(list.into_iter().map(|(n, b)| (arc(n, find), b)).collect()),
        Node::Group { body, redirects: r } => Node::Group {
            body: arc(body, find),
            redirects: redirects(r, find),
        },
        Node::Subshell { body, redirects: r } => Node::Subshell {
            body: arc(body, find),
            redirects: redirects(r, find),
        },
        Node::If {
            branches,
            otherwise,
            redirects: r,
        } => Node::If {
            branches: branches
                .into_iter()
                .map(|(c, b)| (arc(c, find), arc(b, find)))
                .collect(),
            otherwise: otherwise.map(|n| arc(n, find)),
            redirects: redirects(r, find),
        },
        Node::Loop {
            until,
            condition,
            body,
            redirects: r,
        } => Node::Loop {
            until,
            condition: arc(condition, find),
            body: arc(body, find),
            redirects: redirects(r, find),
        },
        Node::For {
            name,
            words,
            body,
            redirects: r,
        } => Node::For {
            name,
            words,
            body: arc(body, find),
            redirects: redirects(r, find),
        },
        Node::Case {
            subject,
            arms,
            redirects: r,
        } => Node::Case {
            subject,
            arms: arms.into_iter().map(|(p, b)| (p, arc(b, find))).collect(),
            redirects: redirects(r, find),
        },
        Node::Function { name, body } => Node::Function {
            name,
            body: arc(body, find),
        },
        other @ (Node::Condition(_) | Node::Arithmetic(_)) => other,
    }
}
