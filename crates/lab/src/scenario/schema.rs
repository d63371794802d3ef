//! The language of scenarios as a JSON Schema (draft 2020-12), for editors and other tools. Values
//! with variables are valid in it, because their text is not known.

use serde_json::{Map, Value, json};

use super::actions::Actions;
use super::forms::{Form, Numbers};
use super::shape::{
    Choice, Group, Key, MONKEY, MONKEY_EVENTS, REPEAT, SCENARIO, STEP_ACTIONS, STEP_OPTIONS,
    SUB_STEPS, Shape,
};

/// A text with a variable.
const VARIABLE: &str = "\\$\\{";

/// Returns the JSON Schema of scenarios. Maps are closed, and a wrong key causes one error that
/// names it.
pub fn schema(actions: &Actions<'_>) -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "heaptap scenario",
        "description": "What to do with an Android app, what to measure, and what it can use",
    });
    merge(&mut schema, group(&SCENARIO, false));
    merge(&mut schema, json!({"$defs": {"step": step(actions)}}));
    schema
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Scalar(form) => scalar(form),
        Shape::Number { min, max } => json!({
            "type": ["integer", "string"],
            "minimum": min,
            "maximum": max,
            "pattern": VARIABLE,
        }),
        Shape::Flag => json!({"type": ["boolean", "string"], "pattern": VARIABLE}),
        Shape::Word(words) => {
            let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
            let docs: Vec<String> = words.iter().map(|(n, doc)| format!("{n}: {doc}")).collect();
            json!({
                "type": "string",
                "description": docs.join("; "),
                "if": {"pattern": VARIABLE},
                "else": {"enum": names},
            })
        }
        Shape::List { of, min, max } => json!({
            "type": "array",
            "items": of_shape(of),
            "minItems": min,
            "maxItems": max,
        }),
        Shape::Map(keys) => group(keys, keys.may_be_empty()),
        Shape::Named { name, of } => json!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": name.pattern},
            "additionalProperties": of_shape(of),
        }),
        Shape::Either(Shape::Refused(_), other) => of_shape(other),
        Shape::Either(scalar, other) => {
            let kind = match other {
                Shape::List { .. } => "array",
                _ => "object",
            };
            json!({
                "if": {"type": kind},
                "then": of_shape(other),
                "else": of_shape(scalar),
            })
        }
        Shape::Step => json!({"$ref": "#/$defs/step"}),
        Shape::Refused(_) => Value::Bool(false),
    }
}

fn scalar(form: &Form) -> Value {
    let mut schema = match form.numbers {
        Numbers::Refused => json!({"type": "string"}),
        Numbers::Accepted => json!({"type": ["string", "number", "boolean"]}),
    };
    if !form.pattern.is_empty() {
        if form.numbers == Numbers::Accepted {
            schema = json!({"type": ["string", "number"], "minimum": 0});
        }
        let pattern = format!("{}|{VARIABLE}", form.pattern);
        merge(&mut schema, json!({"pattern": pattern}));
    }
    schema
}

