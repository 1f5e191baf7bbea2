//! The login of a browser: authorization code with PKCE.

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use servo_core::Timestamp;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use url::Url;

use crate::device::{Answered, TokenAnswer};
use crate::error::Error;
use crate::fetch;
use crate::provider::Provider;
use crate::token::Claims;

/// A login that was begun: what the browser keeps until it comes back, and nobody else may see.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserLogin {
    state: String,
    nonce: String,
    verifier: String,
    redirect_uri: String,
}

impl std::fmt::Debug for BrowserLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrowserLogin").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

/// A login that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Who it is.
    pub claims: Claims,
}

impl Provider {
    /// Begins a login: where to send the browser, and what it keeps.
    pub async fn begin(&self, redirect_uri: &str) -> Result<(String, BrowserLogin), Error> {
        let metadata = self.metadata().await?;
        let address = metadata.authorization_endpoint.as_deref();
        let address = address.ok_or_else(|| self.unsupported("authorization endpoint"))?;
        let login = BrowserLogin {
            state: self.random()?,
            nonce: self.random()?,
            verifier: self.random()?,
            redirect_uri: redirect_uri.to_owned(),
        };
        let mut url = Url::parse(address).map_err(|error| self.unavailable(error.to_string()))?;
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.config().client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &self.config().scopes.join(" ")),
            ("state", &login.state),
            ("nonce", &login.nonce),
            ("code_challenge", &BASE64URL_NOPAD.encode(&Sha256::digest(login.verifier.as_bytes()))),
            ("code_challenge_method", "S256"),
        ]);
        Ok((url.into(), login))
    }

    /// Ends a login: exchanges the code that the browser came back with.
    pub async fn finish(
        &self,
        login: &BrowserLogin,
        state: &str,
        code: &str,
        now: Timestamp,
    ) -> Result<Finished, Error> {
        if !bool::from(state.as_bytes().ct_eq(login.state.as_bytes())) {
            return Err(Error::Refused("this is not the login that was begun in this browser".to_owned()));
        }
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &login.redirect_uri),
            ("code_verifier", &login.verifier),
        ];
        match self.ask_for_tokens(&form).await? {
            Answered::Tokens(tokens) => {
                let token = tokens.id_token.ok_or_else(|| self.unsupported("token of identity"))?;
                let claims = self.verify(&token, now).await?;
                if !claims.is_for(&login.nonce) {
                    return Err(Error::token("it is of another login"));
                }
                Ok(Finished { claims })
            }
            Answered::Refused(reason) => Err(Error::Refused(reason)),
        }
    }

    /// Asks the token endpoint.
    pub(crate) async fn ask_for_tokens(&self, form: &[(&str, &str)]) -> Result<Answered, Error> {
        let metadata = self.metadata().await?;
        let address = metadata.token_endpoint.as_deref().ok_or_else(|| self.unsupported("token endpoint"))?;
        let answered = fetch::json::<TokenAnswer>(self.form(address, form)).await;
        let (status, answer) = answered.map_err(|reason| self.unavailable(reason))?;
        match answer {
            TokenAnswer::Tokens(tokens) if status.is_success() => Ok(Answered::Tokens(tokens)),
            TokenAnswer::Error { error } if !status.is_server_error() => Ok(Answered::Refused(error)),
            TokenAnswer::Tokens(_) | TokenAnswer::Error { .. } => {
                Err(self.unavailable(format!("its token endpoint answers {status}")))
            }
        }
    }

    /// A form, with the credentials of the client.
    pub(crate) fn form(&self, address: &str, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let config = self.config();
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        let mut request = self.http().post(address);
        match &config.client_secret {
            Some(secret) => {
                // The form encoding comes first, as RFC 6749 says.
                let plain =
                    |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                request = request.basic_auth(plain(&config.client_id), Some(plain(secret.reveal())));
            }
            None => {
                body.append_pair("client_id", &config.client_id);
            }
        }
        let kind = "application/x-www-form-urlencoded";
        request.header("content-type", kind).header("accept", "application/json").body(body.finish())
    }

    fn random(&self) -> Result<String, Error> {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| self.unavailable(format!("no random numbers: {error}")))?;
        Ok(BASE64URL_NOPAD.encode(&bytes))
    }
}
