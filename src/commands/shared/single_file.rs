//! A dump in one file that the user named (`convert -o x.pb.gz`, `dump -o x.hprof`). The results are
//! complete in a directory before the file gets its name.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::json;
use time::OffsetDateTime;

use crate::commands::shared::paths::near;
use crate::console::Console;
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::unfinished::ExistingFile;
use heaptap_base::units::{ByteSize, counted};
use heaptap_capture::session::SessionId;
use heaptap_results::destination::unwritable;
use heaptap_results::file_names::default_name;
use heaptap_results::manifest::Dumps;
use heaptap_results::whole_file::WholeFile;

/// File of one dump, and what happens to a file of that name.
pub(crate) struct SingleFile {
    pub(crate) path: PathBuf,
    pub(crate) existing: ExistingFile,
}

impl SingleFile {
    /// Returns the directory that gets the results first: in that of the file.
    pub(crate) fn directory(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let name = default_name(&name, OffsetDateTime::now_utc(), &SessionId::random());
        directory::of(&self.path).join(name)
    }

    /// Copies the file of the only dump from the directory of the results, and reports it.
    ///
    /// # Errors
    /// Returns an error with `help` if there are several, or if the file cannot be written.
    pub(crate) fn write(
        &self,
        console: &Console,
        dumps: &Dumps,
        directory: &Path,
        help: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let path = near(&self.path).display().to_string();
        let native = dumps.native.iter().map(|dump| (&dump.file, dump.number));
        let java = dumps.java.iter().map(|dump| (&dump.file, dump.number));
        let written = native
            .chain(java)
            .filter_map(|(file, number)| Some((file.as_ref()?, number)));
        let files: Vec<(&String, u32)> = written.collect();
        let [(file, number)] = files[..] else {
            let dumps = counted(files.len() as u64, "dump", "dumps");
            let message = format!("cannot write {dumps} to one file, {path}");
            return Err(
                Failure::new(ErrorClass::Usage, "needs-directory", message).with_help(help())
            );
        };
        let copied = || {
            let mut whole = WholeFile::typed(&self.path, self.existing)?;
            let bytes = std::io::copy(&mut File::open(directory.join(file))?, &mut whole)?;
            whole.finish().map(|()| bytes)
        };
        let bytes = copied().map_err(|source| unwritable(&path, &source))?;
        if console.is_json() {
            let file = json!({
                "path": self.path, "dump": number, "view": null, "bytes": bytes,
            });
            console.json(&json!({ "files": [file], "dumps": 1 }));
        }
        console.say(format_args!("wrote {path} ({})", ByteSize(bytes)));
        Ok(())
    }
}
