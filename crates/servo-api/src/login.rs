//! How a browser is let in: a link with a token that is good once is exchanged for a session, which the browser keeps as
//! a cookie that no script can read and that no page of another origin can use.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, header};
use data_encoding::HEXLOWER;
use servo_access::SessionOf;
use servo_core::Millis;

use crate::access::is_equal;
use crate::problem::{Code, Problem};

/// How long a session lives.
pub(crate) const SESSION: Millis = Millis::from_hours(7 * 24);
/// Links that may be open at once; the oldest is forgotten first.
const MAX_LINKS: usize = 64;

/// Tokens of links that nobody has followed yet. Clones share them.
#[derive(Clone, Default)]
pub struct Logins(Arc<Mutex<VecDeque<(String, SessionOf)>>>);

/// Secrets are never shown.
impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

impl Logins {
    /// The path of a link that lets one browser of whoever runs the server in, once.
    pub fn link(&self) -> Result<String, getrandom::Error> {
        self.link_for(SessionOf::Owner)
    }

    /// The path of a link that lets one browser in, once, with a session of somebody.
    pub fn link_for(&self, session: SessionOf) -> Result<String, getrandom::Error> {
        let mut random = [0u8; 32];
        getrandom::fill(&mut random)?;
        let token = HEXLOWER.encode(&random);
        let link = format!("/login?token={token}");
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_LINKS {
            open.pop_front();
        }
        open.push_back((token, session));
        Ok(link)
    }

    /// The session that an open link is good for. It is not any more.
    pub(crate) fn redeem(&self, shown: &str) -> Option<SessionOf> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        // All are compared, so that nothing is said by how long it takes.
        open.retain(|(token, session)| {
            let is_shown = is_equal(shown, token);
            if is_shown {
                found = Some(session.clone());
            }
            !is_shown
        });
        found
    }
}

/// Cookies are shared by all ports of a host, so the name has the port in it.
pub(crate) fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let port = host.and_then(|host| host.parse::<Authority>().ok()?.port_u16());
    format!("servo_session_{}", port.unwrap_or(80))
}

/// The session that a browser sends.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, &cookie_name(headers))
}

/// A cookie that a browser sends.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies =
        lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    cookies.find_map(|(named, value)| (named == name).then_some(value))
}

/// That a request with a session was made by a page of this server. Pages on other ports of the machine are of the same
/// site, so that their requests carry the cookie too; whoever has a browser says where a request comes from.
pub(crate) fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").map(|site| site.to_str().unwrap_or_default());
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_own = match site {
        Some(site) => site == "same-origin" || (is_read && site == "none"),
        // The guard has compared it with this server.
        None => is_read || headers.contains_key(header::ORIGIN),
    };
    if is_own {
        return Ok(());
    }
    let detail =
        "a session is good for requests of the server's own pages; programs show its token as bearer";
    Err(Problem::new(Code::ForeignOrigin, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_old_ones_are_forgotten() {
        let logins = Logins::default();
        let token = |link: &str| link.strip_prefix("/login?token=").unwrap().to_owned();
        let first = token(&logins.link().unwrap());
        let second = token(&logins.link().unwrap());
        assert!(logins.redeem("").is_none() && logins.redeem("guess").is_none());
        assert_eq!(logins.clone().redeem(&second), Some(SessionOf::Owner));
        assert_eq!(logins.redeem(&second), None);
        for _ in 0..MAX_LINKS {
            logins.link().unwrap();
        }
        assert_eq!(logins.redeem(&first), None);
    }
}