fn group(group: &Group, may_be_null: bool) -> Value {
    let kinds = match may_be_null {
        true => json!(["object", "null"]),
        false => json!("object"),
    };
    let mut schema = object(kinds, properties(group.keys));
    let names: Vec<&str> = group.names().collect();
    let required = group.keys.iter().filter(|key| key.required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    let mut rules = Map::new();
    if !required.is_empty() {
        rules.insert("required".to_owned(), json!(required));
    }
    if !group.choices.is_empty() {
        let all: Vec<Value> = group.choices.iter().map(|c| choice(c, &names)).collect();
        rules.insert("allOf".to_owned(), json!(all));
    }
    if !rules.is_empty() {
        merge(&mut schema, if_known(&names, Value::Object(rules)));
    }
    schema
}

fn object(kinds: Value, properties: Map<String, Value>) -> Value {
    json!({"type": kinds, "additionalProperties": false, "properties": properties})
}

/// Returns a schema that applies only if all keys are known: a misspelled key is one error.
fn if_known(names: &[&str], then: Value) -> Value {
    json!({"if": {"propertyNames": {"enum": names}}, "then": then})
}

/// Returns the schema of keys that exclude each other; `names` are all keys of the map.
fn choice(choice: &Choice, names: &[&str]) -> Value {
    let mut schema = json!({"dependentSchemas": excluding(choice.keys, names)});
    if choice.required {
        merge(&mut schema, one_required(choice.keys));
    }
    schema
}

fn one_required(keys: &[&str]) -> Value {
    let keys: Vec<Value> = keys.iter().map(|key| json!({"required": [key]})).collect();
    json!({"anyOf": keys})
}

/// Returns for each of the keys the schema of a map with it, and without the others.
fn excluding(keys: &[&str], names: &[&str]) -> Map<String, Value> {
    let of_key = |key: &&str| {
        let others = |name: &&&str| *name == key || !keys.contains(name);
        let allowed: Vec<&str> = names.iter().filter(others).copied().collect();
        (
            (*key).to_owned(),
            json!({"propertyNames": {"enum": allowed}}),
        )
    };
    keys.iter().map(of_key).collect()
}

fn properties(keys: &[Key]) -> Map<String, Value> {
    let of_key = |key: &Key| (key.name.to_owned(), described(&key.shape, key.doc));
    keys.iter().map(of_key).collect()
}

/// Returns the schema of a value with its description before that of its words.
fn described(shape: &Shape, doc: &str) -> Value {
    let mut schema = of_shape(shape);
    let doc = match schema.get("description").and_then(Value::as_str) {
        Some(words) => format!("{doc}. {words}"),
        None => doc.to_owned(),
    };
    merge(&mut schema, json!({"description": doc}));
    schema
}

/// Returns the schema of a step: a word, or a map with one action and its options.
fn step(actions: &Actions<'_>) -> Value {
    let names: Vec<&str> = actions.names().collect();
    let bare = names.iter().filter(|name| (actions.check)(name).is_ok());
    let bare: Vec<&str> = bare.copied().collect();
    let mut all = properties(&STEP_ACTIONS);
    all.extend(properties(&STEP_OPTIONS));
    let of_action = |(name, doc): &(&str, &str)| ((*name).to_owned(), action(name, doc));
    all.extend(actions.all.iter().map(of_action));
    let known: Vec<&str> = all.keys().map(String::as_str).collect();
    let own = STEP_ACTIONS.iter().map(|key| key.name);
    let exclusive: Vec<&str> = names.iter().copied().chain(own).collect();
    let mut rules = json!({
        "dependentSchemas": excluding(&exclusive, &known),
        "dependentRequired": {REPEAT: [SUB_STEPS], SUB_STEPS: [REPEAT]},
    });
    merge(&mut rules, one_required(&exclusive));
    let rules = if_known(&known, rules);
    let mut map = object(json!("object"), all);
    merge(&mut map, rules);
    json!({
        "description": "An action, or an action with its options",
        "if": {"type": "string"},
        "then": {
            "if": {"pattern": ":|\\$\\{"},
            "then": {"pattern": format!("^\\s*({})\\s*:|{VARIABLE}", names.join("|"))},
            "else": {"enum": bare},
        },
        "else": map,
    })
}

/// Returns the schema of an action's value; the action itself checks more.
fn action(name: &str, doc: &str) -> Value {
    let value = json!({
        "type": ["string", "number", "boolean", "null", "array"],
        "items": {"type": ["integer", "string"]},
    });
    let mut schema = match name {
        MONKEY => json!({
            "if": {"type": "object"},
            "then": group(&MONKEY_EVENTS, false),
            "else": value,
        }),
        _ => value,
    };
    merge(&mut schema, json!({"description": doc}));
    schema
}

/// Adds the members of an object to another.
fn merge(schema: &mut Value, more: Value) {
    if let (Value::Object(schema), Value::Object(more)) = (schema, more) {
        schema.extend(more);
    }
}
