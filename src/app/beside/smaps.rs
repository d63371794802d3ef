//! `--with smaps`: the mappings of each process at each label, and what its allocator says, as
//! the phone wrote them.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::at::{At, NotTaken};
use crate::app::smaps::fetch::{self, FetchError};
use crate::memory::smaps;
use crate::memory::timeline::{Entry, Missed, Seen};

/// Takes them. That an allocator tells nothing (before Android 10, of apps that are not
/// debuggable) is noted, and no failure: mappings are what was asked for.
pub(super) async fn capture(at: &At) -> Result<(), NotTaken> {
    let mut gone = Vec::new();
    for (pid, name) in &at.processes {
        let fetched = fetch::proc_file(&at.device, (*pid, name), "smaps", None).await;
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(FetchError::Device(error)) => return Err(error.into()),
            Err(FetchError::Gone { .. }) => {
                gone.push(format!("{name} ({pid})"));
                continue;
            }
            Err(refused) => return Err(NotTaken::Because(refused.to_string())),
        };
        let packed = gzip(&fetched.text)?;
        at.keep("smaps", (*pid, "smaps.gz"), fetched.boot_ns, &packed)?;
        if let Ok(smaps) = smaps::parse(&fetched.text)
            && let Some(parts) = smaps.parts()
        {
            at.timeline.add(&Entry {
                boot_ns: fetched.boot_ns.unwrap_or(at.boot_ns),
                pid: *pid,
                cost: None,
                seen: Seen::Parts(parts),
            });
        }
        match fetch::malloc_info(&at.device, *pid).await? {
            Ok(info) => at.keep("malloc-info", (*pid, "xml"), info.boot_ns, &info.text)?,
            Err(why) => at.timeline.see(
                at.boot_ns,
                *pid,
                Seen::Missed(Missed {
                    what: "malloc-info".to_owned(),
                    label: at.label.clone(),
                    number: at.number,
                    why,
                }),
            ),
        }
    }
    match gone.as_slice() {
        [] => Ok(()),
        gone => Err(NotTaken::Because(format!("{} was gone", gone.join(", ")))),
    }
}

/// A process of a few hundred mappings has 500 KiB of text, a twentieth of that packed.
fn gzip(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text)?;
    packer.finish()
}
