//! `--config FILE`: detects the type of the file by its content, and reads it.

use std::fs;
use std::path::Path;

use super::error::bad_file;
use super::{Options, PRESETS, text, yaml};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::suggest::nearest;
use heaptap_base::text::plain;
use heaptap_base::units::ByteSize;
use heaptap_proto::perfetto::TraceConfig;

/// Maximum size of a config file.
const MAX_BYTES: u64 = 4 << 20;

/// A parsed config file.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigFile {
    /// heaptap's YAML: the same options as flags.
    Options(Box<Options>),
    /// Perfetto's text or binary: a whole TraceConfig.
    Template(Box<TraceConfig>),
}

impl ConfigFile {
    /// Reads a file, or the preset of that name if there is no such file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or contains unknown keys or fields.
    pub fn load(path: &Path) -> Result<ConfigFile, Failure> {
        // A directory is not a config: a recording can have the name of a preset.
        if (!path.exists() || path.is_dir())
            && let Some(preset) = PRESETS
                .iter()
                .find(|preset| path.to_str() == Some(preset.name))
        {
            return ConfigFile::parse(preset.text.as_bytes(), preset.name);
        }
        if !path.exists() {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            let presets = names.join(", ");
            let help = match path.to_str().and_then(|name| nearest(name, names)) {
                Some(name) => format!("did you mean `{name}`? The presets are {presets}"),
                None => format!("choose a file or one of the presets {presets}"),
            };
            let message = format!("{} is neither a file nor a preset", path.display());
            let failure = Failure::new(ErrorClass::BadInput, "config-not-found", message);
            return Err(failure.with_help(help));
        }
        let unreadable = |error: std::io::Error| {
            let message = format!("cannot read the config {}: {error}", path.display());
            Failure::new(ErrorClass::BadInput, "config-unreadable", message)
                .with_help("check the path and its permissions")
        };
        let size = fs::metadata(path).map_err(unreadable)?.len();
        if size > MAX_BYTES {
            let (size, limit) = (ByteSize(size), ByteSize(MAX_BYTES));
            let why = format!("file is {size}; the limit is {limit}");
            return Err(bad_file(&path.display().to_string(), why));
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        ConfigFile::parse(&bytes, &path.display().to_string())
    }

    /// Parses the content of a config; `origin` names it in errors.
    ///
    /// # Errors
    /// Returns an error if it contains unknown keys or fields.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<ConfigFile, Failure> {
        let template = |config| ConfigFile::Template(Box::new(config));
        let plain = plain(bytes);
        match std::str::from_utf8(&plain) {
            Ok(text) if !text.contains(['\0', '\u{1}', '\u{2}', '\u{8}']) => {
                // Of the same keys as YAML, JSON is YAML.
                let keys = [
                    r#""buffers""#,
                    // Of several keys.
                    r#"ataSources""#,
                    r#""data_sources""#,
                    r#""duration_ms""#,
                    r#""durationMs""#,
                ];
                let is_perfetto = keys.iter().any(|key| text.contains(key));
                if text.trim_start().starts_with('{') && is_perfetto {
                    let why = "JSON is not supported; a config is heaptap's YAML, or Perfetto's \
                               text or binary format";
                    return Err(bad_file(origin, why));
                }
                if looks_like_text_proto(text) {
                    return text::parse_text(text)
                        .map(template)
                        .map_err(|why| bad_file(origin, why));
                }
                let targets = yaml::parse(text, origin)?;
                let options: Options = yaml::parse(text, origin)?;
                Ok(ConfigFile::Options(Box::new(Options {
                    targets,
                    ..options
                })))
            }
            _ => text::parse_binary(bytes).map(template).map_err(|why| {
                let what = "the file is neither text nor a serialized TraceConfig";
                bad_file(origin, format!("{what}: {why}"))
            }),
        }
    }
}

/// Detects Perfetto's text format: it opens a message with a brace, or sets a field that only a
/// TraceConfig has; YAML does neither.
fn looks_like_text_proto(text: &str) -> bool {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect();
    let opens = |line: &&str| {
        let word = line.trim_end_matches(['{', ':', ' ']);
        line.ends_with('{') && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            || line.starts_with("buffers")
            || line.starts_with("data_sources")
            || line.starts_with("duration_ms:")
    };
    code.iter().any(opens)
}
