//! `--config FILE`: what the file is, by its content, and the reading of it.

use std::fs;
use std::path::Path;

use super::{ConfigError, Options, preset, text, yaml};
use heaptap_proto::perfetto::TraceConfig;

/// Larger files are no configs.
const MAX_BYTES: u64 = 4 << 20;

/// A config file, read.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigFile {
    /// heaptap's YAML: options, as flags have them.
    Options(Box<Options>),
    /// Perfetto's text or binary: a whole TraceConfig.
    Template(Box<TraceConfig>),
}

impl ConfigFile {
    /// Reads a file, or the preset of that name where there is no such file.
    ///
    /// # Errors
    /// Where it cannot be read, or holds something that is not known.
    pub fn load(path: &Path) -> Result<ConfigFile, ConfigError> {
        if !path.exists() {
            return match path.to_str().and_then(preset::find) {
                Some(preset) => ConfigFile::parse(preset.text.as_bytes(), preset.name),
                None => Err(ConfigError::NoSuchFile {
                    path: path.to_owned(),
                    presets: preset::names(),
                    similar: path.to_str().and_then(preset::similar),
                }),
            };
        }
        let unreadable = |source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let size = fs::metadata(path).map_err(unreadable)?.len();
        if size > MAX_BYTES {
            return Err(ConfigError::bad_file(
                &path.display().to_string(),
                format!("a config of {size} bytes is none"),
            ));
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        ConfigFile::parse(&bytes, &path.display().to_string())
    }

    /// Reads the content of a config; `origin` names it in errors.
    ///
    /// # Errors
    /// Where it holds something that is not known.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<ConfigFile, ConfigError> {
        let template = |config| ConfigFile::Template(Box::new(config));
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(['\0', '\u{1}', '\u{2}', '\u{8}']) => {
                let text = text.trim_start_matches('\u{feff}');
                if looks_like_text_proto(text) {
                    return text::parse_text(text)
                        .map(template)
                        .map_err(|why| ConfigError::bad_file(origin, why));
                }
                yaml::parse(text, origin).map(|options| ConfigFile::Options(Box::new(options)))
            }
            _ => text::parse_binary(bytes).map(template).map_err(|why| {
                ConfigError::bad_file(
                    origin,
                    format!("it is neither text nor a serialized TraceConfig: {why}"),
                )
            }),
        }
    }
}

/// Text of Perfetto opens a message with a brace, or sets a field that only a TraceConfig
/// has; YAML does neither.
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
