//! Memory of textures and buffers, from `dumpsys gfxinfo` and `dmabuf_dump`.

/// Returns the bytes that `dumpsys gfxinfo` counts for a process's GPU. Before Android 10, it has
/// one number for CPU and GPU together. Returns `None` if the text does not have such a line.
pub fn gfxinfo_bytes(text: &str) -> Option<u64> {
    let mut found = None;
    let mut heading = None;
    for line in text.lines() {
        let line = line.trim();
        match line {
            "Total GPU memory usage:" => heading = Some(true),
            "Total memory usage:" => heading = Some(false),
            _ => {
                let Some(gpu) = heading.take() else {
                    continue;
                };
                // `12345678 bytes, 11.77 MB (2.00 MB is purgeable)`
                let Some(bytes) = line
                    .split_once(" bytes")
                    .and_then(|(bytes, _)| bytes.trim().parse::<u64>().ok())
                else {
                    continue;
                };
                if gpu {
                    return Some(bytes);
                }
                found = Some(bytes);
            }
        }
    }
    found
}

/// Returns the bytes of dma-bufs that `dmabuf_dump PID` counts for the process, each buffer
/// proportionally. Returns `None` if the text does not have a sum.
pub fn dmabuf_bytes(text: &str) -> Option<u64> {
    // `PROCESS TOTAL          9216 kB          4608 kB`: resident, then proportional.
    let sums = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("PROCESS TOTAL"))?;
    let mut kilobytes = Vec::new();
    let mut words = sums.split_whitespace();
    while let (Some(number), Some("kB")) = (words.next(), words.next()) {
        kilobytes.push(number.parse::<u64>().ok()?);
    }
    kilobytes
        .get(1)
        .or(kilobytes.first())
        .and_then(|kb| kb.checked_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gfxinfo_of_today_and_of_before() {
        let today = "Total CPU memory usage:\n  100 bytes, 0.10 KB (0 is purgeable)\n\
            Total GPU memory usage:\n  12345678 bytes, 11.77 MB (2.00 MB is purgeable)\n";
        assert_eq!(gfxinfo_bytes(today), Some(12_345_678));
        let before = "Memory policy:\nTotal memory usage:\n  4096 bytes, 0.00 MB\n";
        assert_eq!(gfxinfo_bytes(before), Some(4096));
        for none in [
            "",
            "No process found for: 7",
            "Total GPU memory usage:\n",
            "Total GPU memory usage:\n  99999999999999999999 bytes\n",
        ] {
            assert_eq!(gfxinfo_bytes(none), None, "{none}");
        }
    }

    #[test]
    fn dmabuf_by_share() {
        let text = " com.example.app:4321\n   Name   Rss   Pss  nr_procs  Inode  Exporter\n\
            <unknown>  9216 kB  4608 kB  2  17  system\n\
            PROCESS TOTAL          9216 kB          4608 kB\n";
        assert_eq!(dmabuf_bytes(text), Some(4608 * 1024));
        assert_eq!(dmabuf_bytes("PROCESS TOTAL 4 kB\n"), Some(4096));
        for none in ["", "PROCESS TOTAL x kB", "Failed to read", "PROCESS TOTAL"] {
            assert_eq!(dmabuf_bytes(none), None, "{none}");
        }
    }
}
