//! The programs that are tried: built by cargo, found where cargo puts them.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::step::Step;
use crate::timetable::Timetable;

/// How `ringer` is built for the occasion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Profile {
    /// There already when the tests have run.
    Dev,
    Release,
    /// As it is shipped.
    Dist,
}

impl Profile {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Dev, Self::Release, Self::Dist].into_iter().find(|profile| profile.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }

    /// Cargo's folder for it.
    fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release | Self::Dist => self.name(),
        }
    }
}

/// Builds `ringer` and gives its path.
pub(crate) fn ringer(profile: Profile, times: &mut Timetable) -> Result<PathBuf, Failure> {
    Step::cargo("build", &["build", "--profile", profile.name(), "-p", "ringer"]).run(times)?;
    Ok(artifacts()?.join(profile.folder()).join(format!("ringer{EXE_SUFFIX}")))
}

/// Where cargo puts programs: the folder above the profile's folder that holds us. Asking our own path
/// is right whatever set the target folder (environment, configuration, `--target`).
pub(crate) fn artifacts() -> Result<PathBuf, Failure> {
    let ourselves = env::current_exe().map_err(|error| Failure::io("the path of xtask", &error))?;
    let folder = ourselves.parent().and_then(Path::parent);
    folder
        .map(Path::to_path_buf)
        .ok_or_else(|| Failure::unavailable(format!("{} is not inside a target folder", ourselves.display())))
}

#[cfg(test)]
mod tests {
    use super::Profile;

    #[test]
    fn profiles_go_by_cargos_names() {
        fn check(name: &str, folder: Option<&str>) {
            assert_eq!(Profile::named(name).map(Profile::folder), folder, "{name}");
        }
        check("dev", Some("debug"));
        check("release", Some("release"));
        check("dist", Some("dist"));
        check("debug", None);
    }
}
