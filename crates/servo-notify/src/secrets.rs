//! The secrets of one try: read when they are needed, and taken out of everything that is said about it.

use std::path::PathBuf;

use servo_engine::definitions::{SecretDef, TextOrSecret};
use servo_engine::notification::SendFailure;
use servo_runtime::read_secret;

use crate::again;

/// Texts that are shorter are not masked: they would mask everything.
const SHORTEST: usize = 4;

pub(crate) struct Secrets {
    root: Option<PathBuf>,
    read: Vec<String>,
}

impl Secrets {
    pub(crate) fn new(root: Option<PathBuf>) -> Self {
        Self { root, read: Vec::new() }
    }

    /// The value of a secret.
    pub(crate) fn get(&mut self, reference: &SecretDef) -> Result<String, SendFailure> {
        let value = read_secret(reference, self.root.as_deref()).ok_or_else(|| {
            let place = format!("{} {}", reference.provider, reference.path);
            again(format!("a secret is not there: the server looks for it in {place}"))
        })?;
        self.read.push(value.clone());
        Ok(value)
    }

    /// A text, or the value of a secret.
    pub(crate) fn text(&mut self, text: &TextOrSecret) -> Result<String, SendFailure> {
        match text {
            TextOrSecret::Text(text) => Ok(text.clone()),
            TextOrSecret::Secret(reference) => self.get(reference),
        }
    }

    /// The same text without the secrets that were read.
    pub(crate) fn mask(&self, text: &str) -> String {
        let long = self.read.iter().filter(|secret| secret.len() >= SHORTEST);
        long.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}
