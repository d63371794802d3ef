//! Naming of the sample types of a pprof.

use heaptap_export::pprof::SampleNames;

impl From<SampleNamesArg> for SampleNames {
    fn from(names: SampleNamesArg) -> Self {
        match names {
            SampleNamesArg::Heaptap => SampleNames::Pprof,
            SampleNamesArg::Perfetto => SampleNames::Perfetto,
        }
    }
}

/// Naming of the sample types of a pprof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SampleNamesArg {
    /// objects, space, alloc_objects, alloc_space: what pprof tools know
    #[default]
    Heaptap,
    /// Perfetto's own names
    Perfetto,
}
