//! Values of secrets, where this process finds them. Nothing keeps one for longer than it is needed.

use std::path::Path;

use servo_engine::definitions::SecretDef;

/// The value of a secret: an environment variable, or the content of a file below `root`. None if it is not there, or
/// empty.
pub fn read_secret(reference: &SecretDef, root: Option<&Path>) -> Option<String> {
    let found = match reference.provider.as_str() {
        "env" => std::env::var(&reference.path).ok(),
        "file" => {
            let file = root.map_or_else(|| reference.path.clone().into(), |root| root.join(&reference.path));
            let text = std::fs::read_to_string(file).ok();
            text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
        }
        _ => None,
    };
    found.filter(|secret| !secret.is_empty())
}
