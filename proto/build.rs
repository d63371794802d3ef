//! Compiles the `.proto` files with protox, so that no `protoc` needs to be installed, and writes the
//! descriptor set to `OUT_DIR` for the text format of configs.

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "perfetto/config.proto",
        "perfetto/trace.proto",
        "perfetto/service.proto",
        "pprof/profile.proto",
    ];
    for directory in ["perfetto", "pprof"] {
        println!("cargo:rerun-if-changed={directory}");
    }
    let descriptors = protox::compile(files, ["."])?;
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    prost_build::Config::new().compile_fds(descriptors)?;
    Ok(())
}
