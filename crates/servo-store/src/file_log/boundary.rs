//! The boundary of a log of files: one small file, replaced as a whole. There is one writer, so that suffices.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{FileSystem, write_temporary};
use crate::{AppendError, Damage, ReadError, Seq};

/// The lowest number that may be read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Boundary {
    pub(crate) boundary: Seq,
}

const LONGEST: u64 = 4096;

pub(super) fn load(files: &dyn FileSystem, path: &Path) -> Result<Seq, ReadError> {
    let bytes = match files.read_range(path, 0..LONGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(1),
        Err(error) => return Err(ReadError::io("reading the boundary", path.display().to_string(), error)),
    };
    parse(&bytes, path.display().to_string())
}

pub(crate) fn parse(bytes: &[u8], location: String) -> Result<Seq, ReadError> {
    match serde_json::from_slice::<Boundary>(bytes) {
        Ok(Boundary { boundary }) if boundary > 0 => Ok(boundary),
        Ok(_) | Err(_) => {
            let damage = Damage::Malformed { reason: "it does not say a boundary" };
            Err(ReadError::corrupt(location, 1, 0, damage))
        }
    }
}

pub(super) fn store(files: &dyn FileSystem, path: &Path, boundary: Seq) -> Result<(), AppendError> {
    let refused = |error| AppendError::io("moving the boundary", path.display().to_string(), error);
    let temporary = path.with_extension("json.tmp");
    match files.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
        Ok(()) | Err(_) => {}
    }
    let text = format!("{{\"boundary\":{boundary}}}\n");
    write_temporary(files, &temporary, text.as_bytes()).map_err(refused)?;
    files.rename(&temporary, path).map_err(refused)?;
    files.sync_dir(path.parent().unwrap_or(Path::new("."))).map_err(refused)
}
